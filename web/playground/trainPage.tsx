/** Train: choose stories and sizes, watch accuracy on held-out stories rise, ask in the middle, save. */
import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Bars } from "../components/bars.tsx";
import { LineChart, type Series } from "../components/lineChart.tsx";
import { Failed } from "../components/states.tsx";
import { query, setQuery } from "../router.ts";
import "../style/train.css";
import { AskNow } from "./askNow.tsx";
import {
  type Choices,
  choicesFrom,
  choicesTo,
  defaultChoices,
  type SystemName,
  sameChoices,
  systemsOf,
  systemTitles,
} from "./choices.ts";
import { ChoicesForm } from "./choicesForm.tsx";
import { breakdown, call, curves, status } from "./client.ts";
import { SaveLoad } from "./saveLoad.tsx";

/** The page. */
export default function TrainPage() {
  const problem = useSignal<{ what: string; error: unknown } | null>(null);
  const choices = choicesFrom(Object.fromEntries(query.value));
  const now = status.value;
  const isCurrent = Boolean(now?.choices && sameChoices(now.choices, choices));
  const isRunning = now?.phase === "training" || now?.phase === "compiling";

  useEffect(() => {
    // Training goes on where this browser left it, unless the address asks for something else.
    if (status.peek()) return;
    const asked = choicesFrom(Object.fromEntries(query.peek()));
    call("restore", sameChoices(asked, defaultChoices) ? null : asked).then(
      async (restored) => {
        const saved = status.peek()?.choices;
        if (restored && saved) setQuery(choicesTo(saved));
        else await call("start", asked);
      },
      (error: unknown) => {
        problem.value = { what: "Training could not be prepared", error };
      },
    );
  }, [problem]);

  const command = (what: string, work: () => Promise<unknown>) => () => {
    problem.value = null;
    work().catch((error: unknown) => {
      problem.value = { what, error };
    });
  };
  const begin = async (): Promise<void> => {
    if (!isCurrent) await call("start", choices);
    await call("play", null);
  };
  return (
    <>
      <div class="page-head">
        <h1>A memory learns to chain facts</h1>
        <p>
          A Fast Weight Memory (
          <a href="https://arxiv.org/abs/2011.07831">Schlag, Munkhdalai and Schmidhuber, 2021</a>) is trained
          here, in your browser, on stories that are generated as it goes.
        </p>
      </div>
      {breakdown.value ? (
        <Failed what="Training does not run in this browser" error={breakdown.value} />
      ) : null}
      {problem.value ? <Failed what={problem.value.what} error={problem.value.error} /> : null}
      {now?.phase === "failed" ? <Failed what="Training stopped" error={now.reason} /> : null}
      <div class="columns train-columns">
        <section class="panel" aria-label="Progress">
          <div class="row">
            {isRunning ? (
              <button
                type="button"
                class="primary wide"
                onClick={command("Not paused", () => call("pause", null))}
              >
                Pause
              </button>
            ) : (
              <button
                type="button"
                class="primary wide"
                disabled={!now}
                onClick={command("Not started", begin)}
              >
                {isCurrent && (now?.step ?? 0) > 0 ? "Continue" : "Train"}
              </button>
            )}
            <button
              type="button"
              disabled={isRunning || !isCurrent}
              onClick={command("No step", () => call("step", null))}
            >
              Step
            </button>
            <button
              type="button"
              disabled={!now || (isCurrent && now.step === 0)}
              onClick={command("Not started again", () => call("start", choices))}
            >
              Start over
            </button>
            <PhaseBadge />
          </div>
          <Numbers choices={now?.choices ?? choices} />
          <AccuracyChart choices={now?.choices ?? choices} />
          <Notes isCurrent={isCurrent} />
        </section>
        <div class="stack">
          <ChoicesForm
            choices={choices}
            isRunning={isRunning}
            onChange={(change) => setQuery(choicesTo({ ...choices, ...change }))}
          />
          <TaskBars />
        </div>
      </div>
      <AskNow choices={now?.choices ?? choices} />
      <SaveLoad
        onLoaded={(loaded: Choices) => setQuery(choicesTo(loaded))}
        onFailed={(what, error) => {
          problem.value = { what, error };
        }}
      />
    </>
  );
}

/** What is going on, in a word. */
function PhaseBadge() {
  const now = status.value;
  const words = {
    idle: "ready",
    compiling: "compiling the training step, a few seconds",
    training: "training",
    paused: now?.restored ? "restored from this browser" : (now?.reason ?? "paused"),
    failed: "stopped",
  } as const;
  const kind = { idle: "", compiling: "warn", training: "good", paused: "accent", failed: "bad" } as const;
  return (
    <span class={`badge phase ${now ? kind[now.phase] : ""}`} role="status">
      {now ? words[now.phase] : "starting"}
    </span>
  );
}

function Numbers({ choices }: { choices: Choices }) {
  const now = status.value;
  const best = useComputed(() => curves.value.fwm?.at(-1));
  const point = best.value;
  const last = now?.last.fwm;
  const entries: [string, string][] = [
    ["held-out accuracy", point ? percent(point.accuracy) : "–"],
    ["training accuracy", last ? percent(last.accuracy) : "–"],
    [`step of ${choices.steps.toLocaleString("en")}`, (now?.step ?? 0).toLocaleString("en")],
    ["steps/s", now?.stepsPerSecond ? now.stepsPerSecond.toFixed(1) : "–"],
    ["elapsed", duration(now?.seconds ?? 0)],
    ["learning rate", last ? last.learningRate.toPrecision(2) : "–"],
  ];
  return (
    <dl class="figures numbers">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function AccuracyChart({ choices }: { choices: Choices }) {
  const series = systemsOf(choices).flatMap((name, i): Series[] => {
    const points = curves.value[name] ?? [];
    const x = points.map(({ step }) => step);
    return [
      { label: systemTitles[name], x, y: points.map(({ accuracy }) => accuracy), color: i },
      {
        label: `${systemTitles[name]}, training stories`,
        x,
        // Nothing was trained on before the first point.
        y: points.map(({ step, trainAccuracy }) => (step === 0 ? null : trainAccuracy)),
        color: i,
        faint: true,
      },
    ];
  });
  const last = curves.value.fwm?.at(-1);
  return (
    <LineChart
      series={series}
      x={{ label: "step", range: [0, Math.max(choices.steps, status.value?.step ?? 0)] }}
      y={{ label: "accuracy", percent: true, range: [0, 1] }}
      description={
        last
          ? `Accuracy over steps; the memory answers ${percent(last.accuracy)} of held-out questions after ${last.step} steps`
          : "Accuracy over steps; nothing has been trained yet"
      }
    />
  );
}

/** The last evaluation by task. */
function TaskBars() {
  const shown = Object.entries(curves.value).flatMap(([name, points]) => {
    const last = points?.at(-1);
    return last ? [{ name: name as SystemName, tasks: last.tasks, step: last.step }] : [];
  });
  if (shown.length === 0) return null;
  const bars = Object.keys(shown[0]!.tasks).flatMap((task) =>
    shown.map(({ name, tasks }) => ({
      label: shown.length > 1 ? `${task} ${name === "fwm" ? "FWM" : "LSTM"}` : task,
      value: tasks[task] ?? 0,
      color: name === "fwm" ? 0 : 1,
    })),
  );
  return (
    <section class="panel" aria-label="Accuracy by task">
      <div class="panel-head">
        <h2>By task</h2>
        <small>held-out stories, step {shown[0]!.step.toLocaleString("en")}</small>
      </div>
      <Bars bars={bars} label="Accuracy by task" />
    </section>
  );
}

function Notes({ isCurrent }: { isCurrent: boolean }) {
  const now = status.value;
  const saved = now?.saved;
  return (
    <ul class="notes">
      {!isCurrent && now?.choices && now.step > 0 ? (
        <li>The settings have changed: “Train” begins anew with them.</li>
      ) : null}
      <li>
        {now === null
          ? "Getting ready."
          : now.threads > 1
            ? `Trains with ${now.threads} threads.`
            : crossOriginIsolated
              ? "Trains with one thread: this machine shows one core."
              : "Trains with one thread: this page is not cross-origin isolated. Served with COOP and COEP headers it would use more."}
      </li>
      <li>
        {saved === null || saved === undefined
          ? "A checkpoint is kept in this browser every few seconds; a reload does not lose it."
          : "problem" in saved
            ? `No checkpoint is kept: ${saved.problem}.`
            : `Checkpoint of step ${saved.step.toLocaleString("en")} kept in this browser.`}
      </li>
    </ul>
  );
}

function percent(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}

function duration(seconds: number): string {
  const whole = Math.floor(seconds);
  const minutes = Math.floor(whole / 60);
  return `${minutes}:${String(whole % 60).padStart(2, "0")}`;
}
