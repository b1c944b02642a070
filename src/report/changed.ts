/** How a run's settings differ from its experiment's. */
import { flatten } from "../store/flatten.ts";

/** A setting that is not as the experiment has it; null where one of the two lacks it. */
export interface ChangedSetting {
  readonly experiment: number | string | boolean | null;
  readonly run: number | string | boolean | null;
}

/** The settings of a run that are not as the experiment has them, by name; the seed has a place of its own. */
export function changedSettings(experiment: unknown, run: unknown): Record<string, ChangedSetting> {
  const [before, after] = [flatten(experiment), flatten(run)];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return Object.fromEntries(
    names
      .filter((name) => name !== "training.seed" && before[name] !== after[name])
      .map((name) => [name, { experiment: before[name] ?? null, run: after[name] ?? null }]),
  );
}

/** The changes as a line: `training.learningRate 0.003 (experiment: 0.001)`. */
export function changesLine(changes: Readonly<Record<string, ChangedSetting>>): string {
  const shown = (value: ChangedSetting["run"]): string =>
    value === null || value === "" ? "none" : String(value);
  return Object.entries(changes)
    .map(([name, { experiment, run }]) => `${name} ${shown(run)} (experiment: ${shown(experiment)})`)
    .join(", ");
}
