/** Curves as an SVG figure. */
import type { TopLevelSpec } from "vega-lite";
import { mean } from "../statistics.ts";
import type { RunResult } from "./result.ts";
import { colors, drawSpec, textWidth } from "./vega.ts";

/** One line of a figure. */
export interface FigureLine {
  /**
   * What the legend says. Lines of one name are the seeds of one setting: drawn faintly in one colour, with their mean
   * and a band from the lowest to the highest.
   */
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
  /** Whether x is measured, as hours are; by default it counts whole things, such as steps. */
  readonly continuous?: boolean;
  readonly lines: readonly FigureLine[];
  readonly marks?: readonly FigureMark[];
  /** Format of the y axis: a share is shown in per cent. */
  readonly percent?: boolean;
  /** Lowest and highest value of the y axis; by default those of the lines and marks. */
  readonly range?: readonly [number, number];
  /** Size of the plot in pixels, without title, labels and legend. */
  readonly width?: number;
  readonly height?: number;
}

const dashes = { solid: [1, 0], dashed: [4, 3], circles: [1, 0], squares: [1, 0] } as const;
const symbols = { solid: "stroke", dashed: "stroke", circles: "circle", squares: "square" } as const;

/** A point of a line; `low` and `high` bound the band of several seeds there. */
interface Band {
  readonly x: number;
  readonly y: number;
  readonly low: number;
  readonly high: number;
}

/** The figure as SVG text. */
export function drawFigure(figure: FigureSpec): Promise<string> {
  return drawSpec(specOf(figure));
}

const titleSize = 14;
const labelSize = 10;

function specOf(figure: FigureSpec): TopLevelSpec {
  const { lines, marks = [], width = 640, height = 320 } = figure;
  const kinds = lines.filter(({ name }, i) => lines.findIndex((line) => line.name === name) === i);
  const names = kinds.map(({ name }) => name);
  const looks = kinds.map(({ look = "solid" }) => look);
  const isJoined = (name: string): boolean => symbols[looks[names.indexOf(name)]!] === "stroke";
  const groups = names.map((name) => ({ name, members: lines.filter((line) => line.name === name) }));
  const means = groups
    .filter(({ name, members }) => members.length > 1 && isJoined(name))
    .flatMap(({ name, members }) => bandOf(members).map((point) => ({ line: name, one: name, ...point })));
  const averaged = new Set(means.map(({ line }) => line));
  const values = lines.flatMap(({ name, points }, one) =>
    points.map(({ x, y }) => ({ line: name, one, x, y, alone: points.length === 1 })),
  );
  const of = (wanted: (value: (typeof values)[number]) => boolean) => ({ values: values.filter(wanted) });

  const byLine = <R>(range: readonly R[]) => ({
    field: "line",
    type: "nominal" as const,
    title: null,
    legend: legendOf(names, width),
    sort: names,
    scale: { domain: names, range: [...range] as never },
  });
  const place = {
    x: {
      field: "x",
      type: "quantitative" as const,
      title: figure.x,
      axis: { grid: false, format: ",~r", ...(figure.continuous ? {} : { tickMinStep: 1 }) },
      scale: { domain: extent(values.map(({ x }) => x)), nice: true },
    },
    y: {
      field: "y",
      type: "quantitative" as const,
      title: figure.y,
      // "~" leaves out zeros at the end: 85% and 85.5%, 1 and 1.5.
      axis: { format: figure.percent ? "~%" : ",~r", titlePadding: 8 },
      scale: figure.range
        ? { domain: [...figure.range], nice: false }
        : { domain: extent([...values, ...marks].map(({ y }) => y)), nice: true },
    },
  };
  const shades = kinds.map(({ color }, i) => colors[(color ?? i) % colors.length]!);
  const at = { ...place, detail: { field: "one", type: "nominal" as const } };
  const named = { ...at, color: byLine(shades) };
  const joined = { ...named, strokeDash: byLine(looks.map((look) => dashes[look])) };
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    width,
    height,
    background: "white",
    title: {
      text: wrapped(figure.title, width, titleSize),
      ...(means.length > 0 ? { subtitle: "lines: mean over seeds; bands: lowest to highest" } : {}),
      anchor: "start",
      fontSize: titleSize,
    },
    layer: [
      // Bands, faint lines and single points have their colour by name: the legend shows the lines.
      ...names.map((name, i) => ({
        data: { values: means.filter(({ line }) => line === name) },
        mark: { type: "area" as const, opacity: 0.15, color: shades[i]! },
        encoding: { x: place.x, y: { ...place.y, field: "low" }, y2: { field: "high" } },
      })),
      ...names.map((name, i) => ({
        data: of(({ line, alone }) => line === name && averaged.has(line) && !alone),
        mark: { type: "line" as const, strokeWidth: 1, opacity: 0.4, color: shades[i]! },
        encoding: at,
      })),
      { data: { values: means }, mark: { type: "line", strokeWidth: 2 }, encoding: joined },
      {
        data: of(({ line }) => isJoined(line) && !averaged.has(line)),
        mark: { type: "line", strokeWidth: 2 },
        encoding: joined,
      },
      // A line of one point would not be seen.
      ...names.map((name, i) => ({
        data: of(({ line, alone }) => line === name && isJoined(line) && alone),
        mark: { type: "point" as const, filled: true, size: 50, opacity: 1, color: shades[i]! },
        encoding: at,
      })),
      {
        data: of(({ line }) => !isJoined(line)),
        mark: { type: "point", filled: false, size: 40, opacity: 1, strokeWidth: 2 },
        encoding: { ...named, shape: byLine(looks.map((look) => symbols[look])) },
      },
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
    ].filter(({ data }) => data.values.length > 0) as never,
  };
}

/** As many columns of names as fit under the plot. */
function legendOf(names: readonly string[], width: number) {
  const symbol = 30;
  const column = symbol + Math.max(0, ...names.map((name) => textWidth(name, labelSize)));
  const columns = names.length > 4 && 2 * column <= width ? 2 : 1;
  return {
    orient: "bottom" as const,
    labelLimit: 0,
    direction: "vertical" as const,
    columns,
    columnPadding: symbol,
    symbolSize: 140,
    symbolStrokeWidth: 2,
  };
}

/** Lowest and highest of some numbers; around a single one there is room, or nothing could be drawn. */
function extent(values: readonly number[]): [number, number] {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return [0, 1];
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const room = low === high ? Math.abs(low) / 10 || 1 : 0;
  return [low - room, high + room];
}

/** Mean, lowest and highest of lines wherever all of them have a value, straight between their points. */
function bandOf(lines: readonly FigureLine[]): Band[] {
  const places = [...new Set(lines.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => a - b);
  return places.flatMap((x) => {
    const there = lines.map(({ points }) => valueAt(points, x));
    if (there.includes(undefined)) return [];
    const values = there as number[];
    return [{ x, y: mean(values), low: Math.min(...values), high: Math.max(...values) }];
  });
}

/** A line at x, straight between its points; undefined before the first and after the last. */
function valueAt(points: FigureLine["points"], x: number): number | undefined {
  const after = points.findIndex((point) => point.x >= x);
  const [left, right] = [points[after - 1], points[after]];
  if (!right) return undefined;
  if (right.x === x) return right.y;
  return left && left.y + ((right.y - left.y) * (x - left.x)) / (right.x - left.x);
}

/** A bold text in lines that are no wider than this; a single long word stays whole. */
function wrapped(text: string, width: number, size: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && textWidth(longer, size, "bold") <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** "seed 1", or "seeds 1, 2 and 3". */
export function showSeeds(seeds: readonly number[]): string {
  const sorted = [...new Set(seeds)].sort((a, b) => a - b);
  return sorted.length === 1
    ? `seed ${sorted[0]}`
    : `seeds ${sorted.slice(0, -1).join(", ")} and ${sorted.at(-1)}`;
}

/** A run that is drawn beside others. */
type DrawnRun = Pick<RunResult, "experiment" | "seed" | "settings" | "initFrom">;

/** What a figure calls each run: runs that differ in the seed alone share a name, and become one mean with a band. */
export function runNames(results: readonly DrawnRun[]): string[] {
  const keys = results.map(({ experiment, settings, initFrom }) =>
    JSON.stringify([experiment, settings, initFrom], (key, value: unknown) =>
      key === "seed" ? undefined : value,
    ),
  );
  return results.map(({ experiment }, i) => {
    const seeds = results.filter((_, k) => keys[k] === keys[i]).map(({ seed }) => seed);
    return `${experiment}, ${showSeeds(seeds)}`;
  });
}
