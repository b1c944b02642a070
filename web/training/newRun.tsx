/** A new run: what `fwm train` takes, checked as it is typed by the command's own rules. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Job, TrainPlan, TrainRequest } from "../../src/studio/api.ts";
import { call } from "../api.ts";
import { Failed, messageOf } from "../components/states.tsx";
import { about, runs } from "../live.ts";
import { setQuery } from "../router.ts";
import { CopyLine } from "./runPanel.tsx";

/** Milliseconds after the last key before the settings are checked. */
const pause = 250;

/** The form. */
export function NewRun() {
  const experiments = about.value?.experiments ?? [];
  const form = useSignal({
    experiment: "catbabi-qa-fwm",
    smoke: false,
    steps: "",
    seed: "",
    batch: "",
    name: "",
    set: "",
  });
  const plan = useSignal<TrainPlan | undefined>(undefined);
  const problem = useSignal<unknown>(undefined);
  const starting = useSignal(false);
  const change = (part: Partial<typeof form.value>): void => {
    form.value = { ...form.value, ...part };
  };
  const request = useMemo(() => requestOf(form.value), [form.value]);
  // A run of that name may come or go meanwhile.
  const count = runs.value?.size;
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      call<TrainPlan>("trainCheck", { body: request, signal: stop.signal }).then(
        (answer) => {
          plan.value = answer;
          problem.value = answer.problem === null ? undefined : new Error(answer.problem);
        },
        (reason: unknown) => {
          if (stop.signal.aborted) return;
          plan.value = undefined;
          problem.value = reason;
        },
      );
    }, pause);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [request, count, plan, problem]);
  const start = (): void => {
    starting.value = true;
    call<Job>("trainStart", { body: request })
      .then(
        ({ run }) => setQuery({ new: undefined, run }),
        (reason: unknown) => {
          problem.value = reason;
        },
      )
      .finally(() => {
        starting.value = false;
      });
  };
  const { experiment, smoke, set } = form.value;
  const chosen = experiments.find(({ name }) => name === experiment);
  const field = (key: "steps" | "seed" | "batch" | "name", label: string, placeholder: string) => (
    <label class="field">
      {label}
      <input
        value={form.value[key]}
        placeholder={placeholder}
        inputMode={key === "name" ? "text" : "numeric"}
        onInput={({ currentTarget }) => change({ [key]: currentTarget.value })}
      />
    </label>
  );
  const usual = (key: string): string => plan.value?.settings.find((each) => each.key === key)?.value ?? "";
  const unit = chosen?.kind === "metarl" ? "training.episodes" : "training.steps";
  return (
    <section class="panel" aria-label="New run">
      <div class="panel-head">
        <h2>New run</h2>
        <small>{chosen?.description ?? ""}</small>
      </div>
      <div class="new-run">
        <label class="field wide">
          Experiment
          <select
            value={experiment}
            onChange={({ currentTarget }) => change({ experiment: currentTarget.value })}
          >
            {experiments.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {field("steps", "Steps", usual(unit))}
        {field("seed", "Seed", usual("training.seed"))}
        {field("batch", "Batch", usual("training.batch") || usual("training.agents"))}
        {field("name", "Name of the run", plan.value?.name ?? "")}
        <label class="field wide">
          Changed settings, one per line
          <textarea
            class="mono"
            rows={3}
            value={set}
            placeholder="training.optimizer.learningRate=2e-3"
            spellcheck={false}
            onInput={({ currentTarget }) => change({ set: currentTarget.value })}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={smoke}
            onChange={({ currentTarget }) => change({ smoke: currentTarget.checked })}
          />
          small settings (a check, not a result)
        </label>
      </div>
      {problem.value ? <Failed what="It cannot start like this" error={messageOf(problem.value)} /> : null}
      {plan.value ? <CopyLine label="The same in a terminal" line={plan.value.command} /> : null}
      <div class="row">
        <button
          type="button"
          class="primary"
          disabled={!plan.value || problem.value !== undefined || starting.value}
          onClick={start}
        >
          {starting.value ? "Starting …" : "Start training"}
        </button>
        <button type="button" onClick={() => setQuery({ new: undefined })}>
          Cancel
        </button>
      </div>
      {plan.value ? (
        <details>
          <summary>All settings, and where each comes from</summary>
          <dl class="settings">
            {plan.value.settings.map(({ key, value, from }) => (
              <div key={key} class={from === "experiment" || from === "default" ? undefined : "changed"}>
                <dt>{key}</dt>
                <dd>
                  {value === "" ? "–" : value} <small>{from}</small>
                </dd>
              </div>
            ))}
          </dl>
        </details>
      ) : null}
    </section>
  );
}

function requestOf(
  form: Record<"experiment" | "steps" | "seed" | "batch" | "name" | "set", string> & { smoke: boolean },
): TrainRequest {
  const number = (text: string): number | undefined =>
    text.trim() === "" ? undefined : Number(text.replaceAll(/[_,\s]/g, ""));
  const numbers = Object.entries({
    steps: number(form.steps),
    seed: number(form.seed),
    batch: number(form.batch),
  });
  const set = form.set
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  return {
    experiment: form.experiment,
    ...(form.smoke ? { smoke: true } : {}),
    ...Object.fromEntries(numbers.filter(([, value]) => value !== undefined)),
    ...(form.name.trim() === "" ? {} : { name: form.name.trim() }),
    ...(set.length === 0 ? {} : { set }),
  };
}
