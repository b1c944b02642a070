/** Systems of catbAbI that were trained for the same time: what they reach side by side, as a table and a figure. */
import { drawFigure, type FigureLine } from "../../report/figure.ts";
import { thousands } from "../../report/table.ts";
import { mean } from "../../statistics.ts";
import type { CatbabiSettings } from "../catbabi/settings.ts";
import { groupNames, groupsOf, links, markdownTable, type RunGroup, share, withSpread } from "./groups.ts";
import { table1 } from "./published.ts";
import type { FiledRun, Results } from "./read.ts";
import { catbabiRuns } from "./tables.ts";

/** Runs of a mode that had one budget. */
export interface Budget {
  readonly mode: "qa" | "lm";
  readonly measure: "minutes" | "processorMinutes";
  readonly minutes: number;
  readonly groups: readonly RunGroup[];
}

/** The budgets that more than one experiment was trained with, the largest first. */
export function budgetsOf(results: Results): Budget[] {
  return (["qa", "lm"] as const).flatMap((mode) =>
    (["minutes", "processorMinutes"] as const).flatMap((measure) => {
      const runs = catbabiRuns(results, mode, "budget").filter((run) => trainingOf(run)[measure] > 0);
      const amounts = [...new Set(runs.map((run) => trainingOf(run)[measure]))].toSorted((a, b) => b - a);
      return amounts
        .map((minutes) => ({
          mode,
          measure,
          minutes,
          groups: groupsOf(runs.filter((run) => trainingOf(run)[measure] === minutes)).toSorted(
            (a, b) => accuracyOf(b) - accuracyOf(a),
          ),
        }))
        .filter(({ groups }) => new Set(groups.map(({ experiment }) => experiment)).size > 1);
    }),
  );
}

/** "20 minutes of processor time, question answering". */
export function budgetTitle({ mode, measure, minutes }: Budget): string {
  const time = measure === "minutes" ? "minutes" : "minutes of processor time";
  return `${minutes} ${time}, ${mode === "qa" ? "question answering" : "language-model mode"}`;
}

/** What every system reached, the best first. */
export function budgetTable({ groups, mode }: Budget, folder: string): string {
  const names = groupNames(groups);
  return markdownTable([
    [
      "experiment",
      "weights",
      "state",
      "batch",
      "steps",
      "tokens",
      "validation",
      "test",
      "paper, test",
      "results",
    ],
    ...groups.map(({ runs }, i) => {
      const [first] = runs as [FiledRun, ...FiledRun[]];
      const { batch, window } = trainingOf(first);
      const published = table1[settingsOf(first).system.name]?.[mode].accuracy;
      const steps = mean(runs.map((run) => run.steps));
      return [
        `\`${names[i]}\``,
        ...[first.weights, first.stateVariables].map((count) => (count ? thousands(count) : "-")),
        String(batch),
        thousands(Math.round(steps)),
        `${((steps * batch * window) / 1e6).toFixed(1)} M`,
        `${withSpread(runs.map(bestValidation), 2)} %`,
        `${withSpread(
          runs.map(({ score }) => 100 * score!.accuracy!),
          2,
        )} %`,
        published ? `${published.mean.toFixed(2)} %` : "-",
        links(runs, folder, ({ score }) => (runs.length > 1 ? share(score!.accuracy!) : undefined)),
      ];
    }),
  ]);
}

/** Validation accuracy over the time of the budget, a line for every run. */
export function budgetFigure(budget: Budget): Promise<string> {
  const { groups, measure } = budget;
  const names = groupNames(groups);
  const hours = measure === "minutes" ? "hours" : "processorHours";
  return drawFigure({
    title: `Validation accuracy, ${budgetTitle(budget)}`,
    x: measure === "minutes" ? "minutes" : "minutes of processor time",
    y: "accuracy",
    continuous: true,
    percent: true,
    lines: groups.flatMap(({ runs }, i) =>
      runs.map(
        ({ curves }): FigureLine => ({
          name: names[i]!,
          color: i,
          points: (curves.valid ?? []).map((point) => ({
            x: 60 * (point[hours] ?? 0),
            y: point.values.accuracy!,
          })),
        }),
      ),
    ),
  });
}

function settingsOf({ settings }: FiledRun): CatbabiSettings {
  return settings as unknown as CatbabiSettings;
}

function trainingOf(run: FiledRun): CatbabiSettings["training"] {
  return settingsOf(run).training;
}

function bestValidation({ curves }: FiledRun): number {
  return 100 * Math.max(...(curves.valid ?? []).map(({ values }) => values.accuracy!));
}

function accuracyOf({ runs }: RunGroup): number {
  return mean(runs.map(({ score }) => score!.accuracy!));
}
