/** `fwm sweep`: trains every member of a grid of settings at the same budget, and files one result. */
import { join, resolve } from "node:path";
import { UsageError } from "../errors.ts";
import type { BaseSettings, Kind } from "../experiment/kind.ts";
import { experimentNames, kindOf, requireExperiment } from "../experiment/registry.ts";
import type { Axis, Change, MemberState, SweepMember } from "../experiment/sweep/members.ts";
import type { SweepCallbacks } from "../experiment/sweep/queue.ts";
import type { Rounds } from "../experiment/sweep/rounds.ts";
import type { RoundResult } from "../experiment/sweep/run.ts";
import { parseSpace, type SearchSpace } from "../experiment/sweep/space.ts";
import type { Spread, SweepResult } from "../report/sweep.ts";
import { showMeasure, showSpeed, table, thousands } from "../report/table.ts";
import { command, type Origin } from "./command.ts";
import { assignments, configFile, environmentSettings, layer, resolveSettings } from "./config.ts";
import { figureParams, writeFigure } from "./figure.ts";
import type { Output } from "./output.ts";
import { file, fileName, flag, folder, integer, oneOf, texts, threadCount, value } from "./params.ts";
import { hideQueue, queueParam, withoutQueue } from "./queueParam.ts";
import { shellLine } from "./shell.ts";
import { flagLayer, showValues } from "./train.ts";
import { packageVersion } from "./version.ts";
import { writeJson, writeResult } from "./writeResult.ts";

/** The `sweep` command. */
export const sweepCommand = command({
  name: "sweep",
  summary: "Train a grid of settings and seeds at the same budget, and file one result.",
  details:
    "--each makes one change at a time beside the unchanged experiment (an ablation), --vary every combination. " +
    "With --rounds all members train for the first budget and the best few go on to the next. " +
    "With --queue workers on other machines (fwm worker) train the members. " +
    "Every member is a run folder under --out; started again, the same line resumes where it was stopped " +
    "(docs/sweeps.md).",
  examples: [
    {
      line: "fwm sweep catbabi-qa-fwm --each system.reads=1,2 --each system.keys=concat --steps 2000 --figure results/ablation.svg",
      trial:
        "fwm sweep catbabi-qa-fwm --smoke --each system.reads=1 --steps 2 --out $EMPTY/each --results $EMPTY/results --figure $EMPTY/each.svg",
    },
    {
      line: "fwm sweep catbabi-qa-fwm --vary training.optimizer.learningRate=1e-3,2e-3 --seeds 1,2,3 --plan",
      trial:
        "fwm sweep catbabi-qa-fwm --vary training.optimizer.learningRate=1e-3,2e-3 --seeds 1,2,3 --plan --out $EMPTY/vary",
    },
    {
      line: "fwm sweep catbabi-qa-fwm --space experiments/searches/fwm.yaml",
      trial: "fwm sweep catbabi-qa-fwm --space experiments/searches/fwm.yaml --plan --out $EMPTY/space",
    },
    {
      line: "fwm sweep catbabi-qa-fwm --vary training.batch=32,64,128 --rounds 3000,30000 --keep 1",
      trial:
        "fwm sweep catbabi-qa-fwm --smoke --vary training.batch=4,8 --rounds 1,2 --keep 1 --set training.evalEvery=1 --out $EMPTY/rounds --results $EMPTY/results",
    },
    {
      line: "fwm sweep catbabi-qa-fwm --space experiments/searches/fwm.yaml --launcher slurm --workers 16",
      trial:
        "fwm sweep catbabi-qa-fwm --space experiments/searches/fwm.yaml --launcher slurm --workers 16 --out $EMPTY/slurm",
    },
    {
      line: "fwm sweep metarl-fwm --seeds 1,2,3",
      trial:
        "fwm sweep metarl-fwm --smoke --seeds 1,2 --steps 2 --out $EMPTY/agents --results $EMPTY/results",
    },
  ],
  args: { experiment: oneOf(experimentNames()) },
  options: {
    space: file({ help: "search space from a YAML file, such as experiments/searches/fwm.yaml" }),
    each: texts({ placeholder: "key=v1,v2", help: "one member per value, and one without any change" }),
    vary: texts({ placeholder: "key=v1,v2", help: "every combination of the values given this way" }),
    seeds: value({ placeholder: "n,n", help: "train every member once per seed" }, parseSeeds),
    rounds: value(
      { placeholder: "n,n", help: "steps at the end of each round: successive halving" },
      parseCounts,
    ),
    keep: value(
      { placeholder: "n,n", help: "with --rounds: settings that go on after each but the last" },
      parseCounts,
    ),
    asha: integer({ min: 2, help: "with --rounds: asynchronous halving, one of so many goes on" }),
    set: texts({ placeholder: "key=value", help: "change a setting of all members" }),
    steps: integer({ min: 1, help: "steps each member trains; episodes of agents" }),
    data: folder({ help: "prepared data, if not in the usual place" }),
    smoke: flag({ help: "the experiment's small settings: a check, not a result" }),
    threads: threadCount(),
    name: fileName({ help: "name of the result; default <experiment>-sweep" }),
    out: folder({ help: "where the run folders go; default runs/<name>" }),
    queue: queueParam(),
    launcher: oneOf(["slurm"], { help: "write a batch script for workers on a cluster, and stop" }),
    workers: integer({ min: 1, default: 4, help: "with --launcher: how many workers" }),
    weights: flag({ help: "with --queue: workers send the best checkpoints back" }),
    results: folder({ default: "results", help: "folder of the result file" }),
    ...figureParams("the curves of all members"),
    plan: flag({ help: "show the members and how each stands, and stop" }),
  },
  graceful: true,
  run: async ({ args, options, origins, out, signal, env }) => {
    const definition = requireExperiment(args.experiment);
    const kind = kindOf(definition.settings);
    const name = options.name ?? `${args.experiment}${options.smoke ? "-smoke" : ""}-sweep`;
    const space = options.space === undefined ? undefined : readSpace(options.space);
    const own = {
      each: options.each.map((given) => parseAxis(given, "--each")),
      vary: options.vary.map((given) => parseAxis(given, "--vary")),
    };
    const axes = {
      each: [...(space?.each ?? []), ...own.each],
      vary: [...(space?.vary ?? []), ...own.vary],
    };
    const optionOf = (key: string): string => {
      const isIn = (given: readonly Axis[]): boolean => given.some((axis) => axis.key === key);
      if (isIn(own.vary)) return "--vary";
      if (isIn(own.each)) return "--each";
      return key === "training.seed" ? "--seeds" : `--space ${options.space}`;
    };
    const rounds = roundsOf(options, space);
    const { data } = options;
    const steps = rounds ? rounds.steps.at(-1) : options.steps;
    const environment = environmentSettings(env, kind.schema);
    const settingsOf = (changes: readonly Change[]): BaseSettings =>
      resolveSettings(
        kind.schema,
        [
          layer("experiment", definition.settings),
          ...(options.smoke ? [layer("--smoke", definition.smoke)] : []),
          environment,
          ...(space ? [assignments(space.set, `--space ${options.space}`)] : []),
          assignments(options.set),
          flagLayer(kind, { steps, data, batch: undefined, seed: undefined }),
          ...changes.map(({ key, value: given }) => assignments([`${key}=${given}`], optionOf(key))),
        ],
        kind.renamed,
      ).settings;
    const base = settingsOf([]);
    const { sweepMembers, sweepStates } = await import("../experiment/sweep/members.ts");
    const { checkRounds } = await import("../experiment/sweep/rounds.ts");
    const { runSweep } = await import("../experiment/sweep/run.ts");
    const folderOfRuns = options.out ?? join("runs", name);
    const members = sweepMembers(
      { ...axes, seeds: options.seeds ?? space?.seeds ?? [] },
      { experiment: args.experiment, out: folderOfRuns },
      settingsOf,
    );
    if (rounds) checkRounds(rounds, members);
    refuseWithQueue(options, origins);
    if (options.launcher) {
      await writeLauncher(out, { name, workers: options.workers, out: folderOfRuns });
      return "finished";
    }
    if (options.plan) {
      showPlan(out, kind, members, await sweepStates(members));
      return "finished";
    }

    const line = ["fwm", ...process.argv.slice(2)];
    const about = { command: withoutQueue(line), packageVersion: packageVersion() };
    const shown = showSweep(out, kind, members);
    // What is said of the data is the same for every member.
    const saying = { onNote: once((said) => out.note(said)), onWarning: once((said) => out.warn(said)) };
    const remote = options.queue === undefined ? undefined : await import("../queue/redisQueue.ts");
    const queue = await remote?.redisQueue({
      ...{ ...about, ...saying, signal, queue: options.queue!, sweep: name, weights: options.weights },
      ...{ callbacks: shown, onProgress: shown.onProgress },
    });
    const end = await runSweep(members, {
      ...{ ...about, ...saying, env, signal, callbacks: shown },
      ...(queue ? { queue } : {}),
      ...(rounds ? { rounds } : {}),
      ...(options.threads ? { threads: options.threads } : {}),
    }).finally(() => shown.stop());
    const { collectSweep, sweepFigure } = await import("../report/sweep.ts");
    const { gitCommit } = await import("../store/runRecord.ts");
    const result = await collectSweep(
      members.map((member, i) => ({ ...member, state: end.states[i]! })),
      kind,
      {
        ...about,
        experiment: args.experiment,
        description: definition.description,
        steps: kind.steps(base),
        commit: gitCommit(),
        state: end.reason,
        settings: base,
        paper: definition.paper as object | undefined,
        ...(rounds ? { rounds: { rule: rounds.rule, measure: kind.best, rounds: end.rounds ?? [] } } : {}),
      },
    );
    const closing: string[] = [];
    if (end.reason === "interrupted") closing.push(`stopped; resume with: ${shellLine(...hideQueue(line))}`);
    else {
      const path = join(options.results, `${name}.json`);
      await writeJson(path, result);
      closing.push(`result ${path}`);
      const figure = await writeFigure(options, () => sweepFigure(result, kind));
      if (figure) closing.push(`figure ${figure}`);
    }
    out.result(result, () =>
      [
        showResult(result, kind, out.tableWidth),
        ...(end.rounds ?? []).map((round, i) => showRound(round, i, kind, out.tableWidth)),
        ...closing,
      ].join("\n"),
    );
    return end.reason;
  },
});

/** Writes the batch script of a sweep's workers, and says how to go on. */
async function writeLauncher(
  out: Output,
  { name, workers, out: place }: { readonly name: string; readonly workers: number; readonly out: string },
): Promise<void> {
  const { slurmScript } = await import("./slurm.ts");
  const path = join(resolve(place), "workers.sbatch");
  // Workers train in <share>/<name>, which by default is where this sweep looks.
  const script = slurmScript({
    name,
    workers,
    share: resolve(place, ".."),
    log: join(resolve(place), "worker"),
  });
  await writeResult(path, script);
  const submit = `${shellLine("sbatch", path)}`;
  out.result({ script: path, submit }, `${path}\nexport FWM_QUEUE=redis://…, then: ${submit}`);
}

/** Over a queue the workers have the data and the threads. */
function refuseWithQueue(
  options: { readonly queue: string | undefined; readonly weights: boolean },
  origins: Readonly<Record<string, Origin>>,
): void {
  if (options.queue === undefined) {
    if (options.weights) throw new UsageError("--weights goes with --queue");
    return;
  }
  if (origins.data === "flag") {
    throw new UsageError("--data: over a queue every worker has its own data", {
      hint: "set FWM_DATA where the workers run",
    });
  }
  if (origins.threads === "flag") {
    throw new UsageError("--threads: over a queue every worker has its own", {
      hint: "fwm worker --threads",
    });
  }
}

/** The search space of a file. */
function readSpace(path: string): SearchSpace {
  const { values } = configFile(path, "--space");
  return parseSpace(values, (reason) => new UsageError(`--space ${path}: not a search space`, { reason }));
}

/** The rounds that the options ask for, or else the search space; undefined where there is one budget. */
function roundsOf(
  given: {
    readonly rounds: readonly number[] | undefined;
    readonly keep: readonly number[] | undefined;
    readonly asha: number | undefined;
    readonly steps: number | undefined;
  },
  space: SearchSpace | undefined,
): Rounds | undefined {
  // One budget on the line overrules the rounds of a file.
  const steps = given.rounds ?? (given.steps === undefined ? space?.rounds : undefined);
  if (given.rounds && given.steps !== undefined) {
    throw new UsageError("--steps and --rounds both give the budget", { hint: "leave --steps out" });
  }
  if (given.keep && given.asha) {
    throw new UsageError("--keep and --asha are two ways to choose who goes on", {
      hint: "give one of them",
    });
  }
  if (!steps) {
    const lost = given.keep ? "--keep" : given.asha ? "--asha" : undefined;
    if (lost) throw new UsageError(`${lost} goes with --rounds`, { hint: "for example --rounds 3000,30000" });
    return undefined;
  }
  const factor = given.asha ?? (given.keep ? undefined : space?.asha);
  if (factor !== undefined) return { steps, rule: { name: "asha", factor } };
  const keep = given.keep ?? space?.keep;
  if (keep) return { steps, rule: { name: "halving", keep } };
  throw new UsageError("--rounds: how many go on is missing", { hint: "give --keep 4, or --asha 3" });
}

/** Passes each text on the first time it comes. */
function once(show: (text: string) => void): (text: string) => void {
  const shown = new Set<string>();
  return (text) => {
    if (!shown.has(text)) show(text);
    shown.add(text);
  };
}

/** `key=v1,v2`; a value with a comma of its own stands in quotation marks. */
function parseAxis(given: string, option: string): Axis {
  const split = given.indexOf("=");
  const key = given.slice(0, split).trim();
  const values = [...given.slice(split + 1).matchAll(/(?:"[^"]*"|'[^']*'|[^,])+/g)].map(([each]) =>
    each.trim(),
  );
  if (split < 1 || values.length === 0 || values.includes("")) {
    throw new UsageError(`${option} ${given}: expected key=v1,v2,v3`, {
      hint: `for example ${option} system.reads=1,2,3`,
    });
  }
  return { key, values };
}

function parseSeeds(given: string, name: string): readonly number[] {
  const seeds = given.split(",").map((part) => (/^\d+$/.test(part.trim()) ? Number(part) : Number.NaN));
  if (seeds.every(Number.isSafeInteger) && new Set(seeds).size === seeds.length) return seeds;
  throw new UsageError(
    `${name}: expected different whole numbers, such as 1,2,3, got ${JSON.stringify(given)}`,
  );
}

/** Whole numbers above 0. */
function parseCounts(given: string, name: string): readonly number[] {
  const counts = given
    .split(",")
    .map((part) => (/^[\d_]+$/.test(part.trim()) ? Number(part.replaceAll("_", "")) : 0));
  if (counts.every((count) => Number.isSafeInteger(count) && count > 0)) return counts;
  throw new UsageError(
    `${name}: expected whole numbers above 0, such as 3000,30000, got ${JSON.stringify(given)}`,
  );
}

function showPlan(
  out: Output,
  kind: Kind,
  members: readonly SweepMember[],
  states: readonly MemberState[],
): void {
  const rows = members.map(({ name, folder: place, changes, settings, parameters }, i) => ({
    name,
    folder: resolve(place),
    changes,
    seed: settings.training.seed,
    steps: kind.steps(settings),
    parameters,
    state: states[i]!,
  }));
  out.result({ members: rows }, () =>
    table(
      [
        ["member", "state", "seed", `${kind.unit}s`, "parameters"],
        ...rows.map(({ name, state, seed, steps, parameters }) => [
          name,
          state,
          `${seed}`,
          steps,
          parameters,
        ]),
      ],
      out.tableWidth,
    ),
  );
}

/** Shows one member's progress after another's. */
function showSweep(
  out: Output,
  kind: Kind,
  members: readonly SweepMember[],
): SweepCallbacks & { stop(): void; onProgress(member: string, step: number): void } {
  let progress: ReturnType<Output["progress"]> | undefined;
  const label = (member: SweepMember): string =>
    `[${members.indexOf(member) + 1}/${members.length}] ${member.name}`;
  const stop = (): void => {
    progress?.stop();
    progress = undefined;
  };
  return {
    onMember(member, state) {
      const isOver = state === "finished" || state === "diverged";
      out.note(
        `${label(member)}: ${isOver ? `${state} before` : state === "waiting" ? "starts" : "resumes"}`,
      );
    },
    onStep(member, done, { means }, speed) {
      const total = kind.steps(member.settings);
      progress ??= out.progress({ label: label(member), total, show: thousands, every: 10_000 });
      progress.update(
        done,
        `train ${kind.shown} ${Number(means[kind.shown]).toFixed(3)}`,
        showSpeed(kind, speed),
      );
    },
    onEvaluation(member, step, values) {
      out.detail(`${label(member)}: ${kind.unit} ${thousands(step)}: ${showValues(kind, values)}`);
    },
    onProgress(name, step) {
      out.detail(`${name}: ${kind.unit} ${thousands(step)}`);
    },
    onEnd(member, state, note) {
      stop();
      out.note(`${label(member)}: ${state}${note ? `: ${note}` : ""}`);
    },
    stop,
  };
}

/** What a round decided, as a table. */
function showRound({ steps, ranking }: RoundResult, i: number, kind: Kind, width: number): string {
  const measure = kind.measures[kind.best]!;
  const shown = table(
    [
      [`round ${i + 1}: ${thousands(steps)} ${kind.unit}s`, `best ${measure.label}`, "kept"],
      ...ranking.map(({ name, value: reached, kept }) => [
        ...[name, reached === null ? "-" : showMeasure(measure, reached), kept ? "yes" : ""],
      ]),
    ],
    width,
  );
  return `\n${shown}`;
}

/** The members as a table, in the terms of the result file. */
function showResult({ members, seeds, steps, hours }: SweepResult, kind: Kind, width: number): string {
  const { headline, unit } = kind;
  const measures = Object.keys(kind.measures);
  const show = (measure: string, given: number | undefined): string =>
    given === undefined ? "-" : showMeasure(kind.measures[measure]!, given);
  const spread = (measure: string, of: Spread | undefined): string =>
    of ? `${show(measure, of.mean)} ± ${show(measure, of.std)}` : "-";
  const all = table(
    [
      [
        ...[
          "member",
          "state",
          `${unit}s`,
          ...measures.flatMap((measure) => [`best ${measure}`, `at ${unit}`]),
        ],
        ...[`last ${headline}`, "parameters", kind.speed.label],
      ],
      ...members.map(({ name, state, steps: made, best, last, parameters, speed }) => [
        ...[name, state, made],
        ...measures.flatMap((measure) => [show(measure, best[measure]?.value), best[measure]?.step ?? "-"]),
        ...[show(headline, last?.values[headline]), parameters, Object.values(speed)[0] ?? "-"],
      ]),
    ],
    width,
  );
  const overSeeds = table(
    [
      ["over seeds", "seeds", ...measures.map((measure) => `best ${measure}`), `last ${headline}`],
      ...seeds.map(({ name, seeds: own, best, last }) => [
        ...[name, own.join(", ")],
        ...measures.map((measure) => spread(measure, best[measure])),
        spread(headline, last[headline]),
      ]),
    ],
    width,
  );
  return [
    all,
    ...(seeds.length > 0 ? [overSeeds] : []),
    `${members.length} members, ${thousands(steps)} ${unit}s each, ${hours.toFixed(2)} hours of training`,
  ].join("\n");
}
