/** Curves as an SVG figure, drawn without a browser. */
import * as vega from "vega";
import { compile, type TopLevelSpec } from "vega-lite";

/** One line of a figure. */
export interface FigureLine {
  /** What the legend says; lines of one name look alike and stand there once. */
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
  /** A solid line by default; circles and squares are single points, not joined. */
  readonly look?: "solid" | "dashed" | "circles" | "squares";
  /** Which of the colours; lines that belong together share one. By default each has its own. */
  readonly color?: number;
}

/** A horizontal line with a name, e.g. the published result. */
export interface FigureMark {
  readonly name: string;
  readonly y: number;
  /** Where the name stands; above the line by default. */
  readonly label?: "above" | "below";
}

/** What a figure shows. */
export interface FigureSpec {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly lines: readonly FigureLine[];
  readonly marks?: readonly FigureMark[];
  /** Format of the y axis: a share is shown in per cent. */
  readonly percent?: boolean;
  /** Lowest and highest value of the y axis; by default those of the lines and marks. */
  readonly range?: readonly [number, number];
  /** Height of the axis in pixels. */
  readonly height?: number;
}

const dashes = { solid: [1, 0], dashed: [4, 3], circles: [1, 0], squares: [1, 0] } as const;
const symbols = { solid: "stroke", dashed: "stroke", circles: "circle", squares: "square" } as const;

/** Told apart side by side and on paper; beyond these they repeat. */
const colors = [
  "#0b6e4f",
  "#c8553d",
  "#2f4b7c",
  "#8d6a9f",
  "#7a7a7a",
  "#e0a526",
  "#4fa3c7",
  "#7b3f2a",
  "#8fb339",
  "#d16ba5",
  "#1f1f1f",
  "#43c59e",
];

/** The figure as SVG text. */
export async function drawFigure(figure: FigureSpec): Promise<string> {
  const { lines, marks = [], range, height = 320 } = figure;
  const values = lines.flatMap(({ name, points }, one) =>
    points.map(({ x, y }) => ({ line: name, one, x, y })),
  );
  const kinds = lines.filter(({ name }, i) => lines.findIndex((line) => line.name === name) === i);
  const names = kinds.map(({ name }) => name);
  const looks = kinds.map(({ look = "solid" }) => look);
  const dotted = new Set(names.filter((_, i) => symbols[looks[i]!] !== "stroke"));
  const axis = figure.percent ? { format: ".0%" } : {};
  const legend = {
    orient: "bottom" as const,
    labelLimit: 0,
    direction: "vertical" as const,
    columns: names.length > 4 ? 2 : 1,
    columnPadding: 30,
    symbolSize: 140,
    symbolStrokeWidth: 2,
  };
  const byLine = <R>(range: readonly R[]) => ({
    field: "line",
    type: "nominal" as const,
    title: null,
    legend,
    sort: names,
    scale: { domain: names, range: [...range] as never },
  });
  const place = {
    x: { field: "x", type: "quantitative" as const, title: figure.x, axis: { grid: false } },
    y: {
      field: "y",
      type: "quantitative" as const,
      title: figure.y,
      axis,
      scale: range ? { domain: [...range], nice: false } : { zero: false },
    },
    detail: { field: "one", type: "nominal" as const },
    color: byLine(kinds.map(({ color }, i) => colors[(color ?? i) % colors.length]!)),
  };
  const spec: TopLevelSpec = {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    width: 640,
    height,
    background: "white",
    title: { text: figure.title, anchor: "start", fontSize: 14 },
    layer: [
      {
        data: { values: values.filter(({ line }) => !dotted.has(line)) },
        mark: { type: "line", strokeWidth: 2 },
        encoding: { ...place, strokeDash: byLine(looks.map((look) => dashes[look])) },
      },
      ...(dotted.size > 0
        ? [
            {
              data: { values: values.filter(({ line }) => dotted.has(line)) },
              mark: { type: "point" as const, filled: false, size: 40, opacity: 1, strokeWidth: 2 },
              encoding: { ...place, shape: byLine(looks.map((look) => symbols[look])) },
            },
          ]
        : []),
      ...marks.flatMap((mark) => [
        {
          data: { values: [mark] },
          mark: { type: "rule" as const, strokeDash: [5, 4], color: "#555555" },
          encoding: { y: { field: "y", type: "quantitative" as const } },
        },
        {
          data: { values: [mark] },
          mark: {
            type: "text" as const,
            align: "left" as const,
            dx: 6,
            dy: mark.label === "below" ? 9 : -7,
            color: "#555555",
          },
          encoding: {
            y: { field: "y", type: "quantitative" as const },
            x: { value: 0 },
            text: { field: "name", type: "nominal" as const },
          },
        },
      ]),
    ],
  };
  const view = new vega.View(vega.parse(compile(spec).spec), { renderer: "none" });
  try {
    return await view.toSVG();
  } finally {
    view.finalize();
  }
}
