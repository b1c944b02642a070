/** The README's tables: the paper's memory and ours. Of an experiment, the newest settings that ran from clean commits. */
import { isExact } from "../../report/chain.ts";
import { thousands } from "../../report/table.ts";
import { mean } from "../../statistics.ts";
import type { CatbabiSettings } from "../catbabi/settings.ts";
import type { MetarlSettings } from "../metarl/settings.ts";
import { groupsOf, links, markdownTable, type RunGroup, share, withSpread } from "./groups.ts";
import { table1 } from "./published.ts";
import type { FiledRun, Results } from "./read.ts";
import { agentRuns, authors, catbabiRuns, publishedOf, reached, returned, spread } from "./tables.ts";

/** catbAbI in both modes, and agents. */
export function readmeTables(results: Results, folder: string): string {
  return [catbabiSummary(results, folder), agentSummary(results, folder)].join("\n\n");
}

/** Of every experiment the group with the newest file, unless no exact source of it is known; lowest score first. */
function newestGroups(groups: readonly RunGroup[], scoreOf: (run: FiledRun) => number): RunGroup[] {
  const newest = new Map<string, RunGroup>();
  const dateOf = ({ runs }: RunGroup): string =>
    runs.map(({ date }) => date).reduce((a, b) => (a > b ? a : b));
  for (const group of groups) {
    if (!group.runs.some(({ exactSource, commit }) => exactSource ?? isExact(commit))) continue;
    const before = newest.get(group.experiment);
    if (!before || dateOf(group) > dateOf(before)) newest.set(group.experiment, group);
  }
  const meanOf = ({ runs }: RunGroup): number => mean(runs.map(scoreOf));
  return [...newest.values()].toSorted((a, b) => meanOf(a) - meanOf(b));
}

const modes = { qa: "question answering", lm: "language-model mode" } as const;

function catbabiSummary(results: Results, folder: string): string {
  const rows = (["qa", "lm"] as const).flatMap((mode) => {
    const { accuracy, perplexity } = table1.fwm![mode];
    const ours = catbabiRuns(results, mode).filter(
      ({ settings }) => (settings.system as { name: string }).name === "fwm",
    );
    const groups = newestGroups(groupsOf(ours), ({ score }) => score!.accuracy!);
    return [
      [
        `${modes[mode]}: paper, FWM (three seeds)`,
        ...[spread(accuracy, " %"), spread(perplexity), "60,000", "real stories"],
      ],
      ...groups.map(({ experiment, runs }, i) => {
        const [accuracyOfOurs, perplexityOfOurs, steps] = reached(runs, folder) as [string, string, string];
        const bold = i === groups.length - 1 ? "**" : "";
        return [
          `\`${experiment}\`: ${links(runs, folder, ({ score }) => share(score!.accuracy!))}`,
          `${bold}${accuracyOfOurs}${bold}`,
          perplexityOfOurs,
          steps,
          trainingStories(runs[0]!),
        ];
      }),
    ];
  });
  return markdownTable([
    ["catbAbI, test: 19,910 questions", "accuracy", "perplexity", "steps", "trained on"],
    ...rows,
  ]);
}

/** What a run was trained on, in a few words; version 0.1's files say it in their note alone. */
function trainingStories({ settings: { task }, data }: FiledRun): string {
  const { source, rename, generatedFraction, curriculum } = task as Partial<CatbabiSettings["task"]>;
  if (generatedFraction === undefined) return data ?? "real stories";
  const generated = Math.round(100 * generatedFraction);
  const real = `real stories${rename ? " under other names" : ""}`;
  const stories = {
    real,
    mixed: `${100 - generated} % ${real}, ${generated} % generated`,
    generated: "generated stories",
  }[source!];
  return `${stories}${curriculum?.length ? ", after a curriculum" : ""}`;
}

/** Agents on the authors' task: their rules, and no more names than locations. */
function isAuthorsTask({ settings }: FiledRun): boolean {
  const { rules, names = 5 } = settings.task as Partial<MetarlSettings["task"]>;
  return rules === "released" && names === 5;
}

function agentSummary(results: Results, folder: string): string {
  const scored = agentRuns(results).filter((run) => run.score?.return && isAuthorsTask(run));
  // Version 0.1 stopped runs before the last episode of their settings: what counts is how far they went.
  const byLength = new Map<string, FiledRun[]>();
  for (const run of scored) {
    const key = `${run.experiment} ${run.steps}`;
    byLength.set(key, [...(byLength.get(key) ?? []), run]);
  }
  const groups = newestGroups(
    [...byLength.values()].map((runs) => ({ experiment: runs[0]!.experiment, runs })),
    ({ score }) => score!.return!.mean,
  );
  const hasRun = new Set(groups.map(({ experiment }) => JSON.stringify(publishedOf(experiment))));
  const fresh = (experiment: string): string => {
    const found = results.agents.filter(
      (agent) => agent.experiment === experiment && agent.score.split === "fresh",
    );
    return found.length === 0
      ? ""
      : withSpread(
          found.map(({ score }) => score.return.mean),
          2,
        );
  };
  const explorer = (of: readonly { readonly mean: number }[]): string =>
    of.length === 0 ? "" : mean(of.map((one) => one.mean)).toFixed(2);
  return markdownTable([
    ["agents, mean return", "episodes", "600 test graphs", "600 fresh graphs"],
    ...authors()
      .filter(({ paper }) => hasRun.has(JSON.stringify(paper)))
      .map(({ title, paper }) => [
        ...[`the authors' ${title} (their log)`, thousands(paper.episodes), paper.testReturn.toFixed(2), ""],
      ]),
    ...groups.map(({ experiment, runs }, i) => {
      const bold = i === groups.length - 1 ? "**" : "";
      return [
        `\`${experiment}\`: ${links(runs, folder, ({ score }) => returned(score!.return!))}`,
        thousands(runs[0]!.steps),
        `${bold}${withSpread(
          runs.map(({ score }) => score!.return!.mean),
          2,
        )}${bold}`,
        fresh(experiment),
      ];
    }),
    [
      "a baseline that explores, forgets nothing and plans",
      "",
      explorer(groups.flatMap(({ runs }) => runs.flatMap(({ score }) => score!.explorer ?? []))),
      explorer(
        results.agents.filter(({ score }) => score.split === "fresh").map(({ score }) => score.explorer),
      ),
    ],
  ]);
}
