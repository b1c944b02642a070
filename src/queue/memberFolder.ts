/** A member's folder at the sweep's side: what workers send back is written there, where every command finds it. */
import { dirname, join } from "node:path";
import { memberRecord } from "../experiment/sweep/members.ts";
import type { MemberTask } from "../experiment/sweep/queue.ts";
import { ortVersion } from "../runtime/node.ts";
import { errorCode, makeFolders, writeFileAtomically, writeFolderAtomically } from "../store/atomic.ts";
import { rewindCheckpoints } from "../store/checkpoint.ts";
import { formatJson } from "../store/json.ts";
import { metricsFile } from "../store/metrics.ts";
import { describeEnvironment, gitCommit, newRecord, type RunRecord, runFile } from "../store/runRecord.ts";
import type { TaskResult } from "./task.ts";

/** Writes a result into the member's folder, unless the folder is the worker's own and has it already. */
export async function writeMember({ member }: MemberTask, { record, metrics }: TaskResult): Promise<void> {
  let there = await memberRecord(member);
  if (!there) {
    // A new folder appears whole: another sweep over the same members may be looking.
    if (await makeMember(member.folder, record, metrics)) return;
    there = await memberRecord(member);
  }
  if (there?.created === record.created && there.step >= record.step && there.state === record.state) return;
  if (there && there.created !== record.created) {
    // Another training of the same member, whose checkpoints do not belong to these curves.
    await rewindCheckpoints(member.folder, undefined);
  }
  await writeFileAtomically(join(member.folder, metricsFile), metrics);
  await writeRecord(member.folder, record);
}

/** Makes a member's folder; false if one with something in it is there by now. */
async function makeMember(folder: string, record: RunRecord, metrics: Uint8Array): Promise<boolean> {
  await makeFolders(dirname(folder));
  const content = new TextEncoder().encode(formatJson(record, runFile));
  try {
    await writeFolderAtomically(
      folder,
      new Map([
        [metricsFile, metrics],
        [runFile, content],
      ]),
    );
    return true;
  } catch (error) {
    if (["ENOTEMPTY", "EEXIST"].includes(errorCode(error))) return false;
    throw error;
  }
}

/** Writes down why a member could not be trained. */
export async function writeFailure(
  { member }: MemberTask,
  note: string,
  about: { readonly command: readonly string[]; readonly packageVersion: string },
): Promise<void> {
  const there = await memberRecord(member);
  const fresh = (): RunRecord => {
    const { experiment, settings } = member;
    const environment = describeEnvironment({ ort: ortVersion });
    return newRecord(
      {
        ...{
          experiment,
          settings: { ...settings },
          seed: settings.training.seed,
          environment,
          gitCommit: gitCommit(),
        },
        ...{ command: [...about.command], packageVersion: about.packageVersion },
      },
      new Date().toISOString(),
    );
  };
  await makeFolders(member.folder);
  await writeRecord(member.folder, { ...(there ?? fresh()), state: "failed", note, process: null });
}

async function writeRecord(folder: string, record: RunRecord): Promise<void> {
  await writeFileAtomically(join(folder, runFile), formatJson(record, runFile));
}
