/** An evaluation as a result file: what was reached, and by which command, program and machine. */
import { basename, dirname, join } from "node:path";
import { portableCommand } from "../report/result.ts";
import { defaultThreads, ortVersion } from "../runtime/node.ts";
import { readIfPresent } from "../store/read.ts";
import { describeEnvironment, type Environment, gitCommit, runFile } from "../store/runRecord.ts";
import type { BaseEvaluation } from "./kind.ts";

/** A result file of an evaluation alone. */
export interface EvaluationFile<E extends BaseEvaluation = BaseEvaluation> {
  readonly experiment: string;
  /** The command that wrote it. */
  readonly reportedBy: string;
  readonly date: string;
  readonly commit: string | null;
  readonly packageVersion: string;
  readonly machine: Environment;
  /** `model` is the run's or the model's name. */
  readonly score: E;
}

/** The file's content. */
export async function evaluationFile<E extends BaseEvaluation>(
  evaluation: E,
  about: {
    readonly reportedBy: readonly string[];
    readonly packageVersion: string;
    readonly threads?: number;
  },
): Promise<EvaluationFile<E>> {
  const { model, experiment } = evaluation;
  // A checkpoint's name says less than its run's.
  const run = dirname(model);
  const isRun = (await readIfPresent(join(run, runFile))) !== undefined;
  return {
    experiment,
    reportedBy: portableCommand(about.reportedBy),
    date: new Date().toISOString(),
    commit: gitCommit(),
    packageVersion: about.packageVersion,
    machine: describeEnvironment({
      threads: about.threads ?? defaultThreads,
      ort: ortVersion,
      device: "cpu",
    }),
    score: { ...evaluation, model: basename(isRun ? run : model) },
  };
}
