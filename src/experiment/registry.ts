/** Kinds and experiments by name. */
import { DataError, nearest, UsageError } from "../errors.ts";
import type { RunRecord } from "../store/runRecord.ts";
import { catbabi } from "./catbabi/kind.ts";
import type { BaseSettings, Experiment, Kind } from "./kind.ts";
import { metarl } from "./metarl/kind.ts";
import { text } from "./text/kind.ts";

const kinds = new Map<string, Kind>();
const experiments = new Map<string, Experiment>();

/** Adds a kind of one's own. */
export function registerKind(kind: Kind): void {
  kinds.set(kind.name, kind);
}

registerKind(catbabi);
registerKind(metarl);
registerKind(text);

/** All kinds. */
export function allKinds(): Kind[] {
  return [...kinds.values()];
}

/** The kind that settings belong to, by the name of their task. */
export function kindOf({ task }: Pick<BaseSettings, "task">): Kind {
  return kindNamed(task.name, "settings: task.name");
}

/** The kind of a name; `where` starts the message if there is none. */
export function kindNamed(name: unknown, where: string): Kind {
  const kind = typeof name === "string" ? kinds.get(name) : undefined;
  if (kind) return kind;
  throw new DataError(`${where}: there is no kind of experiment ${JSON.stringify(name)}`, {
    known: [...kinds.keys()].join(", "),
    hint: "it was made by another version of fwm, or by a program that registers a kind of its own",
  });
}

/** The kind of a run, if this program knows it. */
export function kindOfRecord({ settings }: Pick<RunRecord, "settings">): Kind | undefined {
  const task = settings.task as { name?: unknown } | undefined;
  return typeof task?.name === "string" ? kinds.get(task.name) : undefined;
}

/** Adds experiments, by the name that the command line and the results use. */
export function registerExperiments(definitions: Readonly<Record<string, Experiment>>): void {
  for (const [name, definition] of Object.entries(definitions)) experiments.set(name, definition);
}

/** Names of all experiments. */
export function experimentNames(): string[] {
  return [...experiments.keys()];
}

/** The experiment of a name; undefined where there is none. */
export function findExperiment(name: string): Experiment | undefined {
  return experiments.get(name);
}

/** The experiment of a name, or a `UsageError` with the nearest ones. */
export function requireExperiment(name: string): Experiment {
  const found = findExperiment(name);
  if (found) return found;
  throw new UsageError(`there is no experiment ${JSON.stringify(name)}`, {
    "did you mean": nearest(name, experimentNames()).join(", "),
    experiments: experimentNames().join(", "),
  });
}
