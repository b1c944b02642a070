/** `fwm rerun`: results trained again from their files alone, and scored beside what was recorded. */
import { join } from "node:path";
import { UsageError } from "../errors.ts";
import type { BaseEvaluation } from "../experiment/kind.ts";
import { findExperiment } from "../experiment/registry.ts";
import type { Rerun } from "../experiment/rerun.ts";
import { thousands } from "../report/table.ts";
import { command } from "./command.ts";
import type { Output, Surroundings } from "./output.ts";
import { flag, folder, texts, threadCount } from "./params.ts";
import { scoreOf } from "./report.ts";
import { shellLine } from "./shell.ts";
import { showTraining } from "./train.ts";
import { packageVersion } from "./version.ts";
import { checkWritable, writeJson } from "./writeResult.ts";

/** The `rerun` command. */
export const rerunCommand = command({
  name: "rerun",
  summary: "Train results again from their files, and compare the scores.",
  details:
    "A result file has the settings, the seed and the evaluation of its run; nothing else is needed but the data. Each is " +
    "trained in a run folder of its own, evaluated as it was, and filed under --out. ^C saves; the same command goes on where " +
    "it stopped. On the same kind of processor, with as many threads and at the same commit, the scores are equal to the last " +
    "digit; elsewhere sums are rounded differently, and a long run ends within the spread of seeds. Results that began with the " +
    "weights of another run need these with --init. Result files of sweeps, of evaluations alone and of versions with other settings are passed over.",
  examples: [
    {
      line: "fwm rerun results/catbabi-qa-fwm-endless-seed1.json",
      trial: "fwm rerun $RESULT --runs $EMPTY/reruns --out $EMPTY/again",
    },
    {
      line: "fwm rerun results/catbabi-qa-fwm-real-seed*.json --dry-run",
      trial: "fwm rerun $RESULT $RESULT --dry-run",
    },
  ],
  args: { results: texts({ required: true, help: "result files of runs, as fwm report writes them" }) },
  options: {
    dryRun: flag({ help: "say what would be trained and how long it took, and stop" }),
    runs: folder({ default: "reruns", help: "folder of the run folders" }),
    out: folder({ default: "reruns/results", help: "folder of the new result files" }),
    init: folder({ placeholder: "model", help: "the weights that the run began with, where it did" }),
    data: folder({ help: "prepared data, if not in the usual place" }),
    threads: threadCount("as many as the result was trained with"),
  },
  graceful: true,
  run: async ({ args, options, out, signal, env }) => {
    const { readRerun } = await import("../experiment/rerun.ts");
    const wanted: Rerun[] = [];
    // Whatever is wrong with any of them is said before the first is trained.
    for (const path of args.results) {
      const rerun = await readRerun(path, {
        data: options.data,
        onOther: (reason) => out.warn(`${path}: passed over: the result of ${reason}`),
      });
      if (rerun) wanted.push(rerun);
    }
    if (wanted.length === 0) throw new UsageError("rerun: none of the files is the result of a run");
    if (options.dryRun) {
      out.result(wanted.map(planOf), () => wanted.map(showPlan).join("\n"));
      return "finished";
    }
    for (const { name, recorded } of wanted) {
      if (recorded.initFrom && options.init === undefined) {
        throw new UsageError(`${name}: the run began with the weights of ${recorded.initFrom}`, {
          hint: "give a model with them as --init; the file's `chain` has the commands that made them",
        });
      }
    }
    const done: object[] = [];
    for (const rerun of wanted) {
      const path = join(options.out, `${rerun.name}.json`);
      await checkWritable(path);
      const trained = await trainAgain(rerun, options, { out, signal, env });
      if (!trained) return "interrupted";
      done.push(await compareAgain(rerun, trained, path, { ...options, out, env }));
    }
    if (out.json) out.result(done, "");
    return "finished";
  },
});

interface Options {
  readonly runs: string;
  readonly init: string | undefined;
  readonly threads: number | undefined;
}

/** Threads as they were recorded, unless others are asked for. */
function threadsOf({ recorded }: Rerun, { threads }: Pick<Options, "threads">): number | undefined {
  return threads ?? recorded.machine.threads ?? undefined;
}

/** Trains a result's run, or goes on with it; its folder, or undefined where it was interrupted. */
async function trainAgain(
  rerun: Rerun,
  options: Options,
  { out, signal, env }: { out: Output; signal: AbortSignal; env: Surroundings["env"] },
): Promise<string | undefined> {
  const { kind, settings, name, recorded } = rerun;
  const { rerunState } = await import("../experiment/rerun.ts");
  const { trainRun } = await import("../experiment/trainRun.ts");
  const path = join(options.runs, name);
  const state = await rerunState(path, rerun);
  if (state === "trained") return path;
  const { experiment } = recorded;
  const { init } = options;
  const shown = showTraining(out, kind, kind.steps(settings), path);
  const threads = threadsOf(rerun, options);
  try {
    const { reason } = await trainRun(
      state === "begun"
        ? { action: "resume", folder: path }
        : { action: "start", experiment, settings, folder: path, ...(init ? { init } : {}) },
      {
        env,
        signal,
        command: ["fwm", ...process.argv.slice(2)],
        packageVersion: packageVersion(),
        ...(threads ? { threads } : {}),
        onNote: (text) => out.note(text),
        onWarning: (text) => out.warn(text),
        callbacks: shown,
      },
    );
    if (reason !== "interrupted") return path;
    out.note("the same command goes on where it stopped");
    return undefined;
  } finally {
    shown.stop();
  }
}

/** Evaluates a run as its result was, files it, and shows both scores. */
async function compareAgain(
  rerun: Rerun,
  run: string,
  path: string,
  { out, env, ...options }: Options & { out: Output; env: Surroundings["env"] },
): Promise<object> {
  const { kind, name, recorded, evaluation, checkpoint } = rerun;
  const { reportedRun } = await import("../experiment/report.ts");
  const { isSameScore } = await import("../experiment/rerun.ts");
  const { result } = await reportedRun(run, ["fwm", ...process.argv.slice(2)]);
  const threads = threadsOf(rerun, options);
  const score = recorded.score && (await scoreOf(run, { ...evaluation, checkpoint }, { threads, env, out }));
  await writeJson(path, { ...result, score });
  const identical = score && recorded.score ? isSameScore(recorded.score, score) : null;
  const paper = findExperiment(recorded.experiment)?.paper;
  const line = (of: BaseEvaluation | null): string => (of ? kind.showLine(of, paper) : "no score");
  if (!out.json) {
    out.record(null, () =>
      [
        `${name}`,
        `  recorded  ${line(recorded.score as BaseEvaluation | null)}`,
        `  again     ${line(score)}${identical ? ", equal to the last digit" : ""}`,
        `  ${path}`,
      ].join("\n"),
    );
  }
  return { name, recorded: recorded.score, again: score, identical, path };
}

/** What `--dry-run` gives of a result. */
function planOf({ name, recorded, kind, settings, evaluation }: Rerun): object {
  const { experiment, seed, steps, hours, commit, machine, initFrom } = recorded;
  return {
    ...{ name, experiment, seed, steps: kind.steps(settings), evaluation, initFrom: initFrom ?? null },
    recorded: { steps, hours, commit, machine },
  };
}

function showPlan({ name, recorded, kind, settings }: Rerun): string {
  const { experiment, seed, hours, machine, steps, commit, initFrom } = recorded;
  const threads = machine.threads === null ? "" : `, ${machine.threads} thread(s)`;
  const all = kind.steps(settings);
  const made = steps === all ? "" : ` of ${thousands(all)}`;
  const init = initFrom ? `, with the weights of ${initFrom} (--init)` : "";
  return [
    `${name}: ${shellLine("fwm", "train", experiment)} with its settings, seed ${seed}${init}`,
    `  took ${hours.toFixed(2)} hours for ${thousands(steps)}${made} ${kind.unit}s (${machine.cpu}${threads}) at commit ${commit?.slice(0, 12) ?? "unknown"}`,
  ].join("\n");
}
