/** The figures of `fwm paper`, drawn from result files alone. */
import { drawFigure, type FigureLine } from "../../report/figure.ts";
import { percent } from "../../report/table.ts";
import { drawSpec } from "../../report/vega.ts";
import { drawWords } from "../../report/wordFigure.ts";
import type { CatbabiPaper } from "../catbabi/settings.ts";
import { requireExperiment } from "../registry.ts";
import { groupNames, groupsOf } from "./groups.ts";
import type { FiledComparison, FiledRun, FiledStretch, FiledSweep, Results } from "./read.ts";
import { agentRuns, authors, catbabiRuns, hasBudget } from "./tables.ts";

/** Validation accuracy of all runs of a mode over steps, or over hours. */
export async function learningCurves(results: Results, over: "step" | "hours"): Promise<string | undefined> {
  const runs = results.runs.filter(
    (run) => run.settings.task.mode === "qa" && !run.experiment.startsWith("quickstart") && !hasBudget(run),
  );
  const groups = groupsOf(runs);
  const names = groupNames(groups);
  const ours = groups.flatMap(({ runs: members }, i) =>
    members.map((run): FigureLine => ({ name: names[i]!, points: accuracies(run, over), color: i })),
  );
  if (ours.length === 0) return undefined;
  const last = Math.max(...ours.flatMap(({ points }) => points.map(({ x }) => x)));
  const { curve = [], accuracy } = requireExperiment("catbabi-qa-fwm").paper as CatbabiPaper;
  const theirs: FigureLine[] =
    over === "hours"
      ? []
      : [
          {
            name: "the authors' released run (read off their plot)",
            points: curve.filter(({ step }) => step <= last).map(({ step, accuracy: y }) => ({ x: step, y })),
            look: "circles",
          },
        ];
  return drawFigure({
    title: `Validation accuracy, question answering, over ${over === "step" ? "steps" : "hours"}`,
    x: over,
    y: "accuracy",
    percent: true,
    lines: [...ours, ...theirs.filter(({ points }) => points.length > 0)],
    marks: [{ name: `paper, test: ${percent(accuracy)}`, y: accuracy }],
  });
}

/** The curve behind the weights it started with; hours go evenly over the steps where the log does not say. */
function accuracies(run: FiledRun, over: "step" | "hours"): FigureLine["points"] {
  const { curves, steps, hours, chain, initFrom } = run;
  const stepsBefore =
    chain.reduce((sum, part) => sum + part.steps, 0) ||
    Number(/ after (\d+) steps$/.exec(initFrom ?? "")?.[1] ?? 0);
  const hoursBefore = chain.reduce((sum, part) => sum + (part.hours ?? 0), 0);
  return (curves.valid ?? []).map(({ step, values, hours: at = (hours * step) / steps }) => ({
    x: over === "step" ? stepsBefore + step : hoursBefore + at,
    y: values.accuracy!,
  }));
}

/** Test accuracy per task, a row of bars for every group of runs. */
export async function taskBars(results: Results): Promise<string | undefined> {
  const groups = [...groupsOf(catbabiRuns(results, "qa")), ...groupsOf(catbabiRuns(results, "lm"))];
  if (groups.length === 0) return undefined;
  const names = groupNames(groups);
  const values = groups.flatMap(({ runs }, i) =>
    Array.from({ length: 20 }, (_, at) => ({
      run: names[i],
      task: at + 1,
      accuracy:
        runs.reduce((sum, { score }) => sum + (score!.perTask?.[at + 1]?.accuracy ?? 0), 0) / runs.length,
    })),
  );
  return drawSpec({
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    background: "white",
    title: { text: "Test accuracy per task", anchor: "start", fontSize: 14 },
    data: { values },
    facet: {
      row: {
        field: "run",
        type: "nominal",
        title: null,
        sort: names,
        header: {
          labelAngle: 0,
          labelAnchor: "start",
          labelOrient: "top",
          labelFontWeight: "bold",
          labelLimit: 0,
        },
      },
    },
    spec: {
      width: 640,
      height: 70,
      mark: { type: "bar", color: "#0b6e4f", width: 20 },
      encoding: {
        x: { field: "task", type: "ordinal", title: "task", axis: { labelAngle: 0 } },
        y: {
          field: "accuracy",
          type: "quantitative",
          title: null,
          axis: { format: "~%", tickCount: 3 },
          scale: { domain: [0, 1] },
        },
      },
    },
  });
}

/** Accuracy (lines) and confidence (dashes) along the axes of the stretch suite, every model. */
export async function stretchCurves(stretches: readonly FiledStretch[]): Promise<string | undefined> {
  const [first] = stretches;
  if (!first) return undefined;
  const values = stretches.flatMap(({ file, score }) =>
    score.points.flatMap(({ axis, at, accuracy, confidence }) => {
      const label = score.axes.find(({ name }) => name === axis)!.label;
      return [
        { model: file, label, at, value: accuracy, what: "accuracy" },
        { model: file, label, at, value: confidence, what: "confidence" },
      ];
    }),
  );
  return drawSpec({
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    background: "white",
    title: { text: "The stretch suite: accuracy and mean confidence", anchor: "start", fontSize: 14 },
    data: { values },
    facet: {
      field: "label",
      type: "nominal",
      title: null,
      sort: first.score.axes.map(({ label }) => label),
      header: { labelLimit: 0, labelFontWeight: "bold" },
    },
    columns: 3,
    spec: {
      width: 190,
      height: 130,
      encoding: {
        x: { field: "at", type: "ordinal", title: null, axis: { labelAngle: 0, grid: false } },
        y: {
          field: "value",
          type: "quantitative",
          title: null,
          axis: { format: "~%" },
          scale: { domain: [0, 1] },
        },
        color: {
          field: "model",
          type: "nominal",
          title: null,
          legend: { orient: "bottom", labelLimit: 0, symbolType: "stroke" },
          scale: { range: ["#0b6e4f", "#c8553d", "#2f4b7c", "#8d6a9f", "#e0a526", "#4fa3c7", "#7b3f2a"] },
        },
      },
      layer: [
        {
          mark: { type: "line", strokeWidth: 2 },
          encoding: {
            strokeDash: {
              field: "what",
              type: "nominal",
              title: null,
              legend: {
                orient: "bottom",
                symbolType: "stroke",
                symbolSize: 300,
                // Without a colour of its own, a symbol that stands for dashes alone is not drawn.
                encoding: { symbols: { stroke: { value: "#444" }, strokeWidth: { value: 2 } } },
              },
              scale: {
                domain: ["accuracy", "confidence"],
                range: [
                  [1, 0],
                  [4, 3],
                ],
              },
            },
          },
        },
        { mark: { type: "circle", size: 25, opacity: 1 } },
      ],
    },
    resolve: { scale: { x: "independent" } },
  });
}

/** What the curves of a sweep show, by the kind of its task. */
const measures: Readonly<Record<string, string>> = {
  catbabi: "accuracy",
  metarl: "return",
  text: "perplexity",
};

/** Validation curves of a sweep's members. */
export async function sweepCurves({ members, file, settings }: FiledSweep): Promise<string | undefined> {
  const isAccuracy = settings.task.name === "catbabi";
  const measure = measures[settings.task.name] ?? "loss";
  const lines = members.map(({ name, curves }, color): FigureLine => {
    const points = (curves.valid ?? curves.test ?? []).flatMap(({ step, values }) =>
      values[measure] === undefined ? [] : [{ x: step, y: values[measure] }],
    );
    return { name, points, color };
  });
  if (lines.every(({ points }) => points.length === 0)) return undefined;
  return drawFigure({
    title: `${file}: validation ${measure}`,
    x: settings.task.name === "metarl" ? "episode" : "step",
    y: measure,
    percent: isAccuracy,
    lines,
    height: 240,
  });
}

/** Returns of agents, ours and the authors'. */
export async function agentCurves(results: Results): Promise<string | undefined> {
  const groups = groupsOf(agentRuns(results).filter(({ returns }) => returns.length > 0));
  if (groups.length === 0) return undefined;
  const names = groupNames(groups);
  const ours = groups.flatMap(({ runs }, color) =>
    runs.map(
      ({ returns, curves }): FigureLine => ({
        name: names[color]!,
        // Version 0.1 had no validation graphs, but means of its log.
        points: curves.valid
          ? curves.valid.map(({ step, values }) => ({ x: step, y: values.return! }))
          : returns.map(({ episode, heldOut }) => ({ x: episode, y: heldOut })),
        color,
      }),
    ),
  );
  const last = Math.max(...ours.flatMap(({ points }) => points.map(({ x }) => x)));
  const theirs = authors().map(
    ({ title, paper: { curve } }, i): FigureLine => ({
      name: `the authors' ${title}`,
      points: curve
        .filter(({ episode }) => episode <= last)
        .map(({ episode, test }) => ({ x: episode, y: test })),
      look: "circles",
      color: groups.length + i,
    }),
  );
  // The timer of nearly all runs, and of the authors'.
  const explorer = agentRuns(results).find(
    ({ score }) => score?.explorer && score.rules?.timerOnSuccess === "kept",
  )?.score?.explorer?.mean;
  return drawFigure({
    title: "Mean return on held-out graphs",
    x: "episode",
    y: "mean return",
    lines: [...ours, ...theirs.filter(({ points }) => points.length > 0)],
    marks:
      explorer === undefined
        ? []
        : [{ name: `explorer, forgets nothing: ${explorer.toFixed(1)}`, y: explorer }],
    height: 360,
  });
}

/** The passages of a comparison, word by word. */
export async function lossFigure({ models, passages, split }: FiledComparison): Promise<string> {
  const [first, second] = models.map(({ experiment }) => experiment) as [string, string];
  return drawWords({
    title: `Loss of ${first} and ${second}, ${split} split`,
    rows: [first, second, "difference"],
    scales: ["loss, bits", "difference, bits"],
    passages: passages.map(({ at, words, bits, difference }) => ({
      ...{ title: `from word ${at}`, words, values: bits, difference },
    })),
  });
}
