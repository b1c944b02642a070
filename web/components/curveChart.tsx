/** Curves of runs on canvas: hundreds of them, with the values under the pointer, and downloads of what is seen. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import {
  type ChartSpec,
  csvOf,
  drawScene,
  type Scene,
  sceneOf,
  showValue,
  svgOf,
} from "../training/scene.ts";
import "../style/curveChart.css";
import { theme, token } from "../theme.ts";

/** What a chart is given; sizes and colours it knows itself. */
export interface CurveChartProps extends Pick<ChartSpec, "curves" | "lines" | "x" | "y"> {
  /** What is to be seen, for those who do not see it. */
  readonly description: string;
  /** Name of downloaded files, without the ending. */
  readonly fileName: string;
}

/** Curves that the legend names; the others are named under the pointer. */
const mostNamed = 24;

/** The chart, its legend and its downloads. */
export function CurveChart(props: CurveChartProps) {
  const { curves, lines, x, y, description } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const height = width.value < 600 ? 280 : 380;
  /** Where values are read, as a fraction of the plot; null: at the end. */
  const reading = useSignal<number | null>(null);
  const pointed = useSignal<number | null>(null);

  useEffect(() => {
    const host = box.current!;
    const observer = new ResizeObserver(() => {
      width.value = Math.floor(host.clientWidth);
    });
    observer.observe(host);
    return () => observer.disconnect();
  }, [width]);

  const look = theme.value;
  const scene = useMemo((): Scene | undefined => {
    if (width.value < 50) return undefined;
    // The colours are read again when the theme changes.
    const colors = {
      text: token("--muted"),
      grid: token(look === "dark" ? "--sunken" : "--line"),
      background: token("--surface"),
    };
    return sceneOf({ width: width.value, height, curves, lines, x, y, colors });
  }, [width.value, height, curves, lines, x, y, look]);

  useEffect(() => {
    if (!scene) return;
    const scale = devicePixelRatio;
    for (const each of [canvas.current!, over.current!]) {
      each.width = Math.round(scene.width * scale);
      each.height = Math.round(scene.height * scale);
      each.style.width = `${scene.width}px`;
      each.style.height = `${scene.height}px`;
    }
    drawScene(canvas.current!.getContext("2d")!, scene, scale);
  }, [scene]);

  const at =
    scene && reading.value !== null
      ? scene.plot.left + reading.value * (scene.plot.right - scene.plot.left)
      : null;
  useEffect(() => {
    const context = over.current?.getContext("2d");
    if (!context || !scene) return;
    const scale = devicePixelRatio;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, scene.width, scene.height);
    if (at === null) return;
    context.strokeStyle = token("--muted");
    context.beginPath();
    context.moveTo(at, scene.plot.top);
    context.lineTo(at, scene.plot.bottom);
    context.stroke();
    const near = pointed.value === null ? undefined : curves[pointed.value];
    if (!near) return;
    context.strokeStyle = near.color;
    context.lineWidth = 3;
    const i = indexAt(near.x, scene.x.back(at));
    const value = (near.smoothed ?? near.y)[i];
    if (value === null || value === undefined) return;
    context.beginPath();
    context.arc(scene.x.at(near.x[i]!), scene.y.at(value), 5, 0, 2 * Math.PI);
    context.stroke();
  }, [scene, at, pointed.value, curves]);

  const point = (event: PointerEvent): void => {
    if (!scene) return;
    const { left, top } = over.current!.getBoundingClientRect();
    const pixel = event.clientX - left;
    const { plot } = scene;
    reading.value = Math.max(0, Math.min(1, (pixel - plot.left) / (plot.right - plot.left)));
    pointed.value = nearest(props, scene, pixel, event.clientY - top);
  };
  const value = scene && at !== null ? scene.x.back(at) : null;
  const named = curves.slice(0, mostNamed);
  const hidden = pointed.value !== null && pointed.value >= mostNamed ? curves[pointed.value] : undefined;

  return (
    <figure class="curve-chart">
      <div
        ref={box}
        class={`curve-chart-box ${height === 280 ? "small" : ""}`}
        role="img"
        aria-label={description}
      >
        <canvas ref={canvas} />
        <canvas
          ref={over}
          class="over"
          onPointerMove={point}
          onPointerLeave={() => {
            reading.value = null;
            pointed.value = null;
          }}
        />
      </div>
      <label class="curve-chart-reader">
        <span class="numbers">
          {value === null ? `last values` : `at ${showValue(Number(value.toPrecision(4)), x)} ${x.label}`}
        </span>
        <input
          type="range"
          min={0}
          max={1}
          step={0.01}
          value={reading.value ?? 1}
          aria-label="Where to read the values"
          onInput={({ currentTarget }) => {
            reading.value = currentTarget.valueAsNumber;
          }}
        />
      </label>
      <ul class="curve-legend">
        {named.map((curve, i) => (
          <li key={curve.name} class={pointed.value === i ? "pointed" : undefined}>
            <Swatch color={curve.color} dash={curve.dash.length > 0} dots={curve.dots ?? false} />
            <span class="name">{curve.name}</span>
            <span class="numbers">{valueAt(curve, value, y)}</span>
          </li>
        ))}
        {curves.length > named.length ? (
          <li>
            <span class="muted">and {curves.length - named.length} more; </span>
            {hidden ? (
              <span class="name">
                {hidden.name} <span class="numbers">{valueAt(hidden, value, y)}</span>
              </span>
            ) : (
              <span class="muted">point at one to see its name</span>
            )}
          </li>
        ) : null}
      </ul>
      <div class="row">
        <span class="muted">Download</span>
        <button type="button" onClick={() => saveSvg(scene!, props.fileName)}>
          SVG
        </button>
        <button type="button" onClick={() => savePng(scene!, props.fileName)}>
          PNG
        </button>
        <button
          type="button"
          onClick={() =>
            save(new Blob([csvOf(curves, x.label, y.label)], { type: "text/csv" }), `${props.fileName}.csv`)
          }
        >
          CSV
        </button>
      </div>
    </figure>
  );
}

function Swatch({ color, dash, dots }: { color: string; dash: boolean; dots: boolean }) {
  return (
    <svg width="22" height="10" aria-hidden="true">
      {dots ? (
        <circle cx="11" cy="5" r="3" fill="none" stroke={color} stroke-width="1.5" />
      ) : (
        <path d="M1 5H21" stroke={color} stroke-width="3" stroke-dasharray={dash ? "5 3" : undefined} />
      )}
    </svg>
  );
}

/** Index of the last x that is not beyond a value. */
function indexAt(xs: readonly number[], value: number): number {
  let [low, high] = [0, xs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

function valueAt(
  { x, y, smoothed }: CurveChartProps["curves"][number],
  at: number | null,
  axis: ChartSpec["y"],
): string {
  if (x.length === 0) return "no values yet";
  const value = (smoothed ?? y)[at === null ? x.length - 1 : indexAt(x, at)];
  return value === null || value === undefined ? "–" : showValue(Number(value.toPrecision(5)), axis);
}

/** The curve nearest to a place; none within 30 pixels is none. */
function nearest({ curves }: CurveChartProps, scene: Scene, left: number, top: number): number | null {
  let [best, distance]: [number | null, number] = [null, 30];
  const at = scene.x.back(left);
  curves.forEach((curve, i) => {
    if (curve.x.length === 0) return;
    const value = (curve.smoothed ?? curve.y)[indexAt(curve.x, at)];
    if (value === null || value === undefined) return;
    const gap = Math.abs(scene.y.at(value) - top);
    if (gap < distance) [best, distance] = [i, gap];
  });
  return best;
}

function saveSvg(scene: Scene, name: string): void {
  save(new Blob([svgOf(scene, token("--surface"))], { type: "image/svg+xml" }), `${name}.svg`);
}

function savePng(scene: Scene, name: string): void {
  const scale = 2;
  const canvas = document.createElement("canvas");
  canvas.width = scene.width * scale;
  canvas.height = scene.height * scale;
  drawScene(canvas.getContext("2d")!, scene, scale, token("--surface"));
  canvas.toBlob((blob) => {
    if (blob) save(blob, `${name}.png`);
  });
}

/** Hands a file to the browser's downloads. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
