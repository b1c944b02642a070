/** Curves as an SVG figure, drawn without a browser. */
import * as vega from "vega";
import { compile, type TopLevelSpec } from "vega-lite";

/** One line of a figure. */
export interface FigureLine {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

/** What a figure shows. */
export interface FigureSpec {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly lines: readonly FigureLine[];
  /** Horizontal lines with a name, e.g. the published result. */
  readonly marks?: readonly { readonly name: string; readonly y: number }[];
  /** Format of the y axis: a share is shown in per cent. */
  readonly percent?: boolean;
}

/** The figure as SVG text. */
export async function drawFigure(figure: FigureSpec): Promise<string> {
  const values = figure.lines.flatMap(({ name, points }) => points.map(({ x, y }) => ({ line: name, x, y })));
  const axis = figure.percent ? { format: ".0%" } : {};
  const spec: TopLevelSpec = {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    width: 640,
    height: 320,
    background: "white",
    title: { text: figure.title, anchor: "start", fontSize: 14 },
    layer: [
      {
        data: { values },
        mark: { type: "line", strokeWidth: 2 },
        encoding: {
          x: { field: "x", type: "quantitative", title: figure.x, axis: { grid: false } },
          y: { field: "y", type: "quantitative", title: figure.y, axis, scale: { zero: false } },
          color: {
            field: "line",
            type: "nominal",
            title: null,
            legend: { orient: "bottom", labelLimit: 400, direction: "vertical" },
            sort: figure.lines.map(({ name }) => name),
            scale: { range: ["#0b6e4f", "#c8553d", "#2f4b7c", "#8d6a9f", "#7a7a7a"] },
          },
        },
      },
      ...(figure.marks ?? []).flatMap((mark) => [
        {
          data: { values: [mark] },
          mark: { type: "rule" as const, strokeDash: [5, 4], color: "#555555" },
          encoding: { y: { field: "y", type: "quantitative" as const } },
        },
        {
          data: { values: [mark] },
          mark: { type: "text" as const, align: "left" as const, dx: 6, dy: -7, color: "#555555" },
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
