/** Trains one member of a sweep in this process: what the embedded queue and a worker's child process both do. */
import { type RunRecord, readRun } from "../../store/runRecord.ts";
import { type RunContext, type RunPlan, trainRun } from "../trainRun.ts";
import { memberRecord, type SweepMember } from "./members.ts";

/**
 * Trains a member, from the start or from its newest checkpoint, until it has made `steps` steps. Its record decides how
 * that was: only a failure is thrown on.
 */
export async function trainMember(
  member: Pick<SweepMember, "folder" | "experiment" | "settings">,
  {
    steps,
    pauses,
  }: { readonly steps: number /** Whether it is to be resumed after that. */; readonly pauses: boolean },
  context: RunContext,
): Promise<RunRecord> {
  const { folder, experiment, settings } = member;
  const pause = pauses ? { pauseAt: steps } : {};
  const before = await memberRecord(member);
  const plan: RunPlan = before
    ? { action: "resume", folder, ...pause }
    : { action: "start", experiment, settings, folder, ...pause };
  try {
    await trainRun(plan, context);
  } catch (error) {
    // A run that was killed after its last checkpoint is found complete, and closed, when it is resumed.
    const record = await memberRecord(member);
    if (record?.state !== "diverged" && record?.state !== "finished") throw error;
  }
  return readRun(folder);
}
