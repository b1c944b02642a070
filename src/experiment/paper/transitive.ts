/**
 * The paper's figure of transitive inference, by the shipped model: at "?" each read's query is compared with the write keys
 * of every word before. In the paper's the first read finds the question, the next the animal's kind, the last its fear.
 */
import { printable } from "../../errors.ts";
import { loadModel } from "../../inference/load.ts";

/** A story of task 15, in the words of the paper's figure. */
const story =
  "mice are afraid of wolves . cats are afraid of sheep . gertrude is a mouse . winona is a cat . " +
  "sheep are afraid of wolves . emily is a sheep . wolves are afraid of mice . jessica is a cat .";
const question = "what is gertrude afraid of ?";

/** What the model answered, and how strongly each read matched each word: 1 is a read's strongest. */
export interface TransitiveTrace {
  readonly words: readonly string[];
  readonly answer: string;
  readonly probability: number;
  readonly rows: readonly { readonly name: string; readonly shares: readonly number[] }[];
}

/** Shares are rounded to this, so that machines that round otherwise draw the same. */
const step = 0.05;

/** Asks a model. */
export async function traceTransitive(model: string): Promise<TransitiveTrace> {
  const loaded = await loadModel(model, { threads: 1 });
  try {
    const stream = loaded.stream();
    await stream.read(story);
    const { answers, trace } = await stream.ask(question);
    const [best] = answers;
    return {
      words: trace.words,
      answer: best!.word,
      probability: best!.probability,
      rows: trace.rows.map(({ name, values }) => {
        const most = values.reduce((top, value) => Math.max(top, Math.abs(value)), 0) || 1;
        const rounded = (value: number): number => Math.round(value / most / step) * step;
        return { name, shares: Array.from(values, (value) => Number(rounded(value).toFixed(2))) };
      }),
    };
  } finally {
    await loaded.release();
  }
}

const cell = { height: 20, padding: 8, letter: 6.6, font: 11 } as const;
const margin = { left: 60, top: 34, gap: 18 } as const;
const lineWidth = 860;

/** The trace as an SVG: a cell for every word and read, in lines of words. */
export function drawTransitive({ words, answer, probability, rows }: TransitiveTrace): string {
  const widths = words.map((word) => word.length * cell.letter + cell.padding);
  const lines: number[][] = [[]];
  let used = 0;
  widths.forEach((width, i) => {
    if (used + width > lineWidth) {
      lines.push([]);
      used = 0;
    }
    lines.at(-1)!.push(i);
    used += width;
  });
  const height = (rows.length + 1) * cell.height + margin.gap;
  const parts = lines.flatMap((line, l) => {
    const top = margin.top + l * height;
    let x: number = margin.left;
    const cells = line.flatMap((i) => {
      const left = x;
      x += widths[i]!;
      return [
        `<text x="${round(left + cell.padding / 2)}" y="${top + 14}">${escaped(words[i]!)}</text>`,
        ...rows.map(
          ({ shares }, r) =>
            `<rect x="${round(left)}" y="${top + (r + 1) * cell.height}" width="${round(widths[i]! - 1)}" ` +
            `height="${cell.height - 1}" fill="${shares[i]! < 0 ? "#2f4b7c" : "#c8553d"}" ` +
            `fill-opacity="${Math.abs(shares[i]!).toFixed(2)}"/>`,
        ),
      ];
    });
    const names = rows.map(
      ({ name }, r) => `<text x="4" y="${top + (r + 1) * cell.height + 14}">${escaped(name)}</text>`,
    );
    return [...names, ...cells];
  });
  const size = { width: margin.left + lineWidth + 10, height: margin.top + lines.length * height };
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" ` +
      `viewBox="0 0 ${size.width} ${size.height}" font-family="sans-serif" font-size="${cell.font}">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    `<text x="4" y="18" font-size="14" font-weight="bold">Which words each read of the memory matched at "?"; ` +
      `the answer: ${escaped(answer)} (${Math.round(100 * probability)} %)</text>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

function round(value: number): string {
  return value.toFixed(1);
}

function escaped(text: string): string {
  return printable(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
