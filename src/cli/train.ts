/** `fwm train`: trains one experiment and writes a run folder, or resumes one. */
import { resolve } from "node:path";
import { UsageError } from "../errors.ts";
import type { Kind } from "../experiment/kind.ts";
import { experimentNames, kindOf, kindOfRecord, requireExperiment } from "../experiment/registry.ts";
import { countsOf } from "../experiment/report.ts";
import type { RunEnd, RunPlan } from "../experiment/trainRun.ts";
import { showMeasure, showSpeed, thousands } from "../report/table.ts";
import { flatten } from "../store/flatten.ts";
import { gitCommit, readRun } from "../store/runRecord.ts";
import type { LoopCallbacks, Values } from "../train/loop.ts";
import { command, optionFlag } from "./command.ts";
import {
  assignments,
  configFile,
  environmentSettings,
  layer,
  printSettings,
  resolveSettings,
  type SettingsLayer,
  settingsDocument,
  variableOf,
} from "./config.ts";
import type { Output, Surroundings } from "./output.ts";
import { file, flag, folder, integer, maybeText, number, oneOf, texts, threadCount } from "./params.ts";
import { showCounts } from "./report.ts";
import { shellLine } from "./shell.ts";
import { packageVersion } from "./version.ts";

/** The `train` command. */
export const trainCommand = command({
  name: "train",
  summary: "Train one experiment and write a run folder.",
  details:
    "The run folder holds settings, metrics.jsonl, TensorBoard events and checkpoints (docs/run-folder.md). " +
    "^C saves and says how to resume; resuming continues bit for bit.",
  examples: [
    {
      line: "fwm train catbabi-qa-fwm",
      trial: "fwm train catbabi-qa-fwm --smoke --steps 4 --out $EMPTY/run",
    },
    {
      line: "fwm train catbabi-qa-fwm --steps 300 --seed 2 --set training.optimizer.learningRate=2e-3",
      trial:
        "fwm train catbabi-qa-fwm --smoke --steps 4 --seed 2 --set training.optimizer.learningRate=2e-3 --out $EMPTY/two",
    },
    "fwm train catbabi-lm-fwm --print-config",
    {
      line: "fwm train metarl-fwm",
      trial: "fwm train metarl-fwm --smoke --steps 4 --out $EMPTY/agent",
    },
    {
      line: "fwm train ptb-awd-fwm",
      trial: "fwm train ptb-awd-fwm --smoke --steps 2 --out $EMPTY/text",
    },
    {
      line: "fwm train catbabi-qa-fwm-mixed --init runs/catbabi-qa-fwm-decay-seed1",
      trial: "fwm train catbabi-qa-fwm-mixed --smoke --steps 4 --init $RUN --out $EMPTY/tuned",
    },
    {
      line: "fwm train --resume runs/catbabi-qa-fwm-seed1",
      trial: "fwm train --resume $RUN --steps 6",
    },
  ],
  args: { experiment: oneOf(experimentNames(), { default: "catbabi-qa-fwm" }) },
  options: {
    set: texts({ placeholder: "key=value", help: "change a setting, e.g. training.batch=64" }),
    config: file({ help: "settings from a YAML or JSON file" }),
    steps: integer({ min: 1, help: "steps to train; episodes of agents" }),
    minutes: number({ help: "minutes of training after which to stop, evaluations not counted" }),
    processorMinutes: number({ help: "the same in processor time of all threads" }),
    seed: integer({ help: "seed of the weights, the batch order and dropout" }),
    batch: integer({ min: 1, help: "rows per batch; agents" }),
    data: folder({ help: "prepared data, if not in the usual place" }),
    out: folder({ help: "run folder; default runs/<experiment>-seed<seed>" }),
    resume: maybeText({
      placeholder: "run",
      help: "resume a run with its settings; --steps and minutes may be more",
    }),
    init: folder({ placeholder: "model", help: "start with the weights of a run, checkpoint or model" }),
    from: file({ placeholder: "checkpoint", help: "with --resume: the checkpoint to resume from" }),
    threads: threadCount(),
    device: oneOf(["cpu", "cuda"], { default: "cpu", help: "where to run; never falls back silently" }),
    smoke: flag({ help: "the experiment's small settings: a check, not a result" }),
    printConfig: flag({ help: "show the settings and where each came from, and stop" }),
  },
  graceful: true,
  run: async ({ args, options, origins, out, signal, env }) => {
    if (options.resume === undefined && options.from) throw new UsageError("--from goes with --resume");
    let plan: RunPlan;
    if (typeof options.resume === "string") {
      refuseOnResume(options, [...startOnly, ...naming, "out"]);
      plan = resumePlan(options.resume, options);
    } else {
      const resolved = newSettings(args.experiment, options, env);
      if (options.printConfig) {
        const counts = countsOf(kindOf(resolved.settings), resolved.settings);
        out.result({ ...settingsDocument(resolved), ...counts }, () =>
          [printSettings(resolved), showCounts(counts)].join("\n"),
        );
        return "finished";
      }
      const { settings } = resolved;
      const { init } = options;
      const usual = `runs/${args.experiment}${options.smoke ? "-smoke" : ""}-seed${settings.training.seed}`;
      const path = options.out ?? usual;
      // Without a folder of its own, --resume takes the one that these options name.
      if (options.resume) refuseOnResume(options, [...startOnly, ...(options.out ? naming : [])]);
      plan = options.resume
        ? resumePlan(path, options)
        : { action: "start", experiment: args.experiment, settings, folder: path, ...(init ? { init } : {}) };
    }
    const { isDivergence, plannedSettings, trainRun } = await import("../experiment/trainRun.ts");
    if (plan.action === "resume") {
      if (origins.experiment === "argument") await checkExperiment(plan.folder, args.experiment);
      await refuseOtherEnvironment(plan.folder, env);
    }
    const planned = await plannedSettings(plan);
    const kind = kindOf(planned);
    if (!options.smoke && gitCommit()?.endsWith("-dirty")) {
      out.warn(
        "the program's source has uncommitted changes: a result of this run will be marked, its exact source is not known",
      );
    }
    const shown = showTraining(out, kind, kind.steps(planned), plan.folder);
    try {
      const end = await trainRun(plan, {
        env,
        signal,
        command: ["fwm", ...process.argv.slice(2)],
        packageVersion: packageVersion(),
        device: options.device,
        ...(options.threads ? { threads: options.threads } : {}),
        onNote: (text) => out.note(text),
        onWarning: (text) => out.warn(text),
        callbacks: shown,
      });
      shown.stop();
      report(out, kind, end);
      return end.reason === "interrupted" ? "interrupted" : "finished";
    } catch (error) {
      shown.stop();
      if (plan.action === "start" && isDivergence(error)) {
        const remove = shellLine("rm", "-r", resolve(plan.folder));
        out.note(`the run is kept; give the next one another --out, or use the name again after: ${remove}`);
      }
      throw error;
    } finally {
      shown.stop();
    }
  },
});

/** What was given of the options above. */
interface TrainOptions {
  readonly set: readonly string[];
  readonly config: string | undefined;
  readonly steps: number | undefined;
  readonly minutes: number | undefined;
  readonly processorMinutes: number | undefined;
  readonly seed: number | undefined;
  readonly batch: number | undefined;
  readonly data: string | undefined;
  readonly out: string | undefined;
  readonly init: string | undefined;
  readonly from: string | undefined;
  readonly smoke: boolean;
  readonly printConfig: boolean;
}

/** The settings of a new run, and where each came from. */
function newSettings(experiment: string, options: TrainOptions, env: Surroundings["env"]) {
  const definition = requireExperiment(experiment);
  const kind = kindOf(definition.settings);
  const { steps, minutes, processorMinutes, batch, data, seed } = options;
  return resolveSettings(
    kind.schema,
    [
      layer("experiment", definition.settings),
      ...(options.smoke ? [layer("--smoke", definition.smoke)] : []),
      ...(options.config ? [configFile(options.config)] : []),
      environmentSettings(env, kind.schema),
      assignments(options.set),
      flagLayer(kind, { steps, minutes, processorMinutes, batch, data, seed }),
    ],
    kind.renamed,
  );
}

function resumePlan(folder: string, { from, steps, minutes, processorMinutes }: TrainOptions): RunPlan {
  return {
    action: "resume",
    folder,
    ...(from === undefined ? {} : { from }),
    ...(steps === undefined ? {} : { steps }),
    ...(minutes === undefined ? {} : { minutes }),
    ...(processorMinutes === undefined ? {} : { processorMinutes }),
  };
}

/** Options that make sense only for a new run, and those that name a run folder together with the experiment. */
const startOnly = ["init", "set", "config", "batch", "data", "printConfig"] as const;
const naming = ["seed", "smoke"] as const;

/** A run is resumed with its own settings and weights: whatever would be ignored is refused. */
function refuseOnResume(options: TrainOptions, names: readonly (keyof TrainOptions)[]): void {
  for (const name of names) {
    const given = options[name];
    if (given === undefined || given === false || (Array.isArray(given) && given.length === 0)) continue;
    if (name === "init") {
      throw new UsageError("--init is for a new run; --resume continues with the run's own weights");
    }
    if (name === "printConfig") {
      throw new UsageError("--print-config is for a new run", {
        hint: "the settings of a run are in its run.json",
      });
    }
    if (name === "out") {
      throw new UsageError("--out: a run is resumed in its own folder", {
        hint: "leave it out, or start a new run there with --init",
      });
    }
    throw new UsageError(`${optionFlag(name)}: a run is resumed with its own settings`, {
      hint: "leave it out, or start a new run with --init and other settings",
    });
  }
}

/** Settings in the environment do not reach a run that is resumed; where they differ from its own, that is an error. */
async function refuseOtherEnvironment(path: string, env: Surroundings["env"]): Promise<void> {
  const record = await readRun(path);
  const kind = kindOfRecord(record);
  if (!kind) return;
  const wanted = flatten(environmentSettings(env, kind.schema).values);
  const own = new Map(Object.entries(flatten(record.settings)));
  for (const [name, value] of Object.entries(wanted)) {
    if (own.get(name) === value) continue;
    throw new UsageError(`environment variable ${variableOf(name)}: a run is resumed with its own settings`, {
      [name]: `${own.get(name) ?? "nothing"} in the run, ${value} in the environment`,
      hint: `unset ${variableOf(name)}, or start a new run with --init`,
    });
  }
}

/** A run is resumed as the experiment it was started as. */
async function checkExperiment(path: string, named: string): Promise<void> {
  const { experiment } = await readRun(path);
  if (experiment === named) return;
  throw new UsageError(`${path}: the run is of ${experiment}, not of ${named}`, {
    hint: "leave the experiment out, or start a new run with --out",
  });
}

/** Common options that were given, as the settings of the kind that they stand for. */
export function flagLayer(
  { name, flags }: Pick<Kind, "name" | "flags">,
  given: Readonly<
    Partial<Record<"steps" | "minutes" | "processorMinutes" | "batch" | "data" | "seed", unknown>>
  >,
): SettingsLayer {
  const paths: Readonly<Record<string, string | undefined>> = {
    ...flags,
    seed: "training.seed",
    minutes: "training.minutes",
    processorMinutes: "training.processorMinutes",
  };
  const texts = Object.entries(given).flatMap(([option, value]) => {
    if (value === undefined) return [];
    const path = paths[option];
    if (!path) throw new UsageError(`--${option}: experiments of the kind ${name} have no such setting`);
    return [`${path}=${JSON.stringify(value)}`];
  });
  return { ...assignments(texts, "flag"), from: "flag" };
}

/** Shows how training goes: a bar, and a line for each evaluation. */
export function showTraining(
  out: Output,
  kind: Kind,
  steps: number,
  path: string,
): LoopCallbacks & { stop(): void } {
  let isFolderShown = false;
  const showFolder = (): void => {
    if (!isFolderShown) out.note(`run folder ${resolve(path)}`);
    isFolderShown = true;
  };
  const progress = out.progress({ label: "training", total: steps, show: thousands, every: 10_000 });
  return {
    onStep(done, { means }, speed) {
      showFolder();
      progress.update(
        done,
        `train ${kind.shown} ${Number(means[kind.shown]).toFixed(3)}`,
        showSpeed(kind, speed),
      );
    },
    onEvaluation(step, values, best) {
      showFolder();
      out.note(
        `${kind.unit} ${thousands(step)}: valid ${showValues(kind, values)}${best ? " (best so far)" : ""}`,
      );
    },
    stop: () => progress.stop(),
  };
}

/** The measures of a kind in a line. */
export function showValues({ measures }: Pick<Kind, "measures">, values: Values): string {
  return Object.entries(measures)
    .filter(([name]) => values[name] !== undefined)
    .map(([name, measure]) => `${measure.label} ${showMeasure(measure, values[name]!)}`)
    .join(", ");
}

/** How a run ended, in words. */
const endings: Readonly<Record<RunEnd["reason"], string>> = {
  finished: "finished",
  interrupted: "interrupted",
  paused: "paused",
  patience: "finished without a better evaluation",
  budget: "finished with its minutes",
};

function report(out: Output, kind: Kind, { folder: path, step, reason, progress }: RunEnd): void {
  const { best, bestStep } = progress;
  out.result({ folder: path, step, reason, best: progress.bestValues, bestStep }, () => {
    const lines = [`${endings[reason]} after ${thousands(step)} ${kind.unit}s; ${path}`];
    if (best !== null) {
      const measure = kind.measures[kind.best]!;
      lines.push(
        `best validation ${measure.label} ${showMeasure(measure, best)} at ${kind.unit} ${thousands(bestStep!)}`,
      );
    }
    if (reason === "interrupted") lines.push(`resume with: ${shellLine("fwm", "train", "--resume", path)}`);
    else {
      const test = shellLine("fwm", "eval", path, "--split", "test");
      lines.push(`next: ${test}`, `      ${kind.use} ${shellLine(path)}`);
    }
    return lines.join("\n");
  });
}
