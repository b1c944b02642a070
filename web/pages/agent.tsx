/** Agent: an episode on a graph it has never seen, step by step, beside an explorer that forgets nothing. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ModelEntry, ModelRef, RolloutAnswer, RolloutRequest, WalkStep } from "../../src/studio/api.ts";
import { call } from "../api.ts";
import { Bars } from "../components/bars.tsx";
import { actionNames, GraphView } from "../components/graphView.tsx";
import { LineChart } from "../components/lineChart.tsx";
import { ModelPicker } from "../components/modelPicker.tsx";
import { Empty, Failed, Loading } from "../components/states.tsx";
import { query, setQuery } from "../router.ts";
import { parseRef, showRef, useModels } from "../useModels.ts";

/** The page. */
export default function AgentPage() {
  const { models, reload } = useModels("agent");
  const { list, error } = models.value;
  if (error) return <Failed what="The models could not be listed" error={error} retry={reload} />;
  if (!list) return <Loading what="Looking for agents" />;
  if (list.length === 0) {
    return (
      <Empty title="No agent">
        <p>
          Train one: <code>fwm train metarl-fwm</code>. It appears here with its first checkpoint.
        </p>
      </Empty>
    );
  }
  return <Agent models={list} />;
}

function Agent({ models }: { models: readonly ModelEntry[] }) {
  const state = query.value;
  const asked = parseRef(state.get("model"));
  const model = models.some(({ id }) => id === asked?.id) ? asked! : { id: models[0]!.id };
  const seed = Math.max(1, Math.trunc(Number(state.get("seed") ?? 1)) || 1);
  const { rollout, error } = useRollout(model, seed);
  return (
    <>
      <div class="page-head">
        <h1>Agent</h1>
        <p>
          It has to find out where its actions lead, and to use it, within 30 steps on a graph it has never
          seen.
        </p>
      </div>
      <div class="panel">
        <div class="row end">
          <div class="grow">
            <ModelPicker
              label="Agent"
              models={models}
              chosen={model}
              onChoose={(ref) => setQuery({ model: showRef(ref), at: undefined })}
            />
          </div>
          <button type="button" onClick={() => setQuery({ seed: String(seed + 1), at: undefined })}>
            New graph
          </button>
        </div>
      </div>
      {error ? (
        <Failed what="The agent did not act" error={error} />
      ) : rollout ? (
        <Episode key={`${showRef(model)} ${seed}`} rollout={rollout} />
      ) : (
        <div class="panel">
          <Loading what="The agent is acting" />
        </div>
      )}
    </>
  );
}

/** An episode of an agent under a seed; the one before stays until it is there. */
function useRollout(model: ModelRef, seed: number): { rollout?: RolloutAnswer; error?: unknown } {
  const state = useSignal<{ rollout?: RolloutAnswer; error?: unknown }>({});
  const { id, checkpoint } = model;
  useEffect(() => {
    const stop = new AbortController();
    const body: RolloutRequest = { model: { id, ...(checkpoint ? { checkpoint } : {}) }, seed };
    call<RolloutAnswer>("rollout", { body, signal: stop.signal }).then(
      (rollout) => {
        state.value = { rollout };
      },
      (error: unknown) => {
        if (!stop.signal.aborted) state.value = { error };
      },
    );
    return () => stop.abort();
  }, [id, checkpoint, seed, state]);
  return state.value;
}

/** Milliseconds per step while it plays. */
const pace = 700;

function Episode({ rollout }: { rollout: RolloutAnswer }) {
  const { steps, explorer, graph } = rollout;
  const playing = useSignal(false);
  const asked = Number(query.value.get("at") ?? 0);
  const at = Number.isInteger(asked) && asked >= 0 && asked < steps.length ? asked : 0;
  const move = (to: number): void => setQuery({ at: String(Math.max(0, Math.min(steps.length - 1, to))) });
  useEffect(() => {
    if (!playing.value) return;
    const timer = setTimeout(() => {
      if (at >= steps.length - 1) playing.value = false;
      else setQuery({ at: String(at + 1) });
    }, pace);
    return () => clearTimeout(timer);
  }, [playing.value, at, steps.length, playing]);
  const step = steps[at]!;
  return (
    <>
      <section class="panel" aria-label="Steps">
        <div class="row">
          <button
            type="button"
            class="primary wide"
            onClick={() => {
              if (!playing.value && at >= steps.length - 1) move(0);
              playing.value = !playing.value;
            }}
          >
            {playing.value ? "Pause" : "Play"}
          </button>
          <button type="button" disabled={at === 0} onClick={() => move(at - 1)}>
            Back
          </button>
          <button type="button" disabled={at === steps.length - 1} onClick={() => move(at + 1)}>
            Step
          </button>
          <input
            class="grow"
            type="range"
            min={0}
            max={steps.length - 1}
            value={at}
            aria-label="Step of the episode"
            onInput={({ currentTarget }) => move(currentTarget.valueAsNumber)}
          />
          <span class="numbers">
            step {at + 1} of {steps.length}
          </span>
        </div>
      </section>
      <div class="walkers">
        <section class="panel" aria-label="Agent">
          <WalkHead name="Agent" total={step.total} end={rollout.total} />
          <GraphView graph={graph} steps={steps.slice(0, at + 1)} label="agent" />
          <p class="walk-line">{sentence(step)}</p>
          <Bars
            label="Policy: probability of each action"
            rows={3}
            bars={step.policy.map((probability, action) => ({
              label: `action ${actionNames[action] ?? action}`,
              value: probability,
              color: action === step.action ? 1 : 0,
            }))}
          />
        </section>
        <section class="panel" aria-label="Explorer">
          <WalkHead name="Explorer" total={explorer[at]?.total ?? 0} end={rollout.explorerTotal} />
          <GraphView graph={graph} steps={explorer.slice(0, at + 1)} label="explorer" />
          <p class="walk-line">{explorer[at] ? sentence(explorer[at]) : ""}</p>
          <small>
            A program that starts from the same place, has to find the graph out too, but forgets nothing and
            plans. One who knows the graph and takes shortest paths gets {rollout.shortestPath.toFixed(1)}.
          </small>
        </section>
      </div>
      <section class="panel" aria-label="Reward so far">
        <div class="panel-head">
          <h2>Reward so far</h2>
          <small class="numbers">
            in the end: agent {rollout.total.toFixed(1)}, explorer {rollout.explorerTotal.toFixed(1)}
          </small>
        </div>
        <LineChart
          height={180}
          x={{ label: "step", range: [1, steps.length] }}
          y={{ label: "sum of rewards" }}
          series={[line("agent", steps, at, 0), line("explorer", explorer, at, 1)]}
          description={`Sum of rewards up to step ${at + 1}: agent ${step.total.toFixed(1)}, explorer ${(explorer[at]?.total ?? 0).toFixed(1)}`}
        />
      </section>
    </>
  );
}

function WalkHead({ name, total, end }: { name: string; total: number; end: number }) {
  return (
    <div class="panel-head">
      <h2>{name}</h2>
      <span class="numbers">
        reward {total.toFixed(2)} <small>of {end.toFixed(2)} in the end</small>
      </span>
    </div>
  );
}

function line(label: string, steps: readonly WalkStep[], at: number, color: number) {
  return {
    label,
    x: steps.map((_, i) => i + 1),
    y: steps.map(({ total }, i) => (i <= at ? total : null)),
    color,
  };
}

/** What happened in a step, in words. */
function sentence({ agent, goal, action, to, reward, placed }: WalkStep): string {
  const name = actionNames[action] ?? String(action);
  const moved =
    to === null
      ? `At ${agent + 1}, action ${name}: no such edge (${reward.toFixed(2)}).`
      : `From ${agent + 1} by action ${name} to ${to + 1}.`;
  if (to === goal) return `${moved} The reward: +${reward.toFixed(0)}. Both are placed anew.`;
  return placed ? `${moved} Time is up: both are placed anew.` : moved;
}
