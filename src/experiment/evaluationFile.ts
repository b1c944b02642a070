/** An evaluation as a result file: what was reached, and by which command, program and machine. */
import { basename, dirname, join } from "node:path";
import { portableCommand } from "../report/result.ts";
import { defaultThreads, ortVersion } from "../runtime/node.ts";
import { readIfPresent } from "../store/read.ts";
import { describeEnvironment, type Environment, gitCommit, runFile } from "../store/runRecord.ts";
import type { BaseEvaluation } from "./kind.ts";
import type { ComparedModel, LossComparison } from "./text/compare.ts";

/** Where the numbers of a result file come from. */
interface Origin {
  /** The command that wrote it. */
  readonly reportedBy: string;
  readonly date: string;
  readonly commit: string | null;
  readonly packageVersion: string;
  readonly machine: Environment;
}

/** A result file of an evaluation alone. */
export interface EvaluationFile<E extends BaseEvaluation = BaseEvaluation> extends Origin {
  readonly experiment: string;
  /** `model` is the run's or the model's name. */
  readonly score: E;
}

/** The command that writes a file, and how it runs. */
export interface Reporter {
  readonly reportedBy: readonly string[];
  readonly packageVersion: string;
  readonly threads?: number;
}

/** The content of an evaluation's file. */
export async function evaluationFile<E extends BaseEvaluation>(
  evaluation: E,
  about: Reporter,
): Promise<EvaluationFile<E>> {
  const { model, experiment } = evaluation;
  return { experiment, ...originOf(about), score: { ...evaluation, model: await nameOf(model) } };
}

/** The content of a comparison's file: the models under their runs' names. */
export async function comparisonFile(
  { models: [first, second], ...comparison }: LossComparison,
  about: Reporter,
): Promise<Origin & LossComparison> {
  const named = async (model: ComparedModel): Promise<ComparedModel> => ({
    ...model,
    model: await nameOf(model.model),
  });
  return { ...originOf(about), ...comparison, models: [await named(first), await named(second)] };
}

/** The name of a model's run, which says more than its checkpoint's; else of its folder. */
async function nameOf(model: string): Promise<string> {
  const run = dirname(model);
  const isRun = (await readIfPresent(join(run, runFile))) !== undefined;
  return basename(isRun ? run : model);
}

function originOf(about: Reporter): Origin {
  return {
    reportedBy: portableCommand(about.reportedBy),
    date: new Date().toISOString(),
    commit: gitCommit(),
    packageVersion: about.packageVersion,
    machine: describeEnvironment({
      threads: about.threads ?? defaultThreads,
      ort: ortVersion,
      device: "cpu",
    }),
  };
}
