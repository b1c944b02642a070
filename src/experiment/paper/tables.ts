/** The tables of `fwm paper`, in Markdown: the paper's, with ours beside; what was not run says so. */
import { buildSystem } from "../../model/registry.ts";
import { countState } from "../../model/sequence.ts";
import { thousands } from "../../report/table.ts";
import { mean } from "../../statistics.ts";
import type { CatbabiSettings } from "../catbabi/settings.ts";
import { untilLastStep } from "../kind.ts";
import type { MetarlPaper } from "../metarl/settings.ts";
import { experimentNames, kindOf, requireExperiment } from "../registry.ts";
import {
  groupNames,
  groupsOf,
  link,
  links,
  markdownTable,
  type RunGroup,
  share,
  withSpread,
} from "./groups.ts";
import { type PublishedMean, table1 } from "./published.ts";
import type { FiledAgent, FiledRun, FiledStretch, FiledSweep, Results } from "./read.ts";

/** What stands where there is no number. */
export const notRun = "not run yet";

/** The task's kind of a run, `catbabi`, `metarl` or `text`. */
const kindNameOf = ({ settings }: FiledRun): string => settings.task.name;

/** Runs of a mode of catbAbI that were scored on the real test split, those of a budget apart from the others. */
export function catbabiRuns(
  { runs }: Results,
  mode: "qa" | "lm",
  of: "steps" | "budget" = "steps",
): FiledRun[] {
  return runs.filter(
    (run) =>
      kindNameOf(run) === "catbabi" &&
      run.settings.task.mode === mode &&
      run.score?.split === "test" &&
      run.score.generated === false &&
      hasBudget(run) === (of === "budget"),
  );
}

/** Whether a run was to end after a time, not after a number of steps. Version 0.1 had no such runs. */
export function hasBudget({ settings }: Pick<FiledRun, "settings">): boolean {
  const { minutes, processorMinutes } = {
    ...untilLastStep,
    ...(settings.training as Partial<typeof untilLastStep>),
  };
  return minutes + processorMinutes > 0;
}

/** Table 1 in a mode: every system and experiment of ours, the paper's numbers beside. */
export function catbabiTable(results: Results, mode: "qa" | "lm", folder: string): string {
  const groups = groupsOf(catbabiRuns(results, mode));
  const short = new Set(catbabiRuns(results, mode, "budget").map(({ experiment }) => experiment));
  const experiments = experimentNames()
    .map((name) => ({ name, ...requireExperiment(name) }))
    .filter(({ name, settings: { task } }) => {
      const { name: kind, mode: its } = task as { name: string; mode?: string };
      return kind === "catbabi" && its === mode && !name.startsWith("quickstart");
    });
  const rows = Object.keys({ ...table1, "delta-net": 0 }).flatMap((system) => {
    const published = table1[system];
    const ours = experiments.filter(({ settings }) => settings.system.name === system);
    return [
      ...(published
        ? [
            [
              `**${published.title}, paper**`,
              published.weights,
              published.activations,
              spread(published[mode].accuracy, " %"),
              spread(published[mode].perplexity),
              "",
              "three seeds",
            ],
          ]
        : []),
      ...ours.flatMap(({ name, settings }) => {
        const { system: built } = settings as unknown as CatbabiSettings;
        const sizes = [
          thousands(kindOf(settings).countWeights(settings)),
          thousands(countState(buildSystem(built), 1)),
        ];
        const found = groups.filter(({ experiment }) => experiment === name);
        const missing = short.has(name) ? "only [for a budget](#equal-budgets)" : notRun;
        if (found.length === 0) return [[`\`${name}\``, ...sizes, missing, "", "", ""]];
        return found.map(({ runs }) => [`\`${name}\``, ...sizes, ...reached(runs, folder)]);
      }),
    ];
  });
  return markdownTable([
    ["system", "weights", "state", "accuracy, test", "perplexity", "steps", "results"],
    ...rows,
  ]);
}

/** Accuracy, perplexity, steps and links of runs. */
export function reached(runs: readonly FiledRun[], folder: string): string[] {
  return [
    `${withSpread(
      runs.map(({ score }) => 100 * score!.accuracy!),
      2,
    )} %`,
    withSpread(
      runs.map(({ score }) => score!.perplexity!),
      3,
    ),
    stepsOf(runs[0]!),
    links(runs, folder, ({ score }) => share(score!.accuracy!)),
  ];
}

/** A mean of the paper with its spread. */
export function spread({ mean: center, std }: PublishedMean, unit = ""): string {
  return `${center.toFixed(2)} ± ${std.toFixed(2)}${unit}`;
}

/** Steps of the scored checkpoint, and those of the weights it started with. */
function stepsOf({ score, steps, initFrom, chain }: FiledRun): string {
  const own = score?.step ?? steps;
  const before = chain.reduce((sum, part) => sum + part.steps, 0);
  if (before > 0) return `${thousands(before + own)} in ${chain.length + 1} runs`;
  const [, name, made] = /^(.*) after (\d+) steps$/.exec(initFrom ?? "") ?? [];
  return name === undefined
    ? thousands(own)
    : `${thousands(own)} after ${thousands(Number(made))} of ${name}`;
}

/** What is to be known of the stories that runs of a mode were trained on, a line for each. */
export function trainingNotes(results: Results, mode: "qa" | "lm", folder: string): string[] {
  const groups = groupsOf(catbabiRuns(results, mode)).filter(({ runs }) => runs[0]!.data);
  if (groups.length === 0) return [];
  const lines = groups.map(
    ({ experiment, runs }) =>
      `- \`${experiment}\`, ${links(runs, folder, ({ score }) => share(score!.accuracy!))}: ${runs[0]!.data!}`,
  );
  return ["Stories trained on, where they are not bAbI's as they are:", lines.join("\n")];
}

/** Accuracy per task on the test split, a column for every group of runs. */
export function taskTable(groups: readonly RunGroup[]): string {
  const tasks = Array.from({ length: 20 }, (_, i) => String(i + 1));
  return markdownTable([
    ["task", ...groupNames(groups)],
    ...tasks.map((task) => [
      task,
      ...groups.map(({ runs }) =>
        withSpread(
          runs.map(({ score }) => 100 * (score!.perTask?.[task]?.accuracy ?? Number.NaN)),
          1,
        ),
      ),
    ]),
  ]);
}

const milestones = [2_500, 10_000, 25_000];

/** Agents: mean return after so many episodes, run by run. */
export function agentRunsTable(results: Results, folder: string): string {
  return markdownTable([
    [
      "mean return on held-out graphs after",
      ...milestones.map((episode) => `${thousands(episode)} episodes`),
    ],
    ...authors().map(({ title, paper: { curve } }) => [
      `the authors' ${title} (their log)`,
      ...milestones.map((episode) => curve.find((point) => point.episode === episode)?.test.toFixed(1) ?? ""),
    ]),
    ...agentRuns(results).map((run) => [
      `\`${run.experiment}\`, ${link(run, folder, `seed ${run.seed}`)}`,
      ...milestones.map(
        (episode) => run.returns.find((point) => point.episode === episode)?.heldOut.toFixed(1) ?? "",
      ),
    ]),
  ]);
}

/** Agents: the return of the scored checkpoint, over seeds, the authors' beside. */
export function agentTable(results: Results): string {
  const scored = agentRuns(results).filter(({ score }) => score?.return);
  const groups = groupsOf(scored);
  const run = new Set(scored.map(({ experiment }) => experiment));
  const missing = agentExperiments().filter(([name]) => !run.has(name));
  const theirs = (name: string): string => {
    const paper = publishedOf(name);
    return paper ? `${paper.testReturn.toFixed(1)} after ${thousands(paper.episodes)}` : "-";
  };
  const names = groupNames(groups);
  return markdownTable([
    ["experiment", "seeds", "episodes", "return on 600 test graphs", "lowest", "authors, end of their log"],
    ...groups.map(({ experiment, runs }, i) => {
      const returns = runs.map(({ score }) => score!.return!.mean);
      return [
        `\`${names[i]}\``,
        runs.map(({ seed }) => seed).join(", "),
        thousands(runs[0]!.score!.step ?? runs[0]!.steps),
        withSpread(returns, 2),
        Math.min(...returns).toFixed(2),
        theirs(experiment),
      ];
    }),
    ...missing.map(([name]) => [`\`${name}\``, "", "", notRun, "", theirs(name)]),
  ]);
}

/** Agents on graphs and in episodes of one's choice, seeds of an experiment in one row. */
export function agentTrialsTable({ agents }: Results, folder: string): string {
  const rows = new Map<string, FiledAgent[]>();
  for (const agent of agents) {
    const { split, graphs, episodes, states, length } = agent.score;
    const key = [`\`${agent.experiment}\``, `${graphs} ${split}`, states, length, episodes].join("|");
    rows.set(key, [...(rows.get(key) ?? []), agent]);
  }
  const meanOf = (found: readonly FiledAgent[], of: "explorer" | "shortestPath" | "random"): string =>
    mean(found.map(({ score }) => score[of].mean)).toFixed(1);
  return markdownTable([
    [
      "experiment",
      "graphs",
      "locations",
      "steps",
      "episodes",
      "return",
      "random",
      "explorer",
      "graph known",
      "results",
    ],
    ...[...rows].map(([key, found]) => [
      ...key.split("|"),
      withSpread(
        found.map(({ score }) => score.return.mean),
        2,
      ),
      meanOf(found, "random"),
      meanOf(found, "explorer"),
      meanOf(found, "shortestPath"),
      found.map((one) => `${link(one, folder)} ${returned(one.score.return)}`).join(", "),
    ]),
  ]);
}

/** The runs of agents. */
export function agentRuns({ runs }: Results): FiledRun[] {
  return runs.filter((run) => kindNameOf(run) === "metarl");
}

function agentExperiments(): [name: string, paper: MetarlPaper | undefined][] {
  return experimentNames()
    .filter((name) => kindOf(requireExperiment(name).settings).name === "metarl")
    .map((name) => [name, requireExperiment(name).paper as MetarlPaper | undefined]);
}

/** What the authors' log of an experiment's recipe has. */
export function publishedOf(experiment: string): MetarlPaper | undefined {
  return agentExperiments().find(([name]) => name === experiment)?.[1];
}

/** The authors' logs, each once, under the name of the experiment that follows its recipe. */
export function authors(): { title: string; paper: MetarlPaper }[] {
  const seen = new Set<string>();
  return agentExperiments().flatMap(([name, paper]) => {
    const key = JSON.stringify(paper);
    if (!paper || seen.has(key)) return [];
    seen.add(key);
    return [{ title: name.replace("metarl-", "").toUpperCase().replace("-", " "), paper }];
  });
}

/** What the members of a sweep reached. */
export function sweepTable({ members }: FiledSweep): string {
  const measures = Object.keys(members[0]?.best ?? {}).filter((name) => name !== "loss");
  const digits = (name: string, value: number): string =>
    name === "accuracy" ? share(value) : value.toFixed(2);
  return markdownTable([
    ["changed", "seed", "weights", "steps", ...measures.map((name) => `best ${name}, validation`)],
    ...members.map(({ name, seed, parameters, steps, best }) => [
      name,
      String(seed),
      thousands(parameters),
      thousands(steps),
      ...measures.map((measure) => (best[measure] ? digits(measure, best[measure].value) : "-")),
    ]),
  ]);
}

/** Accuracy and confidence along the axes of the suite, a pair of columns for every model. */
export function stretchTable(stretches: readonly FiledStretch[]): string {
  const axes = stretches[0]!.score.axes;
  return markdownTable([
    ["", "", ...stretches.flatMap(({ file }) => [`${file}: accuracy`, "confidence", "ECE"])],
    ...axes.flatMap(({ name, label }) => {
      const points = stretches[0]!.score.points.filter(({ axis }) => axis === name);
      return points.map(({ at }, i) => [
        i === 0 ? label : "",
        String(at),
        ...stretches.flatMap(({ score }) => {
          const point = score.points.find((other) => other.axis === name && other.at === at);
          return point
            ? [share(point.accuracy), share(point.confidence), share(point.calibrationError)]
            : ["-", "-", "-"];
        }),
      ]);
    }),
  ]);
}

/** A return with its standard error. */
export function returned({ mean: center, standardError }: FiledAgent["score"]["return"]): string {
  return `${center.toFixed(2)} ± ${standardError?.toFixed(2)}`;
}

/** Where every number comes from: command, commit, hours, machine. */
export function sourceTable(
  { runs, sweeps, stretches, agents, languages, comparisons }: Results,
  folder: string,
): string {
  const machineOf = ({ machine }: Pick<FiledRun, "machine">): string =>
    machine ? `${machine.cpu}, ${machine.cores} cores, ${machine.threads ?? "?"} thread(s)` : "-";
  const commitOf = (commit: string | null): string => {
    if (commit === null) return "unknown";
    return `${commit.slice(0, 12)}${commit.endsWith("-dirty") ? ", changed" : ""}`;
  };
  const scoreOf = ({ score }: FiledRun): string => {
    if (score?.return) return returned(score.return);
    if (score?.accuracy !== undefined) return share(score.accuracy);
    return score?.perplexity === undefined ? "curves only" : `perplexity ${score.perplexity.toFixed(2)}`;
  };
  const started = ({ initFrom, chain }: FiledRun): string => {
    const all = chain.map(({ name, steps }) => `${name} (${thousands(steps)} steps)`).join(" → ");
    return all || (initFrom ?? "");
  };
  return markdownTable([
    ["result", "score", "command", "weights from", "commit", "hours", "machine", "date"],
    ...runs.map((run) => [
      link(run, folder),
      scoreOf(run),
      `\`${run.command}\``,
      started(run),
      commitOf(run.commit),
      run.hours.toFixed(2),
      machineOf(run),
      run.date.slice(0, 10),
    ]),
    ...sweeps.map((sweep) => [
      link(sweep, folder),
      "",
      `\`${sweep.command}\``,
      "",
      commitOf(sweep.commit),
      sweep.hours.toFixed(2),
      machineOf(sweep),
      sweep.date.slice(0, 10),
    ]),
    ...[
      ...stretches.map((stretch) => ({ ...stretch, shown: share(stretch.score.accuracy) })),
      ...agents.map((agent) => ({ ...agent, shown: returned(agent.score.return) })),
      ...languages.map((language) => ({
        ...language,
        shown: `perplexity ${language.score.perplexity.toFixed(2)}`,
      })),
      ...comparisons.map((comparison) => ({
        ...comparison,
        shown: `${comparison.models.map(({ bits }) => bits.toFixed(3)).join(" and ")} bits per word`,
      })),
    ].map((evaluation) => [
      link(evaluation, folder),
      evaluation.shown,
      `\`${evaluation.reportedBy}\``,
      "",
      commitOf(evaluation.commit),
      "",
      machineOf(evaluation),
      evaluation.date.slice(0, 10),
    ]),
  ]);
}
