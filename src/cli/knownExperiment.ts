/** What a result tells of a run's experiment. */
import { findExperiment } from "../../experiments/index.ts";
import type { AnyExperiment } from "../experiment/kinds.ts";
import type { KnownExperiment } from "../report/result.ts";

/** The experiment of a name, where there is one. Settings that its schema does not accept stay as they are. */
export async function knownExperiment(
  name: string,
): Promise<KnownExperiment<NonNullable<AnyExperiment["paper"]>> | undefined> {
  const { schemaFor } = await import("../experiment/kinds.ts");
  const known = findExperiment(name);
  return known && { ...known, complete: (given) => schemaFor(known.settings).safeParse(given).data ?? given };
}
