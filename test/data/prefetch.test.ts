/**
 * Batches from a worker thread are the batches of this thread, from the beginning and resumed at any batch.
 */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { StreamBatcher } from "../../src/data/batches.ts";
import { PrefetchedBatches } from "../../src/data/prefetch.ts";
import { openStream, type StreamSpec } from "../../src/data/sources/open.ts";
import { prepareCatbabi } from "../../src/data/sources/prepare.ts";
import { writePrepared } from "../../src/data/sources/prepared.ts";
import { generatedSource } from "../../src/data/streams.ts";
import { DataError, UsageError } from "../../src/errors.ts";
import { emptyFolder, tinyFolder } from "./support/tiny.ts";

const settings = { batch: 5, window: 17 };

async function tinyPrepared(): Promise<string> {
  const folder = join(emptyFolder(), "prepared");
  const choice = { variant: "10k", tasks: [1, 15], keepLastStory: true, allowMissing: true } as const;
  const { provenance, splits } = await prepareCatbabi({ ...choice, from: tinyFolder(), downloads: "unused" });
  await writePrepared(folder, provenance, splits);
  return folder;
}

describe("prefetched batches", () => {
  test("go over to another stream behind the last one taken", async () => {
    const before: StreamSpec = { kind: "generated", seed: 11 };
    const after: StreamSpec = { ...before, changes: [{ from: 30, shares: { 4: 1 } }] };
    const here = new StreamBatcher(await openStream(before), settings);
    const there = await PrefetchedBatches.open(before, settings, { ahead: 4 });
    for (let i = 0; i < 7; i++) expect(await there.next()).toEqual(here.next());
    await there.reopen(after);
    const resumed = StreamBatcher.resume(await openStream(after), settings, here.state());
    for (let i = 0; i < 40; i++) expect(await there.next()).toEqual(resumed.next());
    expect(there.state()).toEqual(resumed.state());
    await there.close();
  });

  test.each<[string, () => StreamSpec | Promise<StreamSpec>]>([
    ["generated", () => ({ kind: "generated", seed: 11 })],
    ["prepared", async () => ({ kind: "prepared", folder: await tinyPrepared(), split: "train", seed: 11 })],
    [
      "mixed",
      async () => ({
        kind: "mixed",
        folder: await tinyPrepared(),
        split: "train",
        seed: 11,
        generatedFraction: 0.7,
      }),
    ],
    [
      "mixed, of two tasks,",
      async () => {
        const real = { folder: await tinyPrepared(), split: "train", seed: 11 } as const;
        return { kind: "mixed", ...real, generatedFraction: 0.7, tasks: [16, 19] };
      },
    ],
    [
      "generated, in changing shares,",
      () => {
        const changes = [
          { from: 3, shares: { 4: 0.5, 19: 0.5 } },
          { from: 12, shares: { 4: 0, 6: 1 } },
        ];
        return { kind: "generated", seed: 11, changes };
      },
    ],
  ])("of a %s stream equal those made here, and resume behind the last one taken", async (_, make) => {
    const spec = await make();
    const here = new StreamBatcher(await openStream(spec), settings);
    const there = await PrefetchedBatches.open(spec, settings, { ahead: 4 });
    expect(there.state()).toEqual(here.state());
    for (let i = 0; i < 20; i++) {
      expect(await there.next()).toEqual(here.next());
      expect(there.state()).toEqual(here.state());
    }
    const state = there.state();
    await there.close();
    const resumed = await PrefetchedBatches.open(spec, settings, { state, ahead: 1 });
    for (let i = 0; i < 20; i++) expect(await resumed.next()).toEqual(here.next());
    await resumed.close();
    await expect(resumed.next().then(() => resumed.next())).rejects.toThrow("ended");
  });

  test("keep a user's mistake a user's mistake", async () => {
    const folder = emptyFolder();
    const missing = PrefetchedBatches.open({ kind: "prepared", folder, split: "train", seed: 1 }, settings);
    await expect(missing).rejects.toThrow(DataError);
    await expect(missing).rejects.toThrow("no prepared data here");
    const whole = {
      kind: "mixed",
      folder: await tinyPrepared(),
      split: "train",
      seed: 1,
      generatedFraction: 1,
    } as const;
    await expect(PrefetchedBatches.open(whole, settings)).rejects.toThrow(UsageError);
    const state = new StreamBatcher(generatedSource(1), { batch: 2, window: 3 }).state();
    const other = PrefetchedBatches.open({ kind: "generated", seed: 1 }, settings, { state });
    await expect(other).rejects.toThrow("batch was 2, now it is 5");
  });
});
