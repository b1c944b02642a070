/**
 * One writer for a terminal: lines that stay, and below them a live text (a progress bar, a frame) that is redrawn in
 * place. Standard output and standard error are mostly the same terminal, so both write through here.
 */

/** The part of a writable stream that the command line needs. */
export interface Sink {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Columns of a stream's terminal; 80 where it is none or does not know its size. */
export function columnsOf({ columns }: Sink): number {
  return columns || 80;
}

/** What is on the terminal now. */
export class Screen {
  #live: { readonly sink: Sink; readonly text: string } | undefined;

  /** Writes whole lines, above the live text if there is one. */
  write(sink: Sink, text: string): void {
    const live = sink.isTTY === true ? this.#live : undefined;
    if (live) this.clear();
    sink.write(text);
    if (live) this.draw(live.sink, live.text);
  }

  /** Shows a live text in the place of the one before. Its last line has no end: the cursor stays there. */
  draw(sink: Sink, text: string): void {
    sink.write(this.#erasure() + text);
    this.#live = { sink, text };
  }

  /** Takes the live text away. */
  clear(): void {
    this.#live?.sink.write(this.#erasure());
    this.#live = undefined;
  }

  /** Leaves the live text where it is; what follows stands below. */
  keep(): void {
    this.#live?.sink.write("\n");
    this.#live = undefined;
  }

  /** To the first line of the live text, and erase from there on; a ^C that the terminal echoed goes as well. */
  #erasure(): string {
    if (!this.#live) return "";
    const { sink, text } = this.#live;
    const rows = text
      .split("\n")
      .reduce((sum, line) => sum + Math.max(1, Math.ceil(visibleLength(line) / columnsOf(sink))), 0);
    return `\r${rows > 1 ? `${escapeMark}[${rows - 1}A` : ""}${escapeMark}[J`;
  }
}

const escapeMark = "\u001b";

/** Matches the codes of colours. */
export const colorCode = new RegExp(`(${escapeMark}\\[[\\d;]*m)`);

/** Columns that a line takes; its colours take none. */
function visibleLength(line: string): number {
  return [...line.replaceAll(new RegExp(colorCode, "g"), "")].length;
}
