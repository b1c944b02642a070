/** `fwm rollout`: one trained agent on a graph it has never seen, printed or animated. */
import { setTimeout as wait } from "node:timers/promises";
import type { Rollout, RolloutStep } from "../experiment/rollout.ts";
import { table } from "../report/table.ts";
import { command } from "./command.ts";
import type { Colors } from "./output.ts";
import { folder, integer } from "./params.ts";
import { shipped, whereIs } from "./shipped.ts";

/** The `rollout` command. */
export const rolloutCommand = command({
  name: "rollout",
  summary: "Watch a trained agent find its way on a new graph.",
  details:
    "Each episode is on a graph that the agent was not trained on. On a terminal it is animated; elsewhere " +
    "every step is a line. The model is a run, checkpoint or model folder of an experiment metarl-….",
  examples: [
    { line: "fwm rollout", trial: "fwm rollout --delay 0" },
    {
      line: "fwm rollout runs/metarl-fwm-seed1",
      trial: "fwm rollout $AGENT",
    },
    {
      line: "fwm rollout runs/metarl-fwm-seed1 --seed 7 --episodes 3 --json",
      trial: "fwm rollout $AGENT --seed 7 --episodes 3 --json",
    },
  ],
  args: { model: folder({ default: shipped.agent, help: "run, checkpoint or model folder" }) },
  options: {
    seed: integer({
      default: 1,
      max: 0xffffffff,
      help: "seed of the graphs, the places and the sampled actions",
    }),
    episodes: integer({ default: 1, min: 1, max: 10_000, help: "episodes, each on a graph of its own" }),
    states: integer({
      min: 3,
      max: 20,
      help: "locations of the graphs, if the agent knows so many names; default: 5",
    }),
    delay: integer({ default: 400, help: "milliseconds between the steps of an animation" }),
  },
  run: async ({ args, options, out }) => {
    const { rollOut } = await import("../experiment/rollout.ts");
    const hint = "train one: fwm train metarl-fwm-tuned; then: fwm rollout runs/metarl-fwm-tuned-seed1";
    const result = await rollOut(whereIs(args.model, hint), options);
    if (out.json || !out.isTTY) {
      out.result({ seed: options.seed, ...result }, () =>
        result.episodes.map((episode, i) => printEpisode(episode, i)).join("\n"),
      );
      return;
    }
    for (const [i, episode] of result.episodes.entries()) {
      const frames = episode.steps.map((_, t) => drawFrame(episode, i, t, out.color));
      for (const frame of frames) {
        out.frame(frame);
        await wait(options.delay);
      }
      out.settle();
      out.record(undefined, summary(episode) + "\n");
    }
  },
});

const nameOf = (state: number): string => String.fromCharCode(65 + state);

/** Every pair of state and action the agent has tried in the first `count` steps, as `from action`. */
function tried(steps: readonly RolloutStep[], count: number): Set<string> {
  return new Set(steps.slice(0, count).map(({ agent, action }) => `${agent} ${action}`));
}

/** The graph as the agent knows it after `count` steps: what it has not tried stands in parentheses. */
function drawGraph({ graph, steps }: Rollout, count: number, at?: RolloutStep, color?: Colors): string {
  const known = tried(steps, count);
  const rows = graph.map((edges, from) => {
    const marks = `${at?.agent === from ? ">" : " "}${at?.goal === from ? "*" : " "}`;
    const cells = edges.map((to, action) => {
      const text = to === null ? "-" : nameOf(to);
      return known.has(`${from} ${action}`) ? ` ${text} ` : `(${text})`;
    });
    return [`${marks} ${nameOf(from)}`, ...cells];
  });
  const actions = graph[0]!.map((_, action) => ` ${action} `);
  const lines = table([["   state", ...actions], ...rows])
    .trimEnd()
    .split("\n");
  if (!color) return lines.join("\n");
  return lines
    .map((line) => line.replace(/\([^)]*\)/g, (untried) => color.dim(untried)))
    .map((line, i) => (i > 0 && at?.agent === i - 1 ? color.green(line) : line))
    .map((line, i) => (i > 0 && at?.goal === i - 1 ? color.yellow(line) : line))
    .join("\n");
}

/** A step in words: where the action led and what it paid. */
function describeStep({ agent, action, to, reward, goal, placed }: RolloutStep): string {
  const move = `${nameOf(agent)} ${action} ${to === null ? "no edge" : `→ ${nameOf(to)}`}`;
  if (to === goal) return `${move}  reached, +${reward}`;
  return `${move}${reward < 0 ? `  ${reward.toFixed(2)}` : ""}${placed ? "  time is up" : ""}`;
}

/** One picture of the animation: the graph before step t, and what the agent then does. */
function drawFrame(episode: Rollout, index: number, t: number, color: Colors): string {
  const step = episode.steps[t]!;
  const policy = step.policy.map((p) => p.toFixed(2)).join("  ");
  const known = tried(episode.steps, t).size;
  const pairs = episode.graph.flat().length;
  return [
    `episode ${index + 1}, step ${t + 1} of ${episode.steps.length}`,
    "",
    drawGraph(episode, t, step, color),
    "",
    `policy  ${policy}`,
    `action  ${describeStep(step)}`,
    `tried   ${known} of ${pairs}; (…) not yet, - no edge, > agent, * reward`,
    `total   ${step.total.toFixed(2)}`,
  ].join("\n");
}

/** A whole episode as text: the graph, every step, and what was known at the end. */
function printEpisode(episode: Rollout, index: number): string {
  const { steps } = episode;
  const lines = steps.map((step, t) => [
    String(t + 1),
    nameOf(step.agent),
    nameOf(step.goal),
    step.policy.map((p) => p.toFixed(2)).join(" "),
    String(step.action),
    step.to === null ? "-" : nameOf(step.to),
    step.reward.toFixed(2),
    step.total.toFixed(2),
    `${tried(steps, t + 1).size}`,
  ]);
  return [
    `episode ${index + 1}`,
    table([
      ["step", "agent", "reward at", "policy", "action", "leads to", "reward", "total", "tried"],
      ...lines,
    ]),
    "the graph: where each action leads, - no edge, (…) not tried in this episode",
    drawGraph(episode, steps.length),
    "",
    summary(episode),
  ].join("\n");
}

function summary({ graph, steps, total, explorer, shortestPath }: Rollout): string {
  const reached = steps.filter(({ to, goal }) => to === goal).length;
  const known = tried(steps, steps.length).size;
  return (
    `return ${total.toFixed(2)}; an explorer from the same start ${explorer.toFixed(2)}, ` +
    `graph known ${shortestPath.toFixed(2)}\n` +
    `the reward was reached ${reached} times; ${known} of ${graph.flat().length} actions were tried`
  );
}
