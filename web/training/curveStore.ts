/** The curves of runs that are looked at: fetched once, then only what is new. */
import { batch, signal } from "@preact/signals";
import {
  limits,
  type MetricsAnswer,
  type MetricsRequest,
  type RunMetrics,
  type SeriesPoints,
} from "../../src/studio/api.ts";
import { keptIndices } from "../../src/studio/series.ts";
import { call } from "../api.ts";

/** What is known of the curves of a run. */
export interface RunCurves {
  readonly tokensPerStep: number | null;
  readonly available: readonly string[];
  readonly series: Readonly<Record<string, SeriesPoints>>;
}

/** What of the curves is wanted; another wish is another fetch. */
export interface CurveWish {
  readonly runs: readonly { readonly name: string; readonly version: number }[];
  readonly series: string;
  readonly smoothing: number;
}

/** Points of a curve that are asked for: about one per pixel. */
const points = 800;

/** Keeps the curves of one chart up to date. */
export class CurveStore {
  /** By run. */
  readonly curves = signal<ReadonlyMap<string, RunCurves>>(new Map());
  readonly error = signal<unknown>(undefined);
  /** Requests and points received: what a live chart costs. */
  readonly received = { requests: 0, points: 0 };
  private cursors = new Map<string, { readonly cursor: string; readonly version: number }>();
  private what = "";
  private wish: CurveWish | undefined;
  private isFetching = false;

  /** Says what is wanted now; what is missing of it is fetched. */
  want(wish: CurveWish): void {
    const what = JSON.stringify([wish.series, wish.smoothing]);
    if (what !== this.what) this.cursors.clear();
    this.what = what;
    this.wish = wish;
    void this.fetch();
  }

  private async fetch(): Promise<void> {
    if (this.isFetching) return;
    this.isFetching = true;
    try {
      for (let part = this.missing(); part.length > 0; part = this.missing()) await this.fetchPart(part);
      this.error.value = undefined;
    } catch (error) {
      this.error.value = error;
    } finally {
      this.isFetching = false;
    }
  }

  /** Runs that have more than was fetched; as many as one request may ask for, and small first answers. */
  private missing(): CurveWish["runs"] {
    const behind = (this.wish?.runs ?? []).filter(
      ({ name, version }) => this.cursors.get(name)?.version !== version,
    );
    return behind.slice(0, Math.min(50, limits.runsPerRequest));
  }

  private async fetchPart(part: CurveWish["runs"]): Promise<void> {
    const { series, smoothing } = this.wish!;
    const what = this.what;
    const body: MetricsRequest = {
      runs: part.map(({ name }) => {
        const cursor = this.cursors.get(name)?.cursor;
        return cursor === undefined ? { name } : { name, cursor };
      }),
      series: [series],
      points,
      ...(smoothing > 0 ? { smoothing } : {}),
    };
    const answer = await call<MetricsAnswer>("metrics", { body });
    // Meanwhile something else was wanted.
    if (what !== this.what) return;
    this.received.requests++;
    batch(() => {
      const next = new Map(this.curves.peek());
      for (const run of answer.runs) {
        next.set(run.name, merged(next.get(run.name), run));
        for (const { steps } of Object.values(run.series)) this.received.points += steps.length;
        this.cursors.set(run.name, {
          cursor: run.cursor,
          version: part.find(({ name }) => name === run.name)!.version,
        });
      }
      for (const name of answer.missing) {
        next.delete(name);
        this.cursors.set(name, { cursor: "", version: part.find((each) => each.name === name)!.version });
      }
      this.curves.value = next;
    });
  }
}

/** New points behind those that are there; many together are thinned out again. */
function merged(
  before: RunCurves | undefined,
  { reset, series, tokensPerStep, available }: RunMetrics,
): RunCurves {
  const all: Record<string, SeriesPoints> = reset ? {} : { ...before?.series };
  for (const [name, added] of Object.entries(series)) all[name] = thinned(joined(all[name], added));
  return { tokensPerStep, available, series: all };
}

function joined(before: SeriesPoints | undefined, added: SeriesPoints): SeriesPoints {
  if (!before) return added;
  const smoothed = added.smoothed && [...(before.smoothed ?? []), ...added.smoothed];
  return {
    steps: [...before.steps, ...added.steps],
    values: [...before.values, ...added.values],
    hours: [...before.hours, ...added.hours],
    ...(smoothed ? { smoothed } : {}),
  };
}

function thinned(all: SeriesPoints): SeriesPoints {
  if (all.steps.length <= 2 * points) return all;
  const kept = keptIndices(
    all.values.map((value) => value ?? Number.NaN),
    points,
  );
  const pick = <T>(column: readonly T[]): T[] => kept.map((i) => column[i]!);
  return {
    steps: pick(all.steps),
    values: pick(all.values),
    hours: pick(all.hours),
    ...(all.smoothed ? { smoothed: pick(all.smoothed) } : {}),
  };
}
