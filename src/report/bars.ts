/** Groups of bars as an SVG figure: what several models reach on each of some tasks. */
import { colors, drawSpec } from "./vega.ts";

/** What a figure of bars shows. */
export interface BarsSpec {
  readonly title: string;
  /** What the groups are, and what the height of a bar is. */
  readonly x: string;
  readonly y: string;
  /** Format of the y axis: a share is shown in per cent, up to 100 %. */
  readonly percent?: boolean;
  /** One colour each, in this order; every series has a value for each group that it has anything to say of. */
  readonly series: readonly { readonly name: string; readonly values: Readonly<Record<string, number>> }[];
  readonly width?: number;
  readonly height?: number;
}

/** The bars as SVG text. */
export function drawBars({
  title,
  x,
  y,
  percent,
  series,
  width = 900,
  height = 260,
}: BarsSpec): Promise<string> {
  const names = series.map(({ name }) => name);
  const groups = [...new Set(series.flatMap(({ values }) => Object.keys(values)))];
  const values = series.flatMap((one) =>
    Object.entries(one.values).map(([group, value]) => ({ group, name: one.name, value })),
  );
  return drawSpec({
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    width,
    height,
    background: "white",
    title: { text: title, anchor: "start", fontSize: 14 },
    data: { values },
    mark: { type: "bar" },
    encoding: {
      x: { field: "group", type: "nominal", sort: groups, title: x, axis: { labelAngle: 0 } },
      xOffset: { field: "name", type: "nominal", sort: names },
      y: {
        field: "value",
        type: "quantitative",
        title: y,
        axis: { format: percent ? "~%" : ",~r" },
        ...(percent ? { scale: { domain: [0, 1] } } : {}),
      },
      color: {
        field: "name",
        type: "nominal",
        title: null,
        sort: names,
        legend: { orient: "bottom", labelLimit: 0, columns: 2 },
        scale: { domain: names, range: names.map((_, i) => colors[i % colors.length]!) },
      },
    },
  });
}
