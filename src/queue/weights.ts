/** Weights on request: a member's best checkpoint travels in a queue of its own, and is verified where it arrives. */
import { join } from "node:path";
import type * as Bullmq from "bullmq";
import { z } from "zod";
import { DataError } from "../errors.ts";
import { removeAtomically, writeFileAtomically, writeFolderAtomically } from "../store/atomic.ts";
import { loadCheckpoint } from "../store/checkpoint.ts";

const weightsQueue = "fwm-weights";

const parcelSchema = z.strictObject({
  checkpoint: z.string().regex(/^checkpoint-\d+(-r\d+)?$/),
  /** Plain file names, contents as base64. */
  files: z.record(z.string().regex(/^(?!\.)[\w.-]{1,100}$/), z.string()),
});

/** Redis takes 512 MB in a value; base64 is a third longer than what it says. */
const largestParcel = 300 * 2 ** 20;

/** Puts the files of a checkpoint where the sweep of a task finds them. */
export async function sendWeights(
  { Queue }: typeof Bullmq,
  connection: Bullmq.ConnectionOptions,
  id: string,
  best: { readonly checkpoint: string; readonly files: Readonly<Record<string, Buffer>> } | undefined,
): Promise<void> {
  if (!best) return;
  const size = Object.values(best.files).reduce((sum, file) => sum + file.length, 0);
  if (size > largestParcel) {
    throw new DataError(`the weights are too large for the queue: ${(size / 2 ** 20).toFixed(0)} MB`, {
      hint: "give the workers a common folder, --share, and leave --weights out",
    });
  }
  const files = Object.fromEntries(
    Object.entries(best.files).map(([name, file]) => [name, file.toString("base64")]),
  );
  const parcels = new Queue(weightsQueue, { connection });
  try {
    await parcels.add("weights", { checkpoint: best.checkpoint, files }, { jobId: id });
  } finally {
    await parcels.close();
  }
}

/** Takes the checkpoint of a task out of the queue into the member's folder; false where there is none. */
export async function receiveWeights(
  { Queue }: typeof Bullmq,
  connection: Bullmq.ConnectionOptions,
  id: string,
  folder: string,
): Promise<boolean> {
  const parcels = new Queue(weightsQueue, { connection });
  try {
    const parcel = await parcels.getJob(id);
    if (!parcel) return false;
    const { checkpoint, files } = parcelSchema.parse(parcel.data);
    const path = join(folder, checkpoint);
    // A folder that workers share has it already, and so has one that did not get better in this round.
    const isThere = await loadCheckpoint(path).then(
      () => true,
      () => false,
    );
    if (!isThere) await unpack(folder, checkpoint, files);
    await parcel.remove();
    return true;
  } finally {
    await parcels.close();
  }
}

/** Writes a checkpoint and the pointers to it; one that is not whole leaves nothing. */
async function unpack(
  folder: string,
  checkpoint: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  const path = join(folder, checkpoint);
  const contents = Object.entries(files).map(([name, text]) => [name, Buffer.from(text, "base64")] as const);
  await writeFolderAtomically(path, new Map(contents));
  try {
    // The manifest has the sum of every file.
    await loadCheckpoint(path);
  } catch (error) {
    await removeAtomically(path);
    throw error;
  }
  for (const pointer of ["best", "last"]) await writeFileAtomically(join(folder, pointer), `${checkpoint}\n`);
}
