/** Runs side by side: the settings they differ in, their tasks, and the published numbers they stand beside. */
import type { CatbabiPaper } from "../../experiment/catbabi/settings.ts";
import type { MetarlPaper } from "../../experiment/metarl/settings.ts";
import { findExperiment } from "../../experiment/registry.ts";
import type { TextPaper } from "../../experiment/text/settings.ts";
import { withoutPlaces } from "../../report/result.ts";
import { flatten } from "../../store/flatten.ts";
import type { RunRecord } from "../../store/runRecord.ts";
import type { CompareAnswer } from "../api.ts";
import type { MetricsLogs } from "./metricsLog.ts";
import type { IndexedRun } from "./runIndex.ts";

/** Settings by path, as text. */
export function settingsOf(record: RunRecord): Record<string, string> {
  return Object.fromEntries(
    Object.entries(flatten(withoutPlaces(record.settings))).map(([key, value]) => [key, String(value)]),
  );
}

/** What differs between runs, what they reach by task, and what was published. */
export async function compareRuns(runs: readonly IndexedRun[], logs: MetricsLogs): Promise<CompareAnswer> {
  const settings = runs.map(({ record }) => settingsOf(record));
  const keys = [...new Set(settings.flatMap((each) => Object.keys(each)))];
  const tasks = [];
  for (const { summary, path } of runs) {
    const log = await logs.of(path);
    const best = log.at("valid", summary.bestStep ?? undefined);
    const accuracy = Object.fromEntries(
      Object.entries(best?.values ?? {}).flatMap(([name, value]) => {
        const [, task] = /^task(\d+)$/.exec(name) ?? [];
        return task === undefined ? [] : [[task, value] as const];
      }),
    );
    if (best && Object.keys(accuracy).length > 0) {
      tasks.push({ run: summary.name, step: best.step, accuracy });
    }
  }
  return {
    settings: keys
      .map((key) => ({ key, values: settings.map((each) => each[key] ?? null) }))
      .filter(({ values }) => new Set(values).size > 1),
    tasks,
    published: publishedFor(runs),
  };
}

/** Published numbers of the runs' experiments, each once. */
function publishedFor(runs: readonly IndexedRun[]): CompareAnswer["published"] {
  const found = new Map<string, CompareAnswer["published"][number]>();
  for (const { summary } of runs) {
    const paper = findExperiment(summary.experiment)?.paper;
    if (!paper) continue;
    for (const line of publishedBy[summary.kind ?? ""]?.(paper as never) ?? []) {
      found.set(`${line.series} ${line.name} ${line.value}`, line);
    }
  }
  return [...found.values()];
}

/** What the papers of each kind say, as lines beside a series; an experiment's paper is of its kind. */
const publishedBy: Readonly<Record<string, (paper: never) => CompareAnswer["published"]>> = {
  catbabi: ({ accuracy, perplexity, curve = [] }: CatbabiPaper) => [
    {
      series: "valid/accuracy",
      name: "paper, test",
      value: accuracy,
      curve: curve.map((point) => ({ step: point.step, value: point.accuracy })),
    },
    { series: "valid/perplexity", name: "paper, test", value: perplexity, curve: [] },
  ],
  metarl: ({ trainReturn, testReturn, curve }: MetarlPaper) => [
    {
      series: "train/return",
      name: "authors' log, train",
      value: trainReturn,
      curve: curve.map(({ episode, train }) => ({ step: episode, value: train })),
    },
    {
      series: "valid/return",
      name: "authors' log, test",
      value: testReturn,
      curve: curve.map(({ episode, test }) => ({ step: episode, value: test })),
    },
  ],
  text: ({ valid, test }: TextPaper) => [
    {
      series: "valid/perplexity",
      name: valid === undefined ? "paper, test" : "paper, valid",
      value: valid ?? test,
      curve: [],
    },
  ],
};

/** Tokens, or observations of agents, that a step reads, where the settings say. */
export function tokensPerStep({ settings }: RunRecord): number | null {
  const flat = flatten(settings);
  const number = (key: string): number => Number(flat[key]);
  switch (String(flat["task.name"])) {
    case "catbabi":
      return finite(number("training.batch") * number("training.window"));
    case "text": {
      // Some windows are half as long as the others.
      const halved = 1 - (number("training.lengths.halfProbability") || 0) / 2;
      return finite(number("training.batch") * number("training.window") * halved);
    }
    case "metarl":
      return finite(number("training.agents") * number("task.length"));
    default:
      return null;
  }
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
