/** Curves on canvas by uPlot: any number of series, each with its own x, in the colours of the theme. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "../style/lineChart.css";
import { theme, token } from "../theme.ts";

/** One curve. */
export interface Series {
  readonly label: string;
  readonly x: readonly number[];
  /** null where there is no value: the line is broken there. */
  readonly y: readonly (number | null)[];
  /** Number of a series colour, from 0; they repeat after eight. */
  readonly color: number;
  /** Drawn thin and pale, below the others: the raw values of a smoothed curve. */
  readonly faint?: boolean;
  readonly dash?: boolean;
}

/** How an axis looks. */
export interface Axis {
  readonly label: string;
  readonly log?: boolean;
  /** Fractions shown in per cent. */
  readonly percent?: boolean;
  /** Fixed ends; from the data without it. */
  readonly range?: readonly [number, number];
}

/** What a chart draws. */
export interface LineChartProps {
  readonly series: readonly Series[];
  readonly x: Axis;
  readonly y: Axis;
  readonly height?: number;
  /** What is to be seen, for those who do not see it. */
  readonly description: string;
  /** Called with the chart once it is drawn, for downloads. */
  readonly onDrawn?: (chart: uPlot) => void;
}

/** Number of colours that series have. */
const colors = 8;

/** The colour of a series, as the stylesheet names it. */
export function seriesColor(color: number): `--${string}` {
  return `--series-${(color % colors) + 1}`;
}

/** The chart. Data may change all the time; it is drawn again, not made again, as long as the series stay the same. */
export function LineChart(props: LineChartProps) {
  const { series, x, y, height = 260, description } = props;
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const shape = JSON.stringify([
    series.map(({ label, color, faint, dash }) => [label, color, faint, dash]),
    x,
    y,
    height,
    theme.value,
  ]);

  useEffect(() => {
    const host = place.current!;
    const made = new uPlot(optionsOf(props, host.clientWidth, height), dataOf(series), host);
    chart.current = made;
    props.onDrawn?.(made);
    const resize = new ResizeObserver(() => {
      if (host.clientWidth > 0 && host.clientWidth !== made.width) {
        made.setSize({ width: host.clientWidth, height });
      }
    });
    resize.observe(host);
    return () => {
      resize.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [shape]);

  useEffect(() => {
    chart.current?.setData(dataOf(series));
  }, [series]);

  return (
    <figure class="line-chart" aria-label={description}>
      {/* Its height is kept while the chart is made: nothing below moves. */}
      <div ref={place} class="line-chart-canvas" data-height={height} />
    </figure>
  );
}

/** Series with x values of their own, aligned as uPlot wants them. */
function dataOf(series: readonly Series[]): uPlot.AlignedData {
  if (series.length === 0) return [[], []] as unknown as uPlot.AlignedData;
  const tables = series.map(({ x, y }) => [[...x], [...y]] as unknown as uPlot.AlignedData);
  return tables.length === 1
    ? tables[0]!
    : uPlot.join(
        tables,
        tables.map((table) => table.slice(1).map(() => 2)),
      );
}

function optionsOf({ series, x, y }: LineChartProps, width: number, height: number): uPlot.Options {
  const axis = (of: Axis, size: number): uPlot.Axis => ({
    label: of.label,
    labelSize: 20,
    labelFont: "13px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    stroke: token("--muted"),
    size,
    grid: { stroke: token("--line"), width: 1 },
    ticks: { stroke: token("--line"), width: 1 },
    values: (_, splits) => splits.map((value) => (value === null ? "" : shown(value, of))),
  });
  const scale = (of: Axis): uPlot.Scale => ({
    time: false,
    ...(of.log ? { distr: 3 } : {}),
    ...(of.range ? { range: [of.range[0], of.range[1]] } : {}),
  });
  return {
    width,
    height,
    cursor: { y: false, focus: { prox: 24 } },
    focus: { alpha: 0.35 },
    legend: { live: true },
    scales: { x: scale(x), y: scale(y) },
    axes: [axis(x, 34), axis(y, 64)],
    series: [
      { label: x.label, value: (_, value) => (value === null ? "–" : shown(value, x)) },
      ...series.map(({ label, color, faint, dash }): uPlot.Series => {
        const stroke = token(seriesColor(color));
        return {
          label,
          stroke: faint ? `color-mix(in srgb, ${stroke} 35%, transparent)` : stroke,
          width: faint ? 1 : 2,
          spanGaps: true,
          points: { show: false },
          ...(dash ? { dash: [6, 4] } : {}),
          value: (_, value) => (value === null || value === undefined ? "–" : shown(value, y)),
        };
      }),
    ],
  };
}

function shown(value: number, { percent }: Axis): string {
  if (percent) return `${Number((100 * value).toFixed(1))} %`;
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}
