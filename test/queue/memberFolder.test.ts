/** Results that come back from the queue: whoever looks at a member's folder meanwhile sees nothing, or all of it. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findExperiment } from "../../src/experiment/registry.ts";
import { memberRecord } from "../../src/experiment/sweep/members.ts";
import type { MemberTask } from "../../src/experiment/sweep/queue.ts";
import { writeMember } from "../../src/queue/memberFolder.ts";
import { lockFile } from "../../src/store/lock.ts";
import { record } from "../studio/support.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-member-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const experiment = "catbabi-qa-fwm";
const result = { record: record(experiment, { step: 100 }), metrics: Buffer.from("{}\n") };

function taskIn(folder: string): MemberTask {
  const { settings } = findExperiment(experiment)!;
  const member = { name: "base", folder, experiment, changes: [], settings, parameters: 1 };
  return { member, round: 0, steps: 100, pauses: false, priority: 0 };
}

const filesOf = (folder: string): string[] => readdirSync(folder).sort();

test("two sweeps write the same member, and a third one looks: a folder is absent or whole", async () => {
  for (let k = 0; k < 50; k++) {
    const task = taskIn(join(scratch, "sweep", `member${k}`));
    let isWritten = false;
    const look = async (): Promise<void> => {
      // Throws where the folder is not empty and no run.
      while (!isWritten) expect((await memberRecord(task.member))?.state ?? "finished").toBe("finished");
    };
    const write = Promise.all([writeMember(task, result), writeMember(task, result)]).finally(() => {
      isWritten = true;
    });
    await Promise.all([write, look()]);
    expect(filesOf(task.member.folder)).toEqual(["metrics.jsonl", "run.json"]);
  }
  expect(filesOf(join(scratch, "sweep"))).toHaveLength(50);
});

test("a folder with what a crash left, and a run of earlier, take the result too", async () => {
  const left = taskIn(join(scratch, "left"));
  mkdirSync(left.member.folder);
  writeFileSync(join(left.member.folder, lockFile), "{}");
  await writeMember(left, result);
  expect(await memberRecord(left.member)).toEqual(result.record);

  const later = { record: record(experiment, { step: 200 }), metrics: Buffer.from("{}\n{}\n") };
  await writeMember(left, later);
  expect(await memberRecord(left.member)).toEqual(later.record);
  // What is behind is not written over what is ahead.
  await writeMember(left, result);
  expect(await memberRecord(left.member)).toEqual(later.record);
  expect(readFileSync(join(left.member.folder, "metrics.jsonl"), "utf8")).toBe("{}\n{}\n");
});

test("somebody else's folder is refused and left as it is", async () => {
  const task = taskIn(join(scratch, "foreign"));
  mkdirSync(task.member.folder);
  writeFileSync(join(task.member.folder, "thesis.txt"), "mine");
  await expect(writeMember(task, result)).rejects.toThrow("the folder is not empty, and no run");
  expect(filesOf(task.member.folder)).toEqual(["thesis.txt"]);
});
