/** Parallel coordinates: a line per member of a sweep through its settings to its result. */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { MeasureInfo, SweepMember } from "../../src/studio/api.ts";
import { showMeasure } from "./view.ts";

/** What is drawn. */
export interface ParallelProps {
  readonly members: readonly SweepMember[];
  readonly keys: readonly string[];
  readonly measure: string;
  readonly info: MeasureInfo;
  /** Told which member is pointed at, or that none is. */
  readonly onPoint: (run: string | undefined) => void;
  readonly pointed: string | undefined;
}

/** An axis: where each value stands, from 0 (bottom) to 1 (top). */
interface Axis {
  readonly label: string;
  readonly ticks: readonly { readonly text: string; readonly at: number }[];
  readonly place: (member: SweepMember) => number | undefined;
}

const size = { width: 900, height: 300, top: 30, bottom: 270, left: 60, right: 840 };

/** The drawing; better members are drawn over worse ones. */
export function Parallel({ members, keys, measure, info, onPoint, pointed }: ParallelProps) {
  const axes = useMemo(
    () => [...keys.map((key) => settingAxis(members, key)), resultAxis(members, measure, info)],
    [members, keys, measure, info],
  );
  const focused = useSignal(false);
  const x = (i: number): number =>
    axes.length === 1 ? size.left : size.left + (i * (size.right - size.left)) / (axes.length - 1);
  const y = (at: number): number => size.bottom - at * (size.bottom - size.top);
  const result = axes.at(-1)!;
  const drawn = members
    .map((member) => ({ member, quality: quality(result.place(member), info) }))
    .filter(({ quality: value }) => value !== undefined)
    .sort((a, b) => a.quality! - b.quality!);
  return (
    <div class="parallel">
      <svg
        viewBox={`0 0 ${size.width} ${size.height}`}
        role="img"
        aria-label={`Settings and ${info.label} of ${drawn.length} members`}
      >
        {drawn.map(({ member, quality: value }) => {
          const points = axes
            .map((axis, i) => `${x(i).toFixed(1)},${y(axis.place(member) ?? 0).toFixed(1)}`)
            .join(" ");
          const isPointed = pointed === member.run;
          return (
            <polyline
              key={member.run}
              points={points}
              class={isPointed ? "pointed" : undefined}
              stroke={`color-mix(in oklab, var(--series-1) ${Math.round(100 * value!)}%, var(--series-2))`}
              opacity={pointed !== undefined && !isPointed ? 0.15 : 0.35 + 0.6 * value!}
              onPointerEnter={() => onPoint(member.run)}
              onPointerLeave={() => onPoint(focused.value ? pointed : undefined)}
            />
          );
        })}
        {axes.map((axis, i) => (
          <g key={axis.label}>
            <path class="axis" d={`M${x(i)} ${size.top}V${size.bottom}`} />
            <text
              class="axis-name"
              x={x(i)}
              y={16}
              text-anchor={i === 0 ? "start" : i === axes.length - 1 ? "end" : "middle"}
            >
              {axis.label}
            </text>
            {axis.ticks.map(({ text, at }) => (
              <g key={text}>
                <path class="axis" d={`M${x(i) - 4} ${y(at)}h8`} />
                <text
                  x={i === axes.length - 1 ? x(i) + 8 : x(i) - 8}
                  y={y(at) + 4}
                  text-anchor={i === axes.length - 1 ? "start" : "end"}
                >
                  {text}
                </text>
              </g>
            ))}
          </g>
        ))}
      </svg>
    </div>
  );
}

/** From worst, 0, to best, 1. */
function quality(at: number | undefined, { better }: MeasureInfo): number | undefined {
  if (at === undefined) return undefined;
  return better === "higher" ? at : 1 - at;
}

/** Numbers stand by their size, or by their order where they grow by factors; words one above the other. */
function settingAxis(members: readonly SweepMember[], key: string): Axis {
  const label = key.replace(/^(training|system|task)\./, "");
  const all = [...new Set(members.map(({ values }) => values[key] ?? null))];
  const numbers = all.filter((value) => typeof value === "number").sort((a, b) => a - b);
  const isNumeric = numbers.length === all.length && numbers.length > 8;
  if (isNumeric) {
    const [low, high] = [numbers[0]!, numbers.at(-1)!];
    const isLog = low > 0 && high / low >= 20;
    const at = (value: number): number =>
      isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    const shown = [low, isLog ? Math.sqrt(low * high) : (low + high) / 2, high];
    return {
      label,
      ticks: shown.map((value) => ({ text: String(Number(value.toPrecision(3))), at: at(value) })),
      place: ({ values }) => at(Number(values[key])),
    };
  }
  const sorted =
    numbers.length === all.length
      ? numbers
      : [...all].sort((a, b) => String(a).localeCompare(String(b), "en", { numeric: true }));
  const at = (value: unknown): number =>
    sorted.length === 1 ? 0.5 : sorted.indexOf(value as never) / (sorted.length - 1);
  return {
    label,
    ticks: sorted.map((value) => ({ text: value === null ? "none" : String(value), at: at(value) })),
    place: ({ values }) => at(values[key] ?? null),
  };
}

function resultAxis(members: readonly SweepMember[], measure: string, info: MeasureInfo): Axis {
  const results = members.map(({ best }) => best[measure]).filter((value) => value !== undefined);
  const [low, high] = [Math.min(...results), Math.max(...results)];
  const at = (value: number): number => (high === low ? 0.5 : (value - low) / (high - low));
  const shown = high === low ? [low] : [low, (low + high) / 2, high];
  return {
    label: info.label,
    ticks:
      results.length === 0 ? [] : shown.map((value) => ({ text: showMeasure(info, value), at: at(value) })),
    place: ({ best }) => (best[measure] === undefined ? undefined : at(best[measure])),
  };
}
