/** `fwm sweep`: trains every member of a grid of settings at the same budget, and files one result. */
import { join, resolve } from "node:path";
import { experimentNames, findExperiment } from "../../experiments/index.ts";
import { UsageError } from "../errors.ts";
import { type AnySettings, schemaFor } from "../experiment/kinds.ts";
import type { Axis, Change, MemberState, SweepMember, SweepWatch } from "../experiment/sweep.ts";
import type { Comparison, Spread, SweepResult } from "../report/sweep.ts";
import { command } from "./command.ts";
import { assignments, environmentSettings, layer, resolveSettings } from "./config.ts";
import type { Output } from "./output.ts";
import { file, fileName, flag, folder, integer, oneOf, texts, value } from "./params.ts";
import { percent, table, thousands } from "./table.ts";
import { packageVersion } from "./version.ts";
import { writeJson, writeResult } from "./writeResult.ts";

/** The `sweep` command. */
export const sweepCommand = command({
  name: "sweep",
  summary: "Train a grid of settings and seeds at the same budget, and file one result.",
  details:
    "--each makes one change at a time beside the unchanged experiment (an ablation), --vary every combination. " +
    "Every member is a run folder under --out; started again, the same line goes on where it was stopped " +
    "(docs/sweeps.md).",
  examples: [
    {
      line: "fwm sweep catbabi-qa-fwm --each system.reads=1,2 --each system.keys=concat --steps 2000 --figure results/ablation.svg",
      trial:
        "fwm sweep catbabi-qa-fwm --smoke --each system.reads=1 --steps 2 --out $EMPTY/each --results $EMPTY/results --figure $EMPTY/each.svg",
    },
    {
      line: "fwm sweep catbabi-qa-fwm --vary training.learningRate=1e-3,2e-3 --seeds 1,2,3 --plan",
      trial:
        "fwm sweep catbabi-qa-fwm --vary training.learningRate=1e-3,2e-3 --seeds 1,2,3 --plan --out $EMPTY/vary",
    },
    {
      line: "fwm sweep metarl-fwm --seeds 1,2,3",
      trial:
        "fwm sweep metarl-fwm --smoke --seeds 1,2 --steps 2 --out $EMPTY/agents --results $EMPTY/results",
    },
  ],
  args: { experiment: oneOf(experimentNames) },
  options: {
    each: texts({ placeholder: "key=v1,v2", help: "one member per value, and one without any change" }),
    vary: texts({ placeholder: "key=v1,v2", help: "every combination of the values given this way" }),
    seeds: value({ placeholder: "n,n", help: "train every member once per seed" }, parseSeeds),
    set: texts({ placeholder: "key=value", help: "change a setting of all members" }),
    steps: integer({ min: 1, help: "updates each member makes" }),
    data: folder({ help: "prepared data, if not in the usual place" }),
    smoke: flag({ help: "the experiment's small settings: a check, not a result" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
    name: fileName({ help: "name of the result; default <experiment>-sweep" }),
    out: folder({ help: "where the run folders go; default runs/<name>" }),
    results: folder({ default: "results", help: "folder of the result file" }),
    figure: file({ help: "SVG file: the curves of all members" }),
    plan: flag({ help: "show the members and how each stands, and stop" }),
  },
  graceful: true,
  run: async ({ args, options, out, signal, env }) => {
    const definition = findExperiment(args.experiment);
    const name = options.name ?? `${args.experiment}${options.smoke ? "-smoke" : ""}-sweep`;
    const axes = {
      each: options.each.map((given) => parseAxis(given, "--each")),
      vary: options.vary.map((given) => parseAxis(given, "--vary")),
    };
    const optionOf = (key: string): string =>
      axes.vary.some((axis) => axis.key === key) ? "--vary" : key === "training.seed" ? "--seeds" : "--each";
    const schema = schemaFor(definition.settings);
    const settingsOf = (changes: readonly Change[]): AnySettings =>
      resolveSettings(schema, [
        layer("experiment", definition.settings),
        ...(options.smoke ? [layer("--smoke", definition.smoke)] : []),
        environmentSettings(env, schema),
        assignments(options.set),
        ...(options.steps ? [layer("--steps", { training: { steps: options.steps } })] : []),
        ...(options.data ? [layer("--data", { task: { data: options.data } })] : []),
        ...changes.map(({ key, value: given }) => assignments([`${key}=${given}`], optionOf(key))),
      ]).settings;
    const base = settingsOf([]);
    const { runSweep, sweepMembers, sweepStates } = await import("../experiment/sweep.ts");
    const members = sweepMembers(
      { ...axes, seeds: options.seeds ?? [] },
      { experiment: args.experiment, out: options.out ?? join("runs", name) },
      settingsOf,
    );
    if (options.plan) {
      showPlan(out, members, await sweepStates(members));
      return;
    }

    const about = { command: ["fwm", ...process.argv.slice(2)], packageVersion: packageVersion() };
    const watch = watchSweep(out, members);
    const end = await runSweep(members, {
      ...about,
      env,
      signal,
      ...(options.threads ? { threads: options.threads } : {}),
      // What is said of the data is the same for every member.
      onNote: once((said) => out.note(said)),
      onWarning: once((said) => out.warn(said)),
      watch,
    }).finally(() => watch.stop());
    const { collectSweep, comparisons, sweepFigure } = await import("../report/sweep.ts");
    const { gitCommit } = await import("../store/runRecord.ts");
    const kind = base.task.name;
    const result = await collectSweep(
      members.map((member, i) => ({ ...member, state: end.states[i]! })),
      {
        ...about,
        experiment: args.experiment,
        shows: definition.shows,
        kind,
        commit: gitCommit(),
        state: end.reason,
        settings: base,
        paper: definition.paper,
      },
    );
    const closing: string[] = [];
    if (end.reason === "interrupted") closing.push(`stopped; go on with: ${shellLine(about.command)}`);
    else {
      const path = join(options.results, `${name}.json`);
      await writeJson(path, result);
      closing.push(`result ${path}`);
      if (options.figure) {
        const { drawFigure } = await import("../report/figure.ts");
        await writeResult(options.figure, await drawFigure(sweepFigure(result)));
        closing.push(`figure ${options.figure}`);
      }
    }
    out.result(result, () => [showResult(result, comparisons[kind]), ...closing].join("\n"));
  },
});

/** Passes each text on the first time it comes. */
function once(tell: (text: string) => void): (text: string) => void {
  const told = new Set<string>();
  return (text) => {
    if (!told.has(text)) tell(text);
    told.add(text);
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

/** A command line that a shell reads back as these words. */
function shellLine(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

function showPlan(out: Output, members: readonly SweepMember[], states: readonly MemberState[]): void {
  const rows = members.map(({ name, folder: place, changes, settings, parameters }, i) => ({
    name,
    folder: resolve(place),
    changes,
    seed: settings.training.seed,
    steps: settings.training.steps,
    parameters,
    state: states[i]!,
  }));
  out.result({ members: rows }, () =>
    table([
      ["member", "state", "seed", "steps", "parameters"],
      ...rows.map(({ name, state, seed, steps, parameters }) => [name, state, `${seed}`, steps, parameters]),
    ]),
  );
}

/** Shows one member's progress after another's. */
function watchSweep(out: Output, members: readonly SweepMember[]): SweepWatch & { stop(): void } {
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
        `${label(member)}: ${isOver ? `${state} before` : state === "waiting" ? "begins" : "goes on"}`,
      );
    },
    onStep(member, done, { name, value: now }, perSecond) {
      const { steps } = member.settings.training;
      progress ??= out.progress({ label: label(member), total: steps, show: thousands, every: 10_000 });
      const speed =
        name === "loss" ? `${thousands(Math.round(perSecond))} tokens/s` : `${perSecond.toFixed(1)}/s`;
      progress.update(done, `${name} ${now.toFixed(3)} ${speed}`);
    },
    onScore(member, step, values) {
      const shown = Object.entries(values)
        .filter(([name]) => !/^task\d+$/.test(name))
        .map(([name, score]) => `${name} ${score.toFixed(4)}`);
      out.detail(`${label(member)}: step ${thousands(step)}: ${shown.join(" ")}`);
    },
    onEnd(member, state, note) {
      stop();
      out.note(`${label(member)}: ${state}${note ? `: ${note}` : ""}`);
    },
    stop,
  };
}

/** The members as a table, in the terms of the result file. */
function showResult({ members, seeds, steps, hours }: SweepResult, compared: Comparison): string {
  const { main, unit, shownSpeed } = compared;
  const measures = Object.keys(compared.measures);
  const show = (measure: string, given: number | undefined): string => {
    if (given === undefined) return "-";
    if (measure === main && compared.percent) return percent(given);
    return given.toFixed(measure === "loss" ? 4 : 2);
  };
  const spread = (measure: string, of: Spread | undefined): string =>
    of ? `${show(measure, of.mean)} ± ${show(measure, of.std)}` : "-";
  const all = table([
    [
      ...["member", "state", "steps", ...measures.flatMap((measure) => [`best ${measure}`, "at step"])],
      ...[`last ${main}`, "parameters", shownSpeed],
    ],
    ...members.map(({ name, state, steps: made, best, last, parameters, speed }) => [
      ...[name, state, made],
      ...measures.flatMap((measure) => [show(measure, best[measure]?.value), best[measure]?.step ?? "-"]),
      ...[show(main, last?.values[main]), parameters, Object.values(speed)[0] ?? "-"],
    ]),
  ]);
  const overSeeds = table([
    ["over seeds", "seeds", ...measures.map((measure) => `best ${measure}`), `last ${main}`],
    ...seeds.map(({ name, seeds: own, best, last }) => [
      ...[name, own.join(", ")],
      ...measures.map((measure) => spread(measure, best[measure])),
      spread(main, last[main]),
    ]),
  ]);
  return [
    all,
    ...(seeds.length > 0 ? [overSeeds] : []),
    `${members.length} members, ${thousands(steps)} ${unit} each, ${hours.toFixed(2)} hours of training`,
  ].join("\n");
}
