/** `fwm sweep --launcher slurm`: the script is run with a stand-in for Slurm, and signalled as Slurm would. */
import { spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { run } from "./support.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-slurm-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const out = join(scratch, "my runs", "search");
const script = join(out, "workers.sbatch");
const line = [
  "sweep",
  "catbabi-qa-fwm",
  "--seeds",
  "1,2",
  "--out",
  out,
  "--launcher",
  "slurm",
  "--workers",
  "7",
];

test("writes an array of workers, and trains nothing", async () => {
  const { code, stdout } = await run(line, { env: { FWM_QUEUE: "redis://:secret@head" } });
  expect([code, stdout]).toEqual([0, expect.stringContaining(`sbatch '${script}'`)]);
  const text = readFileSync(script, "utf8");
  expect(text).toContain("#SBATCH --array=1-7\n");
  expect(text).toContain("#SBATCH --signal=B:USR2@120\n");
  expect(text).toContain(`--share '${join(scratch, "my runs")}'`);
  expect(text).not.toContain("secret");
  expect(existsSync(join(out, "base-seed1"))).toBe(false);
  expect(statSync(script).isFile()).toBe(true);
});

describe.skipIf(process.platform === "win32")("the script", () => {
  const bin = join(scratch, "bin");
  const said = join(scratch, "said");
  const program = (name: string, body: string): void => {
    writeFileSync(join(bin, name), `#!/bin/bash\n${body}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  mkdirSync(bin);
  // A worker that takes a moment to save, and one that is done at once.
  program(
    "fwm",
    `echo "fwm $*" >> ${said}; [ -n "$DONE" ] && exit 0
trap 'sleep 0.2; echo saved >> ${said}; exit 143' TERM; while :; do sleep 0.05; done`,
  );
  program("scontrol", `echo "scontrol $*" >> ${said}`);

  const start = (env: Record<string, string>) => {
    rmSync(said, { force: true });
    const child = spawn("bash", [script], {
      env: { PATH: `${bin}:${process.env.PATH}`, ...env },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    return { child, ended, stderr: () => stderr };
  };
  const slurm = {
    SLURM_CPUS_PER_TASK: "4",
    SLURM_ARRAY_JOB_ID: "12",
    SLURM_ARRAY_TASK_ID: "3",
    FWM_QUEUE: "redis://x",
  };

  test.each(["SIGUSR2", "SIGTERM"] as const)(
    "%s: the worker saves first, then the task is requeued",
    async (signal) => {
      const { child, ended } = start(slurm);
      while (!existsSync(said)) await setTimeout(10);
      await setTimeout(200);
      child.kill(signal);
      expect(await ended).toBe(0);
      const share = join(scratch, "my runs");
      expect(readFileSync(said, "utf8")).toBe(
        `fwm worker --threads 4 --share ${share} --idle 600\nsaved\nscontrol requeue 12_3\n`,
      );
    },
  );

  test("a worker that has nothing to do any more ends the task", async () => {
    const { ended } = start({ ...slurm, DONE: "1" });
    expect(await ended).toBe(0);
    expect(readFileSync(said, "utf8")).not.toContain("requeue");
  });

  test("without the queue's address it says what to do", async () => {
    const { FWM_QUEUE: _, ...without } = slurm;
    const { ended, stderr } = start(without);
    expect(await ended).not.toBe(0);
    expect(stderr()).toContain("export FWM_QUEUE=redis://");
  });
});
