/** Curves in the terminal: a small grid of characters, one letter-free mark per line. */

/** One line of a plot. */
export interface PlotLine {
  readonly name: string;
  readonly mark: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

/** Draws lines on a grid; y runs from 0 to 1 and is shown in per cent. */
export function plotShares(
  lines: readonly PlotLine[],
  { columns = 60, rows = 12, x = "step" }: { columns?: number; rows?: number; x?: string } = {},
): string {
  const most = Math.max(1, ...lines.flatMap(({ points }) => points.map((point) => point.x)));
  const grid = Array.from({ length: rows }, () => new Array<string>(columns).fill(" "));
  for (const { points, mark } of lines) {
    for (let column = 0; column < columns; column++) {
      const y = valueAt(points, (column / (columns - 1)) * most);
      if (y === undefined) continue;
      const row = rows - 1 - Math.round(Math.min(1, Math.max(0, y)) * (rows - 1));
      grid[row]![column] = mark;
    }
  }
  const body = grid.map((cells, row) => {
    const share = 1 - row / (rows - 1);
    const label = row % 3 === 0 || row === rows - 1 ? `${Math.round(100 * share)}%` : "";
    return `${label.padStart(5)} │${cells.join("")}`.trimEnd();
  });
  const end = `${x} ${most.toLocaleString("en-US")}`;
  return [
    ...body,
    `      └${"─".repeat(columns)}`,
    `       0${end.padStart(columns - 1)}`,
    ...lines.map(({ name, mark }) => `       ${mark} ${name}`),
  ].join("\n");
}

/** The curve at x, straight between its points; undefined before the first. */
function valueAt(points: readonly { x: number; y: number }[], x: number): number | undefined {
  const after = points.findIndex((point) => point.x >= x);
  if (after === -1) return points.at(-1)?.y;
  const right = points[after]!;
  const left = points[after - 1];
  if (!left) return right.x === x ? right.y : undefined;
  return left.y + ((right.y - left.y) * (x - left.x)) / (right.x - left.x);
}
