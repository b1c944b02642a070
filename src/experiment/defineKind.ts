/** Declares a kind: what it does not say of itself is presented from its measures. */
import { elapsed, summary } from "../bench/measure.ts";
import { cardHead } from "../report/card.ts";
import { runNames } from "../report/figure.ts";
import { showMeasure, table, thousands } from "../report/table.ts";
import type { BaseEvaluation, BaseSettings, Kind, Measure } from "./kind.ts";

/** The parts of a kind that have a default. */
type Presented =
  | "renamed"
  | "use"
  | "published"
  | "show"
  | "showLine"
  | "card"
  | "figure"
  | "benchRows"
  | "bench";

/** What a kind has to say of itself, and may. */
export type KindSpec<S extends BaseSettings, E extends BaseEvaluation, P> = Omit<Kind<S, E, P>, Presented> &
  Partial<Pick<Kind<S, E, P>, Presented>>;

/** Declares a kind of experiment. */
export function defineKind<S extends BaseSettings, E extends BaseEvaluation, P>(
  spec: KindSpec<S, E, P>,
): Kind<S, E, P> {
  const { measures, unit, headline } = spec;
  /** The measures that an evaluation has as plain numbers. */
  const reached = (evaluation: E): [name: string, measure: Measure, value: number][] =>
    Object.entries(measures).flatMap(([name, measure]) => {
      const value = (evaluation as unknown as Readonly<Record<string, unknown>>)[name];
      return typeof value === "number" ? [[name, measure, value] as [string, Measure, number]] : [];
    });
  return {
    renamed: {},
    use: "fwm eval",
    published: () => null,
    show: (evaluation) =>
      `${evaluation.model}${evaluation.step === null ? "" : `, after ${thousands(evaluation.step)} ${unit}s`}\n\n` +
      table([
        ["", evaluation.split],
        ...reached(evaluation).map(([, measure, value]) => [measure.label, showMeasure(measure, value)]),
      ]),
    showLine: (evaluation) =>
      `${evaluation.split}: ${reached(evaluation)
        .map(([, measure, value]) => `${measure.label} ${showMeasure(measure, value)}`)
        .join(", ")}`,
    card: (result, evaluation, about) =>
      cardHead(result, about, unit, {
        score: reached(evaluation).map(([, measure, value]) => [
          `${measure.label}, ${evaluation.split}`,
          `**${showMeasure(measure, value)}**`,
        ]),
        amount: `of ${spec.name}`,
      }),
    figure: (runs) =>
      Promise.resolve({
        title: `Validation ${measures[headline]!.label}`,
        x: unit,
        y: measures[headline]!.label,
        percent: measures[headline]!.percent ?? false,
        lines: runs.map(({ result }, i) => ({
          name: runNames(runs.map((run) => run.result))[i]!,
          points: (result.curves.valid ?? []).map(({ step, values }) => ({ x: step, y: values[headline]! })),
        })),
      }),
    benchRows: (settings) => [{ label: { system: settings.system.name }, settings }],
    async bench({ label, settings }, { steps, threads }) {
      const session = await spec.open(settings, { env: process.env, ...(threads ? { threads } : {}) });
      try {
        const warmup = 2;
        const times: number[] = [];
        let work = 0;
        for (let step = 0; step < warmup + steps; step++) {
          const ms = await elapsed(async () => {
            work = (await session.step(step)).work;
          });
          if (step >= warmup) times.push(ms);
        }
        const { median: stepMs, least: leastMs } = summary(times);
        const peakMemoryMB = process.resourceUsage().maxRSS / 1024;
        return {
          label,
          perSecond: (1000 * work) / stepMs,
          stepMs,
          leastMs,
          peakMemoryMB,
          gflops: null,
          shareOfPeak: null,
          parts: {},
        };
      } finally {
        await session.release();
      }
    },
    ...spec,
  };
}
