/** Runs as reports take them: collected from their folders, with what their experiment and kind know. */
import { collectResult } from "../report/result.ts";
import { readRun } from "../store/runRecord.ts";
import type { Kind, ReportedRun } from "./kind.ts";
import { findExperiment, kindNamed } from "./registry.ts";

/** A run's result, and its kind; `reportedBy` is the command that asks. */
export async function reportedRun(
  folder: string,
  reportedBy: readonly string[],
): Promise<ReportedRun & { readonly kind: Kind }> {
  const record = await readRun(folder);
  const kind = kindNamed((record.settings.task as { name?: unknown } | undefined)?.name, folder);
  const known = findExperiment(record.experiment);
  const result = await collectResult<unknown>(folder, {
    // Settings that the schema does not accept are compared as they are.
    known: known && { ...known, complete: (given) => kind.schema.safeParse(given).data ?? given },
    reportedBy,
  });
  return { folder, kind, result };
}
