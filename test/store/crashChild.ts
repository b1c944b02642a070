/**
 * A process that trains into a run folder until it is killed: `crashChild.ts <folder>`.
 *
 * It goes on from whatever it finds, records one value a step and saves every third. Its numbers depend on the
 * step alone, so the test knows what an uninterrupted run would have written.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createRun, resumeRun } from "../../src/store/run.ts";
import { description, recordsAt, sample } from "./samples.ts";

const folder = process.argv[2]!;
const { run, checkpoint } = existsSync(join(folder, "run.json"))
  ? await resumeRun(folder, description())
  : { run: await createRun(folder, description()), checkpoint: undefined };

process.stdout.write("ready\n");
for (let step = checkpoint?.step ?? 0; ; ) {
  for (const record of recordsAt(step)) run.log(record);
  step++;
  if (step % 3 === 0) await run.save({ ...sample(step), best: step % 4 === 0 });
}
