/**
 * A chart of many curves as a list of shapes, from which the screen, the PNG and the SVG are drawn: what is downloaded is
 * what was seen.
 */

/** A curve. */
export interface Curve {
  readonly name: string;
  readonly color: string;
  readonly dash: readonly number[];
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
  /** Drawn over the raw line, which is then faint. */
  readonly smoothed?: readonly (number | null)[] | undefined;
  /** Single points instead of a line: what others measured. */
  readonly dots?: boolean;
}

/** An axis. */
export interface AxisSpec {
  readonly label: string;
  readonly log: boolean;
  readonly percent: boolean;
}

/** What a chart shows. */
export interface ChartSpec {
  readonly width: number;
  readonly height: number;
  readonly curves: readonly Curve[];
  /** Horizontal lines with a name: published numbers. */
  readonly lines: readonly { readonly name: string; readonly y: number }[];
  readonly x: AxisSpec;
  readonly y: AxisSpec;
  readonly colors: { readonly text: string; readonly grid: string; readonly background: string };
}

/** Something to draw, in pixels. */
export type Shape =
  | {
      readonly kind: "path";
      readonly points: readonly (readonly [number, number])[];
      readonly stroke: string;
      readonly width: number;
      readonly opacity: number;
      readonly dash: readonly number[];
    }
  | { readonly kind: "dot"; readonly x: number; readonly y: number; readonly stroke: string }
  | {
      readonly kind: "text";
      readonly x: number;
      readonly y: number;
      readonly text: string;
      readonly anchor: "start" | "middle" | "end";
      readonly color: string;
      readonly turned?: boolean;
    };

/** A scale from values to pixels and back. */
export interface Scale {
  readonly at: (value: number) => number;
  readonly back: (pixel: number) => number;
  readonly ticks: readonly number[];
}

/** The shapes of a chart, and its scales. */
export interface Scene {
  readonly width: number;
  readonly height: number;
  readonly plot: {
    readonly left: number;
    readonly top: number;
    readonly right: number;
    readonly bottom: number;
  };
  readonly shapes: readonly Shape[];
  readonly x: Scale;
  readonly y: Scale;
}

const font = 12;

/** Lays a chart out. */
export function sceneOf(spec: ChartSpec): Scene {
  const { width, height, curves, lines, colors } = spec;
  const plot = { left: 68, top: 14, right: width - 26, bottom: height - 42 };
  const values = [
    ...curves.flatMap(({ y, smoothed }) => (smoothed ? [...y, ...smoothed] : y)),
    ...lines.map(({ y }) => y),
  ];
  const xs = extent(
    curves.flatMap(({ x }) => x),
    spec.x.log,
  );
  const x = scaleOf(
    xs,
    spec.x,
    [plot.left, plot.right],
    Math.max(3, Math.floor((plot.right - plot.left) / 90)),
  );
  const y = scaleOf(extent(values, spec.y.log), spec.y, [plot.bottom, plot.top], 6, 0.04);
  const shapes: Shape[] = [];
  const line = (
    from: readonly [number, number],
    to: readonly [number, number],
    stroke: string,
    dash: readonly number[] = [],
  ): void => {
    shapes.push({ kind: "path", points: [from, to], stroke, width: 1, opacity: 1, dash });
  };
  const text = (
    at: readonly [number, number],
    said: string,
    anchor: "start" | "middle" | "end",
    turned = false,
  ): void => {
    shapes.push({ kind: "text", x: at[0], y: at[1], text: said, anchor, color: colors.text, turned });
  };
  for (const tick of y.ticks) {
    line([plot.left, y.at(tick)], [plot.right, y.at(tick)], colors.grid);
    text([plot.left - 6, y.at(tick) + 4], showValue(tick, spec.y), "end");
  }
  for (const tick of x.ticks) {
    line([x.at(tick), plot.top], [x.at(tick), plot.bottom], colors.grid);
    text([x.at(tick), plot.bottom + 16], showValue(tick, spec.x), "middle");
  }
  text([(plot.left + plot.right) / 2, height - 6], spec.x.label, "middle");
  text([12, (plot.top + plot.bottom) / 2], spec.y.label, "middle", true);
  for (const curve of curves) shapes.push(...curveShapes(curve, x, y, spec));
  for (const { name, y: value } of lines) {
    line([plot.left, y.at(value)], [plot.right, y.at(value)], colors.text, [6, 4]);
    text([plot.right - 4, y.at(value) - 5], name, "end");
  }
  return { width, height, plot, shapes, x, y };
}

function curveShapes(curve: Curve, x: Scale, y: Scale, spec: ChartSpec): Shape[] {
  const { color, dash, smoothed } = curve;
  const place = (values: readonly (number | null)[]): (readonly [number, number])[][] => {
    const pieces: [number, number][][] = [[]];
    values.forEach((value, i) => {
      const at = curve.x[i]!;
      const isShown = value !== null && (!spec.x.log || at > 0) && (!spec.y.log || value > 0);
      if (isShown) pieces.at(-1)!.push([x.at(at), y.at(value)]);
      else if (pieces.at(-1)!.length > 0) pieces.push([]);
    });
    return pieces.filter(({ length }) => length > 0);
  };
  if (curve.dots) {
    return place(curve.y).flatMap((piece) =>
      piece.map(([left, top]): Shape => ({ kind: "dot", x: left, y: top, stroke: color })),
    );
  }
  const draw = (values: readonly (number | null)[], width: number, opacity: number): Shape[] =>
    place(values).map((points) =>
      points.length === 1
        ? { kind: "dot", x: points[0]![0], y: points[0]![1], stroke: color }
        : { kind: "path", points, stroke: color, width, opacity, dash },
    );
  return smoothed
    ? [...draw(curve.y, 1, 0.3), ...draw(smoothed, 2, 1)]
    : draw(curve.y, curve.x.length > 200 ? 1.5 : 2, 1);
}

function extent(values: readonly (number | null)[], log: boolean): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value === null || !Number.isFinite(value) || (log && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return log ? [1, 10] : [0, 1];
  if (low === high)
    return log ? [low / 2, high * 2] : [low - Math.abs(low) / 10 - 1e-9, high + Math.abs(high) / 10 + 1e-9];
  return [low, high];
}

function scaleOf(
  [low, high]: readonly [number, number],
  { log }: AxisSpec,
  [from, to]: readonly [number, number],
  ticks: number,
  room = 0,
): Scale {
  if (log) {
    const [a, b] = [Math.log10(low), Math.log10(high)];
    const pad = (b - a) * room;
    const size = (to - from) / (b - a + 2 * pad);
    return {
      at: (value) => from + (Math.log10(value) - a + pad) * size,
      back: (pixel) => 10 ** ((pixel - from) / size + a - pad),
      ticks: logTicks(low, high, ticks),
    };
  }
  const pad = (high - low) * room;
  const size = (to - from) / (high - low + 2 * pad);
  return {
    at: (value) => from + (value - low + pad) * size,
    back: (pixel) => (pixel - from) / size + low - pad,
    ticks: linearTicks(low, high, ticks),
  };
}

/** Round numbers between two values: about so many. */
export function linearTicks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough)!;
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12) + 1e-12; i++) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(low: number, high: number, count: number): number[] {
  const decades = Math.log10(high) - Math.log10(low);
  const factors = decades * 3 <= count ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(decades / count));
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    if (power % every !== 0) continue;
    for (const factor of factors) {
      const tick = factor * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(Number(tick.toPrecision(12)));
    }
  }
  // Less than a decade: round numbers say more.
  return ticks.length >= 2 ? ticks : linearTicks(low, high, count).filter((tick) => tick > 0);
}

/** A value as an axis shows it. */
export function showValue(value: number, { percent }: Pick<AxisSpec, "percent">): string {
  if (percent) return `${Number((100 * value).toPrecision(4))} %`;
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) {
    return Math.abs(value) >= 1e6 ? `${Number((value / 1e6).toPrecision(4))} M` : value.toExponential(0);
  }
  return Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));
}

/** Draws a scene on a canvas; `scale` is how many of its pixels are one of the scene's. */
export function drawScene(
  context: CanvasRenderingContext2D,
  scene: Scene,
  scale: number,
  background?: string,
): void {
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, scene.width, scene.height);
  if (background) {
    context.fillStyle = background;
    context.fillRect(0, 0, scene.width, scene.height);
  }
  context.lineJoin = "round";
  context.font = `${font}px system-ui, sans-serif`;
  for (const shape of scene.shapes) drawShape(context, shape);
}

function drawShape(context: CanvasRenderingContext2D, shape: Shape): void {
  if (shape.kind === "text") {
    context.fillStyle = shape.color;
    context.textAlign = shape.anchor === "middle" ? "center" : shape.anchor;
    if (!shape.turned) {
      context.fillText(shape.text, shape.x, shape.y);
      return;
    }
    context.save();
    context.translate(shape.x, shape.y);
    context.rotate(-Math.PI / 2);
    context.fillText(shape.text, 0, 0);
    context.restore();
    return;
  }
  context.beginPath();
  context.strokeStyle = shape.stroke;
  if (shape.kind === "dot") {
    context.lineWidth = 1.5;
    context.setLineDash([]);
    context.globalAlpha = 1;
    context.arc(shape.x, shape.y, 3, 0, 2 * Math.PI);
  } else {
    context.lineWidth = shape.width;
    context.setLineDash([...shape.dash]);
    context.globalAlpha = shape.opacity;
    shape.points.forEach(([x, y], i) => {
      if (i === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    });
  }
  context.stroke();
  context.globalAlpha = 1;
  context.setLineDash([]);
}

/** A scene as an SVG file. Every text is escaped: names of runs are texts. */
export function svgOf({ width, height, shapes }: Scene, background: string): string {
  const round = (value: number): string => value.toFixed(1);
  const drawn = shapes.map((shape) => {
    if (shape.kind === "dot") {
      return `<circle cx="${round(shape.x)}" cy="${round(shape.y)}" r="3" fill="none" stroke="${escaped(shape.stroke)}" stroke-width="1.5"/>`;
    }
    if (shape.kind === "text") {
      const { x, y, anchor, color, turned } = shape;
      const turn = turned ? ` transform="rotate(-90 ${round(x)} ${round(y)})"` : "";
      return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" fill="${escaped(color)}"${turn}>${escaped(shape.text)}</text>`;
    }
    const d = shape.points.map(([x, y], i) => `${i === 0 ? "M" : "L"}${round(x)} ${round(y)}`).join("");
    const dash = shape.dash.length > 0 ? ` stroke-dasharray="${shape.dash.join(" ")}"` : "";
    const opacity = shape.opacity < 1 ? ` opacity="${shape.opacity}"` : "";
    return `<path d="${d}" fill="none" stroke="${escaped(shape.stroke)}" stroke-width="${shape.width}"${dash}${opacity}/>`;
  });
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
    `font-family="system-ui, sans-serif" font-size="${font}">` +
    `<rect width="${width}" height="${height}" fill="${escaped(background)}"/>${drawn.join("")}</svg>\n`
  );
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** Curves as CSV: a line per point. */
export function csvOf(curves: readonly Curve[], x: string, y: string): string {
  // A name that a spreadsheet would take for a formula begins with an apostrophe there.
  const cell = (text: string): string => `"${text.replace(/^[=+@-]/, "'$&").replaceAll('"', '""')}"`;
  const rows = curves.flatMap(({ name, x: xs, y: ys, smoothed }) =>
    xs.map((at, i) => [cell(name), at, ys[i] ?? "", smoothed?.[i] ?? ""].join(",")),
  );
  return `${["run", x, y, "smoothed"].map(cell).join(",")}\n${rows.join("\n")}\n`;
}
