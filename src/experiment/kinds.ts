/** The two kinds of experiments, catbAbI and meta-reinforcement learning, told apart by the name of their task. */
import type { z } from "zod";
import { readRun } from "../store/runRecord.ts";
import { type MetarlExperiment, type MetarlSettings, metarlSchema } from "./metarlSettings.ts";
import { type Experiment, type Settings, settingsSchema } from "./settings.ts";

/** An experiment of either kind. */
export type AnyExperiment = Experiment | MetarlExperiment;

/** Settings of either kind. */
export type AnySettings = Settings | MetarlSettings;

/** The schema that checks settings of the kind of these. */
export function schemaFor({ task }: AnySettings): z.ZodType<AnySettings> {
  return task.name === "metarl" ? metarlSchema : settingsSchema;
}

/** Which kind of experiment a run folder belongs to. */
export async function kindOfRun(folder: string): Promise<AnySettings["task"]["name"]> {
  const { settings } = await readRun(folder);
  const task = settings.task as { name?: unknown } | undefined;
  return task?.name === "metarl" ? "metarl" : "catbabi";
}
