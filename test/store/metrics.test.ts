/** metrics.jsonl: whole records only, exact numbers, tolerant of a cut end and of nothing else. */
import { appendFile, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DataError } from "../../src/errors.ts";
import { StorageError } from "../../src/store/atomic.ts";
import { MetricsWriter, metricsFile, readMetrics, truncateMetrics } from "../../src/store/metrics.ts";
import { skipUnless } from "../support/skip.ts";
import { rejection, scratch, systemError, watchedDisk } from "./helpers.ts";
import { recordsAt } from "./samples.ts";

/** A run folder whose metrics hold the records of steps 0 … steps-1. */
async function folderWith(steps: number): Promise<string> {
  const folder = await scratch();
  const writer = new MetricsWriter(join(folder, metricsFile));
  for (let step = 0; step < steps; step++) for (const record of recordsAt(step)) writer.write(record);
  writer.close();
  return folder;
}

describe("records", () => {
  it("are lines with what the clock decides kept apart", async () => {
    const folder = await scratch();
    const writer = new MetricsWriter(join(folder, metricsFile), { now: () => 12.5 });
    writer.write({ step: 3, split: "train", values: { loss: 0.1 }, times: { tokensPerSecond: 900 } });
    writer.sync();
    expect(await readFile(join(folder, metricsFile), "utf8")).toBe(
      '{"step":3,"split":"train","values":{"loss":0.1},"times":{"at":12.5,"tokensPerSecond":900}}\n',
    );
    expect(await readMetrics(folder)).toEqual([
      { step: 3, split: "train", values: { loss: 0.1 }, times: { at: 12.5, tokensPerSecond: 900 } },
    ]);
    expect(await readMetrics(join(folder, metricsFile), { withoutTimes: true })).toEqual([
      { step: 3, split: "train", values: { loss: 0.1 } },
    ]);
    writer.close();
  });

  it("keep every number exactly, NaN and infinities too", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.double(), { maxLength: 20 }), async (numbers) => {
        const folder = await scratch();
        const writer = new MetricsWriter(join(folder, metricsFile));
        // JSON knows one zero only.
        const plain = numbers.map((x) => (x === 0 ? 0 : x));
        for (const [step, loss] of plain.entries()) writer.write({ step, split: "train", values: { loss } });
        writer.close();
        expect((await readMetrics(folder)).map(({ values }) => values.loss)).toEqual(plain);
      }),
      { numRuns: 30 },
    );
  });

  it("of a run that measured nothing are none", async () => {
    expect(await readMetrics(await scratch())).toEqual([]);
  });
});

describe("damage", () => {
  it("by a cut at any byte costs the last record only", async () => {
    const folder = await folderWith(4);
    const path = join(folder, metricsFile);
    const whole = await readFile(path);
    const records = await readMetrics(folder);
    for (let length = 0; length <= whole.length; length++) {
      await writeFile(path, whole.subarray(0, length));
      const lines = whole.subarray(0, length).toString().split("\n").length - 1;
      expect(await readMetrics(folder)).toEqual(records.slice(0, lines));
    }
  });

  it.each([
    ["{oops", /metrics\.jsonl:2: not valid JSON/],
    ['{"step":-1,"split":"train","values":{}}', /metrics\.jsonl:2: not a metrics record[\s\S]*step/],
    ['{"step":1,"split":"train","values":{},"colour":1}', /:2: not a metrics record[\s\S]*colour/],
    ['{"step":1,"split":"train","values":{"a":"1"}}', /:2: not a metrics record/],
    ['{"step":1,"split":"train","values":{"__proto__":1}}', /:2: the key "__proto__" is not allowed/],
    ["", /:2: not valid JSON/],
  ])("in the middle is named by its line: %s", async (line, problem) => {
    const folder = await scratch();
    const good = '{"step":0,"split":"train","values":{}}\n';
    await writeFile(join(folder, metricsFile), `${good}${line}\n${good}`);
    const error = await rejection(readMetrics(folder));
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toMatch(problem);
  });
});

describe("truncation", () => {
  it("keeps exactly what came before the step, byte for byte", async () => {
    const folder = await folderWith(12);
    const path = join(folder, metricsFile);
    const lines = (await readFile(path, "utf8")).split("\n");
    await appendFile(path, '{"step":12,"spl');
    expect(await truncateMetrics(path, () => 6)).toBe(7);
    expect(await readFile(path, "utf8")).toBe(`${lines.slice(0, 8).join("\n")}\n`);
    expect((await readMetrics(folder)).map(({ step }) => step)).toEqual([0, 0, 1, 2, 3, 4, 5, 5]);
    expect(await truncateMetrics(path, () => 0)).toBe(8);
    expect(await readFile(path, "utf8")).toBe("");
    expect(await truncateMetrics(join(folder, "absent.jsonl"), () => 0)).toBe(0);
    expect(await readdir(folder)).toEqual([metricsFile]);
  });

  it("drops lines a power cut damaged after the step, and refuses damage before it", async () => {
    const folder = await folderWith(4);
    const path = join(folder, metricsFile);
    const whole = await readFile(path);
    const damaged = Buffer.concat([whole, Buffer.from("\0\0\xff\n{}\n")]);
    await writeFile(path, damaged);
    await truncateMetrics(path, () => 4);
    expect(await readFile(path)).toEqual(whole);
    await writeFile(path, Buffer.concat([Buffer.from("\0\0\n"), whole]));
    await expect(truncateMetrics(path, () => 4)).rejects.toThrow(/metrics\.jsonl:1: not valid JSON/);
  });

  it("on a full disk changes nothing", async () => {
    const folder = await folderWith(4);
    const before = await readFile(join(folder, metricsFile));
    const fs = watchedDisk(([name]) => {
      if (name === "write") throw systemError("ENOSPC");
    });
    const error = await rejection(truncateMetrics(join(folder, metricsFile), () => 1, fs));
    expect(error).toBeInstanceOf(StorageError);
    expect(await readFile(join(folder, metricsFile))).toEqual(before);
  });
});

it(
  "a record that does not fit on the disk is an error",
  skipUnless(process.platform === "linux", "it needs Linux"),
  () => {
    const writer = new MetricsWriter("/dev/full");
    expect(() => writer.write({ step: 0, split: "train", values: {} })).toThrow(/the disk is full/);
  },
);
