/** Runs side by side: curves, tasks, and the settings they differ in. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { taskNames } from "../../src/babi/format.ts";
import type { CompareAnswer, RunSummary } from "../../src/studio/api.ts";
import { call } from "../api.ts";
import { CurveChart } from "../components/curveChart.tsx";
import { seriesColor } from "../components/lineChart.tsx";
import { ScrollArea } from "../components/scrollArea.tsx";
import { Empty, Failed, Loading } from "../components/states.tsx";
import { about, kindOf } from "../live.ts";
import { query, setQuery } from "../router.ts";
import { theme, token } from "../theme.ts";
import { CurveStore, type RunCurves } from "./curveStore.ts";
import type { Curve } from "./scene.ts";
import { axes, type XAxis } from "./view.ts";

/** Dashes tell runs apart after the colours have been used up. */
const dashes: readonly (readonly number[])[] = [[], [7, 4], [2, 3], [10, 3, 2, 3]];

/** The comparison. */
export function Compare({
  all,
  selected,
}: {
  all: ReadonlyMap<string, RunSummary>;
  selected: readonly string[];
}) {
  const store = useMemo(() => new CurveStore(), []);
  const state = query.value;
  const chosen = selected.map((name) => all.get(name)!);
  const kind = kindOf(chosen[0]?.kind ?? null);
  const fallback = `valid/${kind?.headline ?? "loss"}`;
  const series = state.get("series") ?? fallback;
  const smoothing = Math.min(0.99, Math.max(0, Number(state.get("smooth") ?? 0) || 0));
  const x: XAxis = (["tokens", "hours"] as const).find((axis) => axis === state.get("x")) ?? "step";
  const [logX, logY] = [state.get("logx") === "1", state.get("logy") === "1"];
  const versions = chosen.map(({ name, metricsVersion }) => `${name} ${metricsVersion}`).join("\n");
  useEffect(() => {
    store.want({
      runs: chosen.map(({ name, metricsVersion }) => ({ name, version: metricsVersion })),
      series,
      smoothing,
    });
    // `versions` says all that matters of `chosen`.
  }, [store, versions, series, smoothing]);
  const { comparison, error } = useComparison(chosen);

  const curves = store.curves.value;
  const look = theme.value;
  const drawn = useMemo((): readonly Curve[] => {
    const found = selected.flatMap((name, i) => {
      const of = curves.get(name);
      const points = of?.series[series];
      if (!of || !points) return [];
      return [
        {
          name,
          color: token(seriesColor(i)),
          dash: dashes[Math.floor(i / 8) % dashes.length]!,
          x: xValues(of, points, x),
          y: points.values,
          smoothed: smoothing > 0 ? points.smoothed : undefined,
        },
      ];
    });
    const published = x === "step" ? (comparison?.published ?? []) : [];
    const last = Math.max(0, ...found.map((curve) => curve.x.at(-1) ?? 0));
    const theirs = published
      .filter((line) => line.series === series && line.curve.length > 0)
      .map((line) => {
        const shown = line.curve.filter(({ step }) => step <= last);
        return {
          name: `${line.name.includes("log") ? line.name : "authors' run"} (published)`,
          color: token("--muted"),
          dash: [],
          x: shown.map(({ step }) => step),
          y: shown.map(({ value }) => value),
          dots: true,
        };
      })
      .filter((curve) => curve.x.length > 0);
    return [...found, ...theirs];
    // The colours are the theme's.
  }, [curves, selected.join("\n"), series, smoothing, x, comparison, look]);
  const lines = useMemo(
    () =>
      (comparison?.published ?? [])
        .filter((line) => line.series === series && line.value !== null)
        .map(({ name, value }) => ({ name, y: value! })),
    [comparison, series],
  );
  const available = [
    ...new Set([fallback, ...selected.flatMap((name) => curves.get(name)?.available ?? [])]),
  ];
  const measure = kind?.measures[series.slice(series.indexOf("/") + 1)];
  const percent = measure?.percent ?? series.endsWith("accuracy");
  const xAxis = useMemo(
    () => ({
      label: x === "step" ? (kind?.unit === "episode" ? "episodes" : "steps") : axes[x],
      log: logX,
      percent: false,
    }),
    [x, kind?.unit, logX],
  );
  const yAxis = useMemo(
    () => ({ label: series, log: logY, percent: percent && !logY }),
    [series, logY, percent],
  );

  if (selected.length === 0) {
    return (
      <section class="panel" aria-label="Comparison">
        <Empty title="Nothing to compare">
          <p>Tick runs in the table to see their curves.</p>
        </Empty>
      </section>
    );
  }
  return (
    <>
      <section class="panel" aria-label="Curves">
        <div class="row end controls">
          <label class="field grow">
            Measure
            <select
              value={series}
              onChange={({ currentTarget }) => setQuery({ series: currentTarget.value })}
            >
              {[...available].sort(bySplit).map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <label class="field">
            Over
            <select value={x} onChange={({ currentTarget }) => setQuery({ x: currentTarget.value })}>
              {Object.entries(axes).map(([name, label]) => (
                <option key={name} value={name}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          <label class="field smoothing">
            <span class="numbers">Smoothing {smoothing.toFixed(2)}</span>
            <input
              type="range"
              min={0}
              max={0.99}
              step={0.01}
              value={smoothing}
              onInput={({ currentTarget }) =>
                setQuery({ smooth: currentTarget.value === "0" ? undefined : currentTarget.value })
              }
            />
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={logX}
              onChange={({ currentTarget }) => setQuery({ logx: currentTarget.checked ? "1" : undefined })}
            />
            log x
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={logY}
              onChange={({ currentTarget }) => setQuery({ logy: currentTarget.checked ? "1" : undefined })}
            />
            log y
          </label>
        </div>
        {store.error.value ? <Failed what="The curves could not be read" error={store.error.value} /> : null}
        <CurveChart
          curves={drawn}
          lines={lines}
          x={xAxis}
          y={yAxis}
          description={describe(drawn, series, xAxis.label)}
          fileName={series.replaceAll("/", "-")}
        />
        {drawn.length === 0 ? <p class="muted">No run has a value of {series} yet.</p> : null}
      </section>
      {error ? <Failed what="The runs could not be compared" error={error} /> : null}
      {comparison && comparison.tasks.length > 0 ? (
        <Tasks comparison={comparison} selected={selected} />
      ) : null}
      {comparison && selected.length > 1 ? <Differences comparison={comparison} selected={selected} /> : null}
      {comparison || error || !about.value ? null : <Loading what="Comparing" />}
    </>
  );
}

/** Settings, tasks and published numbers; asked for again when an evaluation came. */
function useComparison(chosen: readonly RunSummary[]): { comparison?: CompareAnswer; error?: unknown } {
  const state = useSignal<{ comparison?: CompareAnswer; error?: unknown }>({});
  const stamp = chosen.map(({ name, bestStep }) => `${name} ${bestStep}`).join("\n");
  useEffect(() => {
    if (chosen.length === 0) return;
    const stop = new AbortController();
    call<CompareAnswer>("compare", {
      body: { runs: chosen.map(({ name }) => name) },
      signal: stop.signal,
    }).then(
      (comparison) => {
        state.value = { comparison };
      },
      (error: unknown) => {
        if (!stop.signal.aborted) state.value = { error };
      },
    );
    return () => stop.abort();
  }, [stamp, state]);
  return state.value;
}

function xValues(
  { tokensPerStep }: RunCurves,
  { steps, hours }: RunCurves["series"][string],
  axis: XAxis,
): readonly number[] {
  if (axis === "hours") return hours;
  return axis === "tokens" && tokensPerStep !== null ? steps.map((step) => step * tokensPerStep) : steps;
}

/** Validation first, then by name, tasks by their number. */
function bySplit(a: string, b: string): number {
  const rank = (name: string): number => (name.startsWith("valid/") ? (name.includes("/task") ? 2 : 0) : 1);
  return rank(a) - rank(b) || a.localeCompare(b, "en", { numeric: true });
}

function describe(curves: readonly Curve[], series: string, x: string): string {
  const named = curves.slice(0, 5).map(({ name }) => name);
  const more = curves.length > 5 ? ` and ${curves.length - 5} more` : "";
  return `${series} over ${x} of ${named.join(", ")}${more}; the legend has the values`;
}

/** Accuracy by task, a bar per run. */
function Tasks({
  comparison: { tasks },
  selected,
}: {
  comparison: CompareAnswer;
  selected: readonly string[];
}) {
  const shown = tasks.slice(0, 8);
  const numbers = [...new Set(shown.flatMap(({ accuracy }) => Object.keys(accuracy)))].sort(
    (a, b) => Number(a) - Number(b),
  );
  return (
    <section class="panel" aria-label="Accuracy by task">
      <div class="panel-head">
        <h2>Accuracy by task</h2>
        <small>
          validation, at each run's best step{tasks.length > 8 ? `; the first 8 of ${tasks.length} runs` : ""}
        </small>
      </div>
      <ul class="curve-legend">
        {shown.map(({ run, step }) => (
          <li key={run}>
            <svg width="14" height="10" aria-hidden="true">
              <rect width="14" height="10" fill={`var(${seriesColor(selected.indexOf(run))})`} />
            </svg>
            <span class="name">{run}</span>
            <span class="muted numbers">step {step.toLocaleString("en")}</span>
          </li>
        ))}
      </ul>
      <div class="tasks">
        {numbers.map((task) => (
          <div key={task} class="task">
            <span class="task-name">
              <span class="numbers">{task}</span> {taskNames[Number(task) - 1] ?? ""}
            </span>
            <div class="task-bars">
              {shown.map(({ run, accuracy }) => {
                const value = accuracy[task];
                return value === undefined ? null : (
                  <div key={run} class="task-bar">
                    <svg
                      viewBox="0 0 100 8"
                      preserveAspectRatio="none"
                      role="img"
                      aria-label={`${run}: ${(100 * value).toFixed(1)} %`}
                    >
                      <rect class="track" width="100" height="8" />
                      <rect
                        width={100 * value}
                        height="8"
                        fill={`var(${seriesColor(selected.indexOf(run))})`}
                      />
                    </svg>
                    <span class="numbers">{(100 * value).toFixed(1)} %</span>
                  </div>
                );
              })}
            </div>
          </div>
        ))}
      </div>
    </section>
  );
}

/** Runs that a table of settings has columns for. */
const mostColumns = 12;

function Differences({ comparison, selected }: { comparison: CompareAnswer; selected: readonly string[] }) {
  const shown = selected.slice(0, mostColumns);
  return (
    <section class="panel" aria-label="Settings that differ">
      <div class="panel-head">
        <h2>Settings that differ</h2>
        {selected.length > mostColumns ? (
          <small>
            the first {mostColumns} of {selected.length} runs
          </small>
        ) : null}
      </div>
      {comparison.settings.length === 0 ? (
        <p class="muted">None: the runs have the same settings.</p>
      ) : (
        <ScrollArea label="Table of settings">
          <table class="differences">
            <thead>
              <tr>
                <th>setting</th>
                {shown.map((name, i) => (
                  <th key={name}>
                    <svg width="10" height="10" aria-hidden="true">
                      <rect width="10" height="10" fill={`var(${seriesColor(i)})`} />
                    </svg>{" "}
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {comparison.settings.map(({ key, values }) => (
                <tr key={key}>
                  <th scope="row" class="mono">
                    {key}
                  </th>
                  {values.slice(0, mostColumns).map((value, i) => (
                    <td key={shown[i]} class="mono">
                      {value === null ? "–" : value}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollArea>
      )}
    </section>
  );
}
