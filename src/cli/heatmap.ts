/**
 * Strips: words with a number each, drawn so that the strong ones stand out. With colour the words have a
 * background (warm above zero, blue below); without, blocks stand under them (▁ to █ above zero, ░▒▓ below).
 */

/** How strips are drawn. */
export interface StripStyle {
  readonly color: boolean;
  /** Columns there are. */
  readonly columns: number;
}

/** A story's words, and for each read of the memory a number per word. */
export interface StoryReads {
  readonly words: readonly string[];
  readonly reads: readonly ArrayLike<number>[];
}

/** From this many words on, sentences in which nothing stands out are left out. */
const longStory = 40;
/** A word stands out from this share of the strongest on. */
const telling = 0.3;
const leftOut = "…";

interface Cell {
  readonly word: string;
  /** For each read, between -1 and 1: share of that read's strongest. */
  readonly shares: readonly number[];
}

/**
 * Draws what the reads matched, wrapped at the style's width: with colour the words once per read, without the
 * words once and a row of blocks for each read under them. No line end at the end.
 */
export function drawReads({ words, reads }: StoryReads, { color, columns }: StripStyle): string {
  const strongest = reads.map((values) =>
    words.reduce((most, _, i) => Math.max(most, Math.abs(values[i]!)), 0),
  );
  const cells = words.map((word, i) => ({
    word,
    shares: reads.map((values, r) => (strongest[r]! > 0 ? values[i]! / strongest[r]! : 0)),
  }));
  const labels = reads.map((_, r) => `  read ${r + 1}  `);
  const margin = Math.max(0, ...labels.map(({ length }) => length));
  const wrapped = (all: readonly Cell[]) => wrap(abridged(all), Math.max(10, columns - margin));
  const lines = color
    ? labels.flatMap((label, r) =>
        wrapped(cells.map(({ word, shares }) => ({ word, shares: [shares[r]!] }))).map(
          (line, i) =>
            (i === 0 ? label : "").padEnd(margin) +
            line.map(({ word, shares }) => coloured(word, shares[0]!)).join(" "),
        ),
      )
    : wrapped(cells).flatMap((line) => [
        " ".repeat(margin) + line.map(({ word }) => word).join(" "),
        ...labels.map(
          (label, r) =>
            label.padEnd(margin) +
            line.map(({ word, shares }) => block(shares[r]!).repeat(word.length)).join(" "),
        ),
      ]);
  return lines.map((line) => line.trimEnd()).join("\n");
}

/** A row of numbers under words, and what it is called. */
export interface Strip {
  readonly label: string;
  /** A number per word. */
  readonly values: readonly number[];
  /** The number that is drawn strongest. */
  readonly most: number;
}

/** Draws rows of numbers with their words, all rows of a line together; no line end at the end. */
export function drawStrips(
  words: readonly string[],
  strips: readonly Strip[],
  { color, columns }: StripStyle,
): string {
  const cells = words.map((word, i) => ({
    word,
    shares: strips.map(({ values, most }) => (most > 0 ? values[i]! / most : 0)),
  }));
  const margin = 2 + Math.max(0, ...strips.map(({ label }) => label.length)) + 2;
  const row = (label: string, cell: (cell: Cell) => string) => (line: readonly Cell[]) =>
    `  ${label}`.padEnd(margin) + line.map(cell).join(" ");
  const rows = color
    ? strips.map(({ label }, r) => row(label, ({ word, shares }) => coloured(word, shares[r]!)))
    : [
        row("", ({ word }) => word),
        ...strips.map(({ label }, r) =>
          row(label, ({ word, shares }) => block(shares[r]!).repeat(word.length)),
        ),
      ];
  const lines = wrap(cells, Math.max(10, columns - margin));
  return lines.map((line) => rows.map((draw) => draw(line).trimEnd()).join("\n")).join("\n\n");
}

/** A share of 1 as a bar of `width` columns, in eighths of a column. */
export function drawBar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * width * 8);
  return "█".repeat(Math.floor(eighths / 8)) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]!;
}

/** The cells, without sentences in which nothing stands out if there are many; runs of them become one mark. */
function abridged(cells: readonly Cell[]): Cell[] {
  if (cells.length < longStory) return [...cells];
  const kept: Cell[] = [];
  for (const sentence of sentences(cells)) {
    if (sentence.some(({ shares }) => shares.some((share) => Math.abs(share) >= telling)))
      kept.push(...sentence);
    else if (kept.at(-1)?.word !== leftOut)
      kept.push({ word: leftOut, shares: cells[0]!.shares.map(() => 0) });
  }
  return kept;
}

/** Cells up to each "." and "?"; the answer after a "?" begins the next. */
function sentences(cells: readonly Cell[]): Cell[][] {
  const all: Cell[][] = [[]];
  for (const cell of cells) {
    all.at(-1)!.push(cell);
    if (cell.word === "." || cell.word === "?") all.push([]);
  }
  return all.filter(({ length }) => length > 0);
}

function wrap(cells: readonly Cell[], width: number): Cell[][] {
  const lines: Cell[][] = [[]];
  let used = 0;
  for (const cell of cells) {
    if (used > 0 && used + 1 + cell.word.length > width) {
      lines.push([]);
      used = 0;
    }
    used += (used > 0 ? 1 : 0) + cell.word.length;
    lines.at(-1)!.push(cell);
  }
  return lines;
}

function block(share: number): string {
  const strength = Math.abs(share);
  if (strength < 1 / 16) return " ";
  return share > 0
    ? "▁▂▃▄▅▆▇█"[Math.min(7, Math.floor(strength * 8))]!
    : "░▒▓"[Math.min(2, Math.floor(strength * 3))]!;
}

// Background and text of the 256 colours, weakest first: brighter is stronger, on dark and on light terminals.
const warm = ["48;5;94;38;5;15", "48;5;136;38;5;15", "48;5;178;38;5;16", "48;5;220;38;5;16"];
const cool = ["48;5;24;38;5;15", "48;5;31;38;5;15", "48;5;74;38;5;16", "48;5;117;38;5;16"];

function coloured(word: string, share: number): string {
  const level = Math.min(3, Math.floor((Math.abs(share) - 0.15) / 0.2125));
  if (level < 0) return word;
  return `\u001b[${(share > 0 ? warm : cool)[level]}m${word}\u001b[0m`;
}
