/** Nothing leaks: ten thousand runs and dozens of compiled programs leave memory where it was. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const megabyte = 2 ** 20;

test("10,000 runs of a small program, and 200 programs compiled and released, keep memory flat", async () => {
  const child = fileURLToPath(new URL("./memoryChild.ts", import.meta.url));
  // V8 doubles the room for young objects, 16 MB at a time, whenever it thinks that worthwhile: how soon depends on its
  // version (Node 22 and 24: within the measured runs). With a fixed room what grows is what is held.
  const young = ["--min-semi-space-size=4", "--max-semi-space-size=4"];
  const words = ["--expose-gc", ...young, "--import", "tsx", child];
  const { stdout } = await promisify(execFile)(process.execPath, words);
  const { runs, sessions } = JSON.parse(stdout) as { runs: number; sessions: number };
  // A leak of one input (2 kB) or one result per run would show as 20 MB or more; 200 sessions hold
  // 80 MB, and the heap settles within 20.
  expect(runs / megabyte, "growth over 10,000 runs, in MB").toBeLessThan(8);
  expect(sessions / megabyte, "growth over 200 programs, in MB").toBeLessThan(40);
});
