/** How an agent's evaluation, its card and its curves are presented. */
import {
  type Behaviour,
  edgesOf,
  graphRules,
  pairsOf,
  states,
  type Tally,
  type WayPart,
  wayParts,
} from "../../environment/index.ts";
import { type CardAbout, cardHead } from "../../report/card.ts";
import { type FigureLine, type FigureMark, type FigureSpec, showSeeds } from "../../report/figure.ts";
import type { RunResult } from "../../report/result.ts";
import { percent, table, thousands } from "../../report/table.ts";
import type { Comparison, ReportedRun } from "../kind.ts";
import type { MeanReturn, MetarlEvaluation } from "./options.ts";
import { type AgentRun, agentRuns, authorsLogs, returnRows, smoothing, thinned } from "./returns.ts";
import { type MetarlPaper, type MetarlSettings, releasedTask } from "./settings.ts";

/** What the authors' agent had reached at the end of its log on the split; null where episodes are not as theirs. */
export function published(
  {
    rules,
    length,
    split,
    states: size = states,
  }: Pick<MetarlEvaluation, "rules" | "length" | "split" | "states">,
  paper: MetarlPaper | undefined,
): { episodes: number; return: number } | null {
  // Returns depend on the timer and the length, not on what an agent sees.
  const isAlike =
    rules.timerOnSuccess === graphRules.released.timerOnSuccess &&
    length === releasedTask.length &&
    size === states;
  if (!paper || split === "valid" || !isAlike) return null;
  return { episodes: paper.episodes, return: split === "train" ? paper.trainReturn : paper.testReturn };
}

/** The evaluation as a table. */
export function showAgent(evaluation: MetarlEvaluation, known: MetarlPaper | undefined): string {
  const { model, step, split, graphs, episodes, length, rules, states: size = states } = evaluation;
  const named = Object.entries(graphRules).find(([, set]) =>
    Object.entries(set).every(([rule, value]) => rules[rule as keyof typeof rules] === value),
  );
  const paper = published(evaluation, known);
  const rows = [
    ["agent", evaluation.return],
    ["random actions", evaluation.random],
    ["explorer, forgets nothing", evaluation.explorer],
    ["shortest path, graph known", evaluation.shortestPath],
  ] as const;
  const error = (value: number | null): string => (value === null ? "-" : value.toFixed(2));
  return (
    `${model}${step === null ? "" : `, after ${thousands(step)} episodes`}\n` +
    `${thousands(graphs)} ${split} graphs${size === states ? "" : ` of ${size} locations`}, ${thousands(episodes)} ${episodes === 1 ? "episode" : "episodes"} ` +
    `of ${length} steps on each, ${named ? `${named[0]} rules` : "rules of its own"}\n\n` +
    table([
      ["mean return", "", "± episodes", "± graphs"],
      ...rows.map(([name, { mean, standardError, graphError }]) => [
        name,
        mean.toFixed(2),
        error(standardError),
        error(graphError),
      ]),
      ...(paper
        ? [
            [
              `paper, ${split === "train" ? split : "test"}, after ${thousands(paper.episodes)} episodes`,
              paper.return.toFixed(2),
              "",
              "",
            ],
          ]
        : []),
    ]) +
    "\n± standard errors: other episodes on these graphs; other graphs too\n" +
    showBehaviour(evaluation) +
    showReads(evaluation)
  );
}

const partNames: Readonly<Record<WayPart, string>> = {
  theStep: "1 known step to the reward: its edge",
  firstOfTwo: "2 known steps: the first edge",
  secondOfTwo: "2 known steps: the second edge",
};

/** What each read of a memory gave back of the way to the reward, as a table. */
function showReads({ reads = {} }: MetarlEvaluation): string {
  const rows = wayParts.flatMap((part) => {
    const match = reads[part];
    return match ? [[partNames[part], ...match.reads.map(percent), percent(match.writes)]] : [];
  });
  if (rows.length === 0) return "";
  const head = rows[0]!.slice(1, -1).map((_, i) => `read ${i + 1}`);
  return `\n${table([["share in what a read gives", ...head, "of all writes"], ...rows])}`;
}

/** What the agent did with what it had seen, beside the explorer, as a table. */
function showBehaviour({ behaviour, explorerBehaviour, states: size = states }: MetarlEvaluation): string {
  if (!behaviour || !explorerBehaviour) return "";
  const columns = [behaviour, explorerBehaviour];
  const share = ({ chosen, of }: Tally): string => (of === 0 ? "-" : percent(chosen / of));
  const row = (name: string, of: (behaviour: Behaviour) => string): string[] => [name, ...columns.map(of)];
  return `\n${table([
    ["what it did with what it had seen", "agent", "explorer"],
    ...behaviour.planned.flatMap((_, i) =>
      columns.every(({ planned }) => planned[i]!.of === 0)
        ? []
        : [
            row(
              `${i + 1} known ${i === 0 ? "step to the reward: took it" : "steps to the reward: began them"}`,
              ({ planned }) => share(planned[i]!),
            ),
          ],
    ),
    row("no known way: tried something new", ({ explored }) => share(explored)),
    row("no known way: took an edge again", ({ walked }) => share(walked)),
    row("no known way: tried again what led nowhere", ({ forgot }) => share(forgot)),
    row(`pairs of location and action tried, of ${pairsOf({ states: size })}`, ({ tried }) =>
      tried.toFixed(2),
    ),
    row(`edges seen, of ${edgesOf({ states: size })}`, ({ seen }) => seen.toFixed(2)),
  ])}`;
}

/** The evaluation in a line. */
export function showAgentLine(evaluation: MetarlEvaluation, known: MetarlPaper | undefined): string {
  const { split, random, explorer, shortestPath, episodes, graphs } = evaluation;
  const paper = published(evaluation, known);
  return (
    `${split}: mean return ${withError(evaluation.return)} in ${thousands(episodes)} episodes on ` +
    `${thousands(graphs)} graphs; random actions ${random.mean.toFixed(2)}, ` +
    `explorer ${explorer.mean.toFixed(2)}, graph known ${shortestPath.mean.toFixed(2)}${paper ? `  (paper: ${paper.return.toFixed(2)} after ${thousands(paper.episodes)} episodes)` : ""}`
  );
}

function withError({ mean, standardError }: MeanReturn): string {
  return `${mean.toFixed(2)}${standardError === null ? "" : ` ± ${standardError.toFixed(2)}`}`;
}

/** The card of an agent, as Markdown. */
export function agentCard(
  result: RunResult<MetarlPaper>,
  evaluation: MetarlEvaluation,
  about: CardAbout,
): string {
  const { training, task } = result.settings as unknown as MetarlSettings;
  const { names = states } = task as Partial<MetarlSettings["task"]>;
  const { split, graphs, episodes, length, rules } = evaluation;
  const paper = published(evaluation, result.paper ?? undefined);
  const head = cardHead(result, about, "episode", {
    score: [
      [
        `mean return, ${split} graphs`,
        `**${withError(evaluation.return)}**${paper ? ` (paper: ${paper.return.toFixed(2)} after ${thousands(paper.episodes)} episodes)` : ""}`,
      ],
      ["random actions", withError(evaluation.random)],
      ["explorer: forgets nothing and plans", withError(evaluation.explorer)],
      ["shortest path, graph known", withError(evaluation.shortestPath)],
      [
        "protocol",
        `${thousands(episodes)} episodes of ${length} steps on each of ${thousands(graphs)} graphs, actions sampled`,
      ],
      [
        "rules",
        Object.entries(rules)
          .map(([name, value]) => `${name} ${value}`)
          .join(", "),
      ],
    ],
    amount: `of ${thousands(training.agents)} agents`,
  });
  return `${head}
± is the standard error over episodes on these graphs.

## Limits

It knows graphs of five locations${names > states ? ` (under any of ${names} names)` : ""} and three actions, episodes of ${length} steps, and the rules above. Watch it: \`fwm rollout ${about.name}\`.
`;
}

/** Returns of runs at the same episodes, as a table. */
export async function compareAgents(runs: readonly ReportedRun<MetarlPaper>[]): Promise<Comparison> {
  const rows = returnRows(await agentRuns(runs));
  const episodes = [...new Set(rows.flatMap(({ points }) => points.map(({ episode }) => episode)))].sort(
    (a, b) => a - b,
  );
  const text = table([
    ["return on held-out graphs after episodes", ...episodes],
    ...rows.map(({ name, points }) => [
      name,
      ...episodes.map(
        (episode) => points.find((point) => point.episode === episode)?.heldOut.toFixed(1) ?? "",
      ),
    ]),
  ]).trimEnd();
  return { name: "returns", rows, text };
}

/** Points of a curve at most. */
const finest = 250;
/** Episodes that the baselines of a figure act in on every test graph. */
const baselineEpisodes = 50;

/** Baselines by one set of rules. */
interface RuleBaselines {
  readonly rules: string;
  readonly random: number;
  readonly explorer: number;
  readonly shortestPath: number;
}

/** The figure of agents: mean return over episodes, ours beside the authors', with the baselines as lines. */
export async function returnFigure(runs: readonly ReportedRun<MetarlPaper>[]): Promise<FigureSpec> {
  const { baselineReturns } = await import("./evaluate.ts");
  const baselines = await Promise.all(
    runs.map(async ({ result }): Promise<RuleBaselines> => {
      const settings = result.settings as unknown as MetarlSettings;
      const reached = await baselineReturns(settings, { episodes: baselineEpisodes });
      return {
        rules: `${settings.task.rules} rules`,
        random: reached.random.mean,
        explorer: reached.explorer.mean,
        shortestPath: reached.shortestPath.mean,
      };
    }),
  );
  return drawReturns(await agentRuns(runs), baselines);
}

/** What to draw: the runs, the seeds of an agent in one colour, and the authors' logs as far as the runs went. */
export function drawReturns(runs: readonly AgentRun[], baselines: readonly RuleBaselines[]): FigureSpec {
  const most = Math.max(0, ...runs.flatMap(({ heldOut, train }) => [...heldOut, ...train].map(({ x }) => x)));
  const agents = [...new Set(runs.map(({ agent }) => agent))];
  const ours = runs.flatMap(({ agent, train, heldOut }): FigureLine[] => {
    const color = agents.indexOf(agent);
    const name = `${agent}, ${showSeeds(runs.filter((run) => run.agent === agent).map(({ seed }) => seed))}`;
    return [
      { name: `${name}, validation graphs`, points: thinned(heldOut, finest), color },
      { name: `${name}, training graphs`, points: thinned(train, finest), color, look: "dashed" },
    ];
  });
  const theirs = authorsLogs(runs)
    .flatMap(({ agent, curve, beside }): FigureLine[] => {
      const color = agents.indexOf(agents.includes(agent) ? agent : beside);
      const shown = curve.filter(({ episode }) => episode <= most);
      const line = (split: "train" | "heldOut") =>
        shown.map((point) => ({ x: point.episode, y: point[split] }));
      return [
        { name: `authors, ${agent}, test graphs`, points: line("heldOut"), color, look: "circles" },
        { name: `authors, ${agent}, training graphs`, points: line("train"), color, look: "squares" },
      ];
    })
    .filter(({ points }) => points.length > 0);
  const marks = baselineMarks(baselines);
  const lowest = Math.min(...[...ours, ...theirs].flatMap(({ points }) => points.map(({ y }) => y)));
  const floor = Math.min(lowest, ...marks.map(({ y }) => y));
  const ceiling = Math.max(...marks.map(({ y }) => y));
  return {
    title: `Mean return per episode (curves: means over ${2 * smoothing} episodes)`,
    x: "episode",
    y: "mean return",
    lines: [...ours, ...theirs],
    marks,
    height: 400,
    // Room for the names of the marks, which stand outside the curves.
    range: [Math.floor((floor - 12) / 10) * 10, Math.ceil((ceiling + 8) / 10) * 10],
  };
}

/** A line for each set of rules; of lines that lie close together one carries the name of both. */
function baselineMarks(baselines: readonly RuleBaselines[]): FigureMark[] {
  const sets = baselines.filter(
    ({ rules }, i) => baselines.findIndex((other) => other.rules === rules) === i,
  );
  const named = (
    what: string,
    of: Exclude<keyof RuleBaselines, "rules">,
    label: "above" | "below",
  ): FigureMark[] => {
    const values = sets.map((set) => ({ rules: set.rules, y: set[of] }));
    const outermost = (label === "above" ? Math.max : Math.min)(...values.map(({ y }) => y));
    const text = values.map(({ rules, y }) => `${y.toFixed(1)}${sets.length > 1 ? ` (${rules})` : ""}`);
    const name = `${what}: ${text.join(", ")}`;
    return values.map(({ y }) => ({ name: y === outermost ? name : "", y, label }));
  };
  return [
    ...named("shortest path, graph known", "shortestPath", "above"),
    ...named("explorer, forgets nothing", "explorer", "above"),
    ...named("random actions", "random", "below"),
  ];
}
