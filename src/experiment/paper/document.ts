/** `docs/results.md` and its figures, and the README's tables: everything from result files and the shipped model. */

import { thousands } from "../../report/table.ts";
import { budgetFigure, budgetsOf, budgetTable, budgetTitle } from "./budgets.ts";
import { agentCurves, learningCurves, lossFigure, stretchCurves, sweepCurves, taskBars } from "./figures.ts";
import { groupsOf, link } from "./groups.ts";
import {
  appendix,
  epochsTable,
  languageSettings,
  languageTable,
  smallLanguageFigure,
  smallLanguageTable,
} from "./language.ts";
import { table2 } from "./published.ts";
import type { FiledSweep, Results } from "./read.ts";
import { readmeTables } from "./readme.ts";
import {
  agentRunsTable,
  agentTable,
  agentTrialsTable,
  catbabiRuns,
  catbabiTable,
  sourceTable,
  stretchTable,
  sweepTable,
  taskTable,
  trainingNotes,
} from "./tables.ts";
import { drawTransitive, type TransitiveTrace } from "./transitive.ts";

/** What is written. */
export interface Paper {
  /** The page, in Markdown. */
  readonly page: string;
  /** SVG figures by file name. */
  readonly figures: ReadonlyMap<string, string>;
  /** The README's tables. */
  readonly readme: string;
}

/** Lines of the README between which the tables stand. */
const readmeMarks = {
  begin: "<!-- these tables are written by fwm paper -->",
  end: "<!-- end of the tables -->",
} as const;

/** The README with the tables between its marks; undefined where it has none. */
export function withTables(readme: string, tables: string): string | undefined {
  const [begin, end] = [readme.indexOf(readmeMarks.begin), readme.indexOf(readmeMarks.end)];
  if (begin === -1 || end < begin) return undefined;
  return `${readme.slice(0, begin)}${readmeMarks.begin}\n\n${tables}\n\n${readme.slice(end)}`;
}

/** A search among settings of a language model; other sweeps are ablations. */
const isText = ({ settings }: FiledSweep): boolean => settings.task.name === "text";

/** Builds all of it. `folder` and `readmeFolder` lead from the page and from the README to the results. */
export async function buildPaper(
  results: Results,
  trace: TransitiveTrace | undefined,
  { folder, readmeFolder }: { readonly folder: string; readonly readmeFolder: string },
): Promise<Paper> {
  const figures = new Map<string, string>();
  /** A figure in the page, or the sentence that it is missing. */
  const shown = (name: string, alt: string, svg: string | undefined): string => {
    if (svg === undefined) return `Not run yet: ${alt}.`;
    figures.set(`${name}.svg`, svg);
    return `![${alt}](${folder}/figures/${name}.svg)`;
  };
  const sweepSection = async (sweep: FiledSweep): Promise<string> =>
    [
      `${isText(sweep) ? "####" : "###"} ${sweep.file}`,
      `${link(sweep, folder)}: \`${sweep.experiment}\`, ${thousands(sweep.steps)} ${
        sweep.settings.task.name === "metarl" ? "episodes" : "steps"
      }${new Set(sweep.members.map(({ steps }) => steps)).size > 1 ? " by those that went on" : " each"}.`,
      sweepTable(sweep),
      shown(`sweep-${sweep.file}`, `Validation curves of ${sweep.file}`, await sweepCurves(sweep)),
    ].join("\n\n");
  const { sweeps, stretches, comparisons } = results;
  const budgets = budgetsOf(results);
  const sections: string[] = [
    "# Results",
    "Written by `fwm paper` from the files of [results/](../results/README.md) and the shipped model; a test builds it again " +
      "and compares. Nothing on this page was typed by hand. A number of ours is the mean over seeds, ± the standard " +
      "deviation of a sample where there are several; the paper's are those of its tables (Schlag, Munkhdalai and " +
      "Schmidhuber, ICLR 2021).",
    "† trained or filed from a tree with uncommitted changes, or without a recorded commit: the exact source is not known.",
    "## Table 1: catbAbI",
    "Test split, one stream. `weights` and `state` (numbers that change while reading, one row) are counted from ours, and " +
      "as printed in the paper's rows.",
    "### Question answering",
    catbabiTable(results, "qa", folder),
    ...trainingNotes(results, "qa", folder),
    "### Language-model mode",
    catbabiTable(results, "lm", folder),
    ...trainingNotes(results, "lm", folder),
    ...(budgets.length > 0
      ? [
          "### Equal budgets",
          "Systems trained for the same time, the checkpoint with the lowest validation loss scored on the test split. Time " +
            "is that of training steps. `validation` is the highest accuracy on the way. A short budget shows how fast a " +
            "system learns, not where it ends: the paper's systems are larger, all but its memory, and its runs many times as long.",
          ...(await Promise.all(
            budgets.map(async (budget) => {
              const { mode, measure, minutes } = budget;
              const name = `budget-${mode}-${minutes}-${measure === "minutes" ? "minutes" : "processor-minutes"}`;
              const title = budgetTitle(budget);
              return [
                `#### ${title}`,
                budgetTable(budget, folder),
                shown(name, `Validation accuracy over ${title}`, await budgetFigure(budget)),
                "Test accuracy per task, in per cent:",
                taskTable(budget.groups),
              ].join("\n\n");
            }),
          )),
        ]
      : []),
    "### Learning curves",
    shown("catbabi-steps", "Validation accuracy over steps", await learningCurves(results, "step")),
    shown("catbabi-hours", "Validation accuracy over hours", await learningCurves(results, "hours")),
    "A run that started with the weights of another begins where that one stood. Hours are those in training steps, of version 0.1 " +
      "a run's hours spread evenly over its steps, on the machines of the last table.",
    "### Accuracy per task",
    shown("catbabi-tasks", "Test accuracy per task", await taskBars(results)),
    ...(["qa", "lm"] as const).flatMap((mode) => {
      const groups = groupsOf(catbabiRuns(results, mode));
      const title = mode === "qa" ? "Question answering" : "Language-model mode";
      return groups.length > 0 ? [`${title}, test, in per cent:`, taskTable(groups)] : [];
    }),
    "### Transitive inference",
    trace
      ? "The paper's figure of how reads chain, by the shipped model on a story of task 15: red where a read's query matches a " +
        "word's write key, blue where it is opposed to it, each read against its strongest."
      : "Not run yet: the shipped model is not here.",
    ...(trace
      ? [
          shown(
            "transitive-inference",
            `Which words each read matched; asked what Gertrude is afraid of, the model says ${trace.answer}`,
            drawTransitive(trace),
          ),
        ]
      : []),
    "## Beyond bAbI: the stretch suite",
    "What it asks: [infinite-catbabi.md](infinite-catbabi.md#the-stretch-suite).",
    shown(
      "stretch",
      "Accuracy and confidence along the axes of the stretch suite",
      await stretchCurves(stretches),
    ),
    ...(stretches.length > 0
      ? [
          stretches
            .map(
              (stretch) =>
                `${link(stretch, folder)}: ${(100 * stretch.score.accuracy).toFixed(2)} % of all ` +
                `${stretch.score.questions} questions (model ${stretch.score.model})`,
            )
            .join("; ") + ".",
          stretchTable(stretches),
        ]
      : []),
    "## Ablations",
    "Validation, one seed unless the table says more.",
    ...(await Promise.all(sweeps.filter((sweep) => !isText(sweep)).map(sweepSection))),
    "## Table 2: language modelling",
    "Perplexity at batch 1. The paper's numbers are the best of three seeds.",
    languageTable(results, folder),
    "### Every seed (the appendix's table)",
    appendix(results, folder),
    "### Epoch by epoch",
    "Validation perplexity (batch 10, temperature 1) after the first epochs of the published recipes, which go on for hundreds.",
    ...Object.keys(table2).flatMap((name) => {
      const table = epochsTable(results, name, folder);
      return table === undefined ? [`\`${name}\`: not run yet.`] : [`\`${name}\`:`, table];
    }),
    "### Small models",
    "Which the paper does not have: [language-modelling.md](language-modelling.md#small-models). Perplexity at batch 1; " +
      "temperature, cache and dynamic evaluation are tuned on the validation split.",
    smallLanguageTable(results, folder),
    ...[languageSettings(results, folder)].filter((text) => text !== undefined),
    shown(
      "ptb-small",
      "Validation perplexity of the small models on Penn Treebank",
      await smallLanguageFigure(results, "ptb"),
    ),
    ...(await Promise.all(sweeps.filter(isText).map(sweepSection))),
    "### Losses word by word",
    ...(comparisons.length === 0
      ? ["Not run yet: a comparison of two language models (`fwm compare`)."]
      : await Promise.all(
          comparisons.map(async (comparison) => {
            const { models, tokens, split, passages } = comparison;
            const names = models.map(({ experiment }) => experiment);
            const bits = models
              .map((model, i) => `\`${names[i]}\` needs ${model.bits.toFixed(3)}`)
              .join(", ");
            return [
              `${link(comparison, folder)}: over ${thousands(tokens)} words of the ${split} split, ${bits} bits per word. ` +
                `Shown from word ${passages.map(({ at }) => thousands(at)).join(" and ")} on.`,
              shown(comparison.file, `Losses of ${names.join(" and ")}`, await lossFigure(comparison)),
            ].join("\n\n");
          }),
        )),
    "## Meta-reinforcement learning",
    "± is the standard deviation over seeds. How far agents can get, and what is known of version 0.1's: " +
      "[meta-rl.md](meta-rl.md#results).",
    agentTable(results),
    shown("metarl", "Mean return of agents over episodes", await agentCurves(results)),
    agentRunsTable(results, folder),
    ...(results.agents.length === 0
      ? []
      : [
          "Agents on other graphs, or in longer episodes, than they were trained for; fresh graphs are of the same kind, but no " +
            "recipe was tuned on them:",
          agentTrialsTable(results, folder),
        ]),
    "## Where each number comes from",
    sourceTable(results, folder),
  ];
  return { page: `${sections.join("\n\n")}\n`, figures, readme: readmeTables(results, readmeFolder) };
}
