/** `fwm train`: trains one experiment and writes a run folder, or goes on with one. */
import { resolve } from "node:path";
import { experimentNames, findExperiment } from "../../experiments/index.ts";
import { UsageError } from "../errors.ts";
import { kindOfRun, schemaFor } from "../experiment/kinds.ts";
import type { MetarlSettings } from "../experiment/metarlSettings.ts";
import type { RunPlanFor } from "../experiment/openRun.ts";
import { type Settings, settingsSchema } from "../experiment/settings.ts";
import { readRun } from "../store/runRecord.ts";
import { command } from "./command.ts";
import {
  assignments,
  configFile,
  environmentSettings,
  layer,
  printSettings,
  resolveSettings,
  type SettingsLayer,
  settingsDocument,
} from "./config.ts";
import type { Output } from "./output.ts";
import { file, flag, folder, integer, maybeText, oneOf, texts } from "./params.ts";
import { percent, thousands } from "./table.ts";
import { packageVersion } from "./version.ts";

/** The `train` command. */
export const trainCommand = command({
  name: "train",
  summary: "Train one experiment and write a run folder.",
  details:
    "The run folder holds settings, metrics.jsonl, TensorBoard events and checkpoints (docs/run-folder.md). " +
    "^C saves and says how to resume; resuming goes on bit for bit.",
  examples: [
    {
      line: "fwm train catbabi-qa-fwm",
      trial: "fwm train catbabi-qa-fwm --smoke --steps 4 --out $EMPTY/run",
    },
    {
      line: "fwm train catbabi-qa-fwm --steps 300 --seed 2 --set training.learningRate=2e-3",
      trial:
        "fwm train catbabi-qa-fwm --smoke --steps 4 --seed 2 --set training.learningRate=2e-3 --out $EMPTY/two",
    },
    "fwm train catbabi-lm-fwm --print-config",
    {
      line: "fwm train metarl-fwm",
      trial: "fwm train metarl-fwm --smoke --steps 4 --out $EMPTY/agent",
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
  args: { experiment: oneOf(experimentNames, { default: "catbabi-qa-fwm" }) },
  options: {
    set: texts({ placeholder: "key=value", help: "change a setting, e.g. training.batch=64" }),
    config: file({ help: "settings from a YAML or JSON file" }),
    steps: integer({ min: 1, help: "updates to make" }),
    seed: integer({ help: "seed of the weights, the batch order and dropout" }),
    batch: integer({ min: 1, help: "rows per batch" }),
    data: folder({ help: "prepared data, if not in the usual place" }),
    out: folder({ help: "run folder; default runs/<experiment>-seed<seed>" }),
    resume: maybeText({
      placeholder: "run",
      help: "go on with a run and its settings; --steps may be more",
    }),
    init: folder({ placeholder: "model", help: "begin with the weights of a run, checkpoint or model" }),
    from: file({ placeholder: "checkpoint", help: "with --resume: the checkpoint to go on from" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
    device: oneOf(["cpu", "cuda"], { default: "cpu", help: "where to run; never falls back silently" }),
    smoke: flag({ help: "the experiment's small settings: a check, not a result" }),
    printConfig: flag({ help: "show the settings and where each came from, and stop" }),
  },
  graceful: true,
  run: async ({ args, options, origins, out, signal, env }) => {
    const definition = findExperiment(args.experiment);
    const schema = schemaFor(definition.settings);
    const flags = flagLayer({
      training: { steps: options.steps, seed: options.seed, batch: options.batch },
      task: { data: options.data },
    });
    const resolved = resolveSettings(schema, [
      layer("experiment", definition.settings),
      ...(options.smoke ? [layer("--smoke", definition.smoke)] : []),
      ...(options.config ? [configFile(options.config)] : []),
      environmentSettings(env, schema),
      assignments(options.set),
      flags,
    ]);
    if (options.printConfig) {
      out.result(settingsDocument(resolved), () => printSettings(resolved));
      return;
    }
    const { settings } = resolved;
    const named =
      options.out ?? `runs/${args.experiment}${options.smoke ? "-smoke" : ""}-seed${settings.training.seed}`;
    const target = typeof options.resume === "string" ? options.resume : named;
    if (options.resume === undefined && options.from) throw new UsageError("--from goes with --resume");
    if (options.resume !== undefined) {
      if (options.init) {
        throw new UsageError("--init is for a new run; --resume goes on with the run's own weights");
      }
      const { set, config, batch, data } = options;
      const [given] =
        Object.entries({ set: set[0], config, batch, data }).find(([, is]) => is !== undefined) ?? [];
      if (given) {
        throw new UsageError(`--${given}: a run goes on with its own settings`, {
          hint: "leave it out, or begin a new run with --init and other settings",
        });
      }
      if (origins.experiment === "argument") await checkExperiment(target, args.experiment);
    }
    const planOf = <S>(own: S): RunPlanFor<S> =>
      options.resume === undefined
        ? {
            kind: "new",
            experiment: args.experiment,
            settings: own,
            folder: target,
            ...(options.init ? { init: options.init } : {}),
          }
        : {
            kind: "resume",
            folder: target,
            ...(options.from ? { from: options.from } : {}),
            ...(origins.steps === "default" ? {} : { steps: options.steps! }),
          };
    const context = {
      env,
      signal,
      command: ["fwm", ...process.argv.slice(2)],
      packageVersion: packageVersion(),
      device: options.device,
      ...(options.threads ? { threads: options.threads } : {}),
      onNote: (text: string) => out.note(text),
      onWarning: (text: string) => out.warn(text),
    };
    if ((options.resume === undefined ? settings.task.name : await kindOfRun(target)) === "metarl") {
      if (options.init) throw new UsageError("--init: agents begin with fresh weights");
      const { runMetarl } = await import("./trainMetarl.ts");
      await runMetarl(out, planOf(settings as MetarlSettings), context);
      return;
    }
    const { trainCatbabi } = await import("../experiment/catbabi.ts");
    const { settingsOf } = await import("../experiment/openRun.ts");
    const plan = planOf(settings as Settings);
    const { training } = await settingsOf(plan, settingsSchema);
    const watch = startWatch(out, training.steps, target);
    try {
      const end = await trainCatbabi(plan, { ...context, watch });
      watch.stop();
      report(out, end);
    } finally {
      watch.stop();
    }
  },
});

/** A run goes on as the experiment it was begun as. */
async function checkExperiment(folder: string, named: string): Promise<void> {
  const { experiment } = await readRun(folder);
  if (experiment === named) return;
  throw new UsageError(`${folder}: the run is of ${experiment}, not of ${named}`, {
    hint: "leave the experiment out, or begin a new run with --out",
  });
}

/** Options that were given, as a layer of settings. */
function flagLayer(values: Record<string, Record<string, unknown>>): SettingsLayer {
  const given = Object.entries(values).map(([group, members]) => [
    group,
    Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)),
  ]);
  return layer("flag", Object.fromEntries(given));
}

function startWatch(out: Output, steps: number, folder: string) {
  let told = false;
  const progress = out.progress({ label: "training", total: steps, show: thousands, every: 10_000 });
  let shown = "";
  return {
    onStep(step: number, { loss }: { loss: number }, tokensPerSecond: number) {
      if (!told) out.note(`run folder ${resolve(folder)}`);
      told = true;
      progress.update(
        step + 1,
        `loss ${loss.toFixed(3)}${shown} ${thousands(Math.round(tokensPerSecond))} tokens/s`,
      );
    },
    onLog(_step: number, { accuracy }: Readonly<Record<string, number>>) {
      shown = ` accuracy ${percent(accuracy!)}`;
    },
    onValidation(step: number, { values }: { values: Readonly<Record<string, number>> }, best: boolean) {
      const { loss, accuracy, perplexity } = values;
      out.note(
        `step ${thousands(step)}: valid loss ${loss!.toFixed(4)} accuracy ${percent(accuracy!)} ` +
          `perplexity ${perplexity!.toFixed(3)}${best ? "  (best)" : ""}`,
      );
    },
    stop: () => progress.stop(),
  };
}

function report(
  out: Output,
  end: {
    step: number;
    reason: string;
    folder: string;
    progress: { bestLoss: number | null; bestStep: number | null };
  },
): void {
  const { bestLoss, bestStep } = end.progress;
  const document = { folder: end.folder, step: end.step, reason: end.reason, bestLoss, bestStep };
  out.result(document, () => {
    const lines = [`${end.reason} after ${thousands(end.step)} steps; ${end.folder}`];
    if (bestLoss !== null)
      lines.push(`best validation loss ${bestLoss.toFixed(4)} at step ${thousands(bestStep!)}`);
    if (end.reason === "interrupted") lines.push(`go on with: fwm train --resume ${end.folder}`);
    else lines.push(`next: fwm eval ${end.folder} --split test`, `      fwm ask ${end.folder}`);
    return lines.join("\n");
  });
}
