/**
 * Tables in plain text: columns as wide as their widest cell, two blanks apart.
 */
import { printable } from "../errors.ts";

/**
 * Lays rows out in columns; the first is the head. The first column is aligned left, the others right. Columns that do
 * not fit into `width` go on below, beside the first column again.
 */
export function table(
  rows: readonly (readonly (string | number)[])[],
  width: number = Number.POSITIVE_INFINITY,
): string {
  const cells = rows.map((row) =>
    row.map((cell) => (typeof cell === "number" ? thousands(cell) : printable(cell).replace(/\s/g, " "))),
  );
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  );
  const lines = (columns: readonly number[]): string =>
    cells
      .map((row) => columns.map((column) => padded(row[column] ?? "", widths[column]!, column)).join("  "))
      .map((line) => `${line.trimEnd()}\n`)
      .join("");
  return parts(widths, width).map(lines).join("\n");
}

function padded(cell: string, width: number, column: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}

/** The columns of each part of a table: the first one, and as many others as fit beside it. */
function parts(widths: readonly number[], width: number): number[][] {
  const [first = 0, ...others] = widths;
  const found: number[][] = [[0]];
  let used = first;
  others.forEach((own, i) => {
    if (found.at(-1)!.length > 1 && used + 2 + own > width) {
      found.push([0]);
      used = first;
    }
    found.at(-1)!.push(i + 1);
    used += 2 + own;
  });
  return found;
}

/** A share in per cent: 96.75%. */
export function percent(share: number): string {
  return `${(100 * share).toFixed(2)}%`;
}

/** A number with commas between its thousands: 56,376. */
export function thousands(value: number): string {
  return value.toLocaleString("en-US");
}

/** A value of a measure as people read it. */
export function showMeasure(
  measure: { readonly percent?: boolean; readonly digits: number },
  value: number,
): string {
  return measure.percent ? `${(100 * value).toFixed(measure.digits)}%` : value.toFixed(measure.digits);
}

/** A speed with its unit: 28,000 tokens/s, 7.7 episodes/s. */
export function showSpeed(
  { speed }: { readonly speed: { readonly label: string } },
  perSecond: number,
): string {
  return `${perSecond >= 100 ? thousands(Math.round(perSecond)) : perSecond.toFixed(1)} ${speed.label}`;
}
