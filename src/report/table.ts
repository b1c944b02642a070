/**
 * Tables in plain text: columns as wide as their widest cell, two blanks apart.
 */
import { printable } from "../errors.ts";

/** Lays rows out in columns; the first is the head. The first column is aligned left, the others right. */
export function table(rows: readonly (readonly (string | number)[])[]): string {
  const cells = rows.map((row) =>
    row.map((cell) => (typeof cell === "number" ? thousands(cell) : printable(cell).replace(/\s/g, " "))),
  );
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  );
  return cells
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
        .join("  ")
        .trimEnd(),
    )
    .map((line) => line + "\n")
    .join("");
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
