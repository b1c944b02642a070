/** Words in coloured cells: how surprising each was for two models, and the difference; an SVG figure. */
import { drawSpec, textWidth } from "./vega.ts";

/** Words with a number per row. */
export interface WordPassage {
  readonly title: string;
  readonly words: readonly string[];
  /** The first two rows, which share a scale from 0 on. */
  readonly values: readonly [readonly number[], readonly number[]];
  /** The third row, on a scale around 0. */
  readonly difference: readonly number[];
}

/** What a figure of words shows. */
export interface WordFigure {
  readonly title: string;
  /** Names of the three rows. */
  readonly rows: readonly [string, string, string];
  /** Titles of the two scales. */
  readonly scales: readonly [string, string];
  readonly passages: readonly WordPassage[];
  /** Pixels that a line of words may take. */
  readonly width?: number;
}

const fontSize = 10;
const cellHeight = 16;
const lineGap = 10;
const titleHeight = 22;
const legend = { gradientLength: 90 };

interface Cell {
  readonly x: number;
  readonly x2: number;
  readonly y: number;
  readonly y2: number;
  readonly word: string;
  readonly value: number;
}

interface Label {
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

/** The figure as SVG text. */
export function drawWords(figure: WordFigure): Promise<string> {
  const { width = 900, scales } = figure;
  const { losses, differences, labels, titles, height } = layOut(figure, width);
  const most = (cells: readonly Cell[]): number =>
    cells.reduce((top, { value }) => Math.max(top, Math.abs(value)), 0) || 1;
  const span = most(differences);
  const place = {
    x: { field: "x", type: "quantitative" as const, scale: { domain: [0, width], nice: false }, axis: null },
    y: {
      field: "y",
      type: "quantitative" as const,
      scale: { domain: [0, height], nice: false, reverse: true },
      axis: null,
    },
  };
  const cells = (values: readonly Cell[], title: string, scale: object) => ({
    data: { values: [...values] },
    mark: { type: "rect" as const, stroke: "white", strokeWidth: 1 },
    encoding: {
      ...place,
      x2: { field: "x2" },
      y2: { field: "y2" },
      color: { field: "value", type: "quantitative" as const, title, scale, legend },
    },
  });
  // Dark cells have white words.
  const words = (values: readonly Cell[], limit: number) =>
    [false, true].map((isStrong) => ({
      data: {
        values: values
          .filter(({ value }) => Math.abs(value) > 0.6 * limit === isStrong)
          .map(({ x, x2, y, y2, word }) => ({ x: (x + x2) / 2, y: (y + y2) / 2, text: word })),
      },
      mark: { type: "text" as const, fontSize, color: isStrong ? "white" : "#222222" },
      encoding: { ...place, text: { field: "text" } },
    }));
  const marks = (values: readonly Label[], mark: object) => ({
    data: { values: [...values] },
    mark: { type: "text" as const, fontSize, color: "#333333", ...mark },
    encoding: { ...place, text: { field: "text" } },
  });
  const layers = [
    cells(losses, scales[0], { scheme: "oranges", domain: [0, most(losses)] }),
    cells(differences, scales[1], { scheme: "redblue", domain: [-span, span] }),
    ...words(losses, most(losses)),
    ...words(differences, span),
    marks(labels, { align: "right", dx: -6 }),
    marks(titles, { align: "left", fontWeight: "bold" }),
  ].filter(({ data }) => data.values.length > 0);
  return drawSpec({
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    width,
    height,
    background: "white",
    title: { text: figure.title, anchor: "start", fontSize: 14 },
    layer: layers as never,
    resolve: { scale: { color: "independent" } },
    config: { view: { stroke: null } },
  });
}

/** Where every cell and label stands: lines of words, each with three rows. */
function layOut({ rows, passages }: WordFigure, width: number) {
  const [losses, differences, labels, titles]: [Cell[], Cell[], Label[], Label[]] = [[], [], [], []];
  let y = 0;
  for (const { title, words, values, difference } of passages) {
    titles.push({ x: 0, y: y + titleHeight / 2, text: title });
    y += titleHeight;
    for (const line of linesOf(words, width)) {
      rows.forEach((text, r) => {
        const top = y + r * cellHeight;
        labels.push({ x: 0, y: top + cellHeight / 2, text });
        for (const { i, x, x2 } of line) {
          const value = (r === 2 ? difference : values[r as 0 | 1])[i]!;
          const cell = { x, x2, y: top, y2: top + cellHeight, word: words[i]!, value };
          (r === 2 ? differences : losses).push(cell);
        }
      });
      y += 3 * cellHeight + lineGap;
    }
  }
  return { losses, differences, labels, titles, height: y };
}

/** Words in lines that are no wider than this, each with where it begins and ends. */
function linesOf(words: readonly string[], width: number): { i: number; x: number; x2: number }[][] {
  const lines: { i: number; x: number; x2: number }[][] = [[]];
  let x = 0;
  for (const [i, word] of words.entries()) {
    const size = textWidth(word, fontSize) + 8;
    if (x > 0 && x + size > width) {
      lines.push([]);
      x = 0;
    }
    lines.at(-1)!.push({ i, x, x2: Math.min(width, x + size) });
    x += size;
  }
  return lines;
}
