/**
 * Preparing catbAbI: the paper's counts on the real files, every kind of bad file on tiny ones, and a prepared
 * folder that notices any damage.
 */
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { epochBatches, StreamBatcher } from "../../src/data/batches.ts";
import { allTasks, formatTasks, parseTasks } from "../../src/data/catbabi.ts";
import {
  dataRoot,
  type PrepareOptions,
  prepareCatbabi,
  preparedName,
} from "../../src/data/sources/prepare.ts";
import { type Catbabi, loadPrepared, readHeader, writePrepared } from "../../src/data/sources/prepared.ts";
import { catbabiStatistics } from "../../src/data/sources/statistics.ts";
import { preparedSource } from "../../src/data/streams.ts";
import { babiWords, catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { DataError, UsageError } from "../../src/errors.ts";
import { type FileSystem, nodeFileSystem } from "../../src/store/atomic.ts";
import { decodeSafetensors } from "../../src/store/safetensors.ts";
import { needsRealData, realData } from "../support/realData.ts";
import { emptyFolder, tinyFolder } from "./support/tiny.ts";

const tiny = {
  variant: "10k",
  tasks: [1, 15],
  keepLastStory: false,
  allowMissing: true,
  downloads: "unused",
} as const;

/** Prepares, writes and loads again. */
async function prepareInto(out: string, options: PrepareOptions): Promise<Catbabi> {
  const { provenance, splits } = await prepareCatbabi(options);
  await writePrepared(out, provenance, splits);
  return loadPrepared(out);
}

describe("the vocabulary", () => {
  test("has 178 words in code-unit order, <pad>, <eos> and 20 unused entries", () => {
    expect(babiWords.length).toBe(178);
    expect(babiWords).toEqual([...babiWords].sort());
    expect(catbabiVocabulary.size).toBe(200);
    expect(catbabiVocabulary.words.slice(0, 4)).toEqual(["<pad>", "<eos>", ".", "?"]);
    expect(catbabiVocabulary.decode(catbabiVocabulary.encode(babiWords))).toEqual(babiWords);
    expect(() => catbabiVocabulary.encode(["mary", "gardn"], "a.txt:3")).toThrow(
      /^a\.txt:3: the vocabulary has no word "gardn"\n {2}nearest {2}garden/,
    );
  });
});

describe("lists of tasks", () => {
  test("read and write ranges", () => {
    expect(parseTasks("1,2,15-17")).toEqual([1, 2, 15, 16, 17]);
    expect(parseTasks(" 3 , 2-4")).toEqual([2, 3, 4]);
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 20 }), { minLength: 1 }), (tasks) => {
        const sorted = tasks.sort((a, b) => a - b);
        expect(parseTasks(formatTasks(sorted))).toEqual(sorted);
      }),
    );
  });
  test.each(["", "0", "21", "3-1", "1,,2", "a", "1-", "1.5"])("refuse %j", (text) => {
    expect(() => parseTasks(text, "--tasks")).toThrow(UsageError);
  });
});

describe("the real 10k files", needsRealData, () => {
  let data: Catbabi;
  beforeAll(async () => {
    data = await prepareInto(join(emptyFolder(), "out"), {
      ...tiny,
      tasks: allTasks,
      from: realData,
      allowMissing: false,
    });
  });

  test("give the paper's counts in all three splits, and nothing is missing", () => {
    const { splits, missing, partial, filled, unverified, vocabulary } = catbabiStatistics(data);
    expect(splits.train).toMatchObject({ stories: 56_376, questions: 179_909, tokens: 5_136_706 });
    expect(splits.valid).toMatchObject({ stories: 6245, questions: 19_907, tokens: 570_894 });
    expect(splits.test).toMatchObject({ stories: 6247, questions: 19_910, tokens: 565_653 });
    for (const { stories, questions, paper } of Object.values(splits)) {
      expect(paper).toMatchObject({ stories, questions });
    }
    expect(splits.train.perTask[3]).toEqual({ stories: 1799, questions: 8995, tokens: 872_747 });
    expect([missing, partial, filled, unverified, vocabulary]).toEqual([[], [], [], [], 200]);
    expect(data.header.files.every(({ state }) => state === "official")).toBe(true);
  });

  test("each task's training stories are the ones the official files hold", () => {
    const { perTask } = data.splits.train.counts();
    const sizes: Record<number, [number, number]> = {
      ...Object.fromEntries([4, 16, 19].map((task) => [task, [8999, 8999]])),
      ...{ 15: [2249, 8996], 17: [1124, 8992], 18: [1780, 8991], 20: [839, 8998] },
    };
    for (const task of allTasks) {
      const { stories, questions } = perTask.get(task)!;
      expect([stories, questions]).toEqual(sizes[task] ?? [1799, 8995]);
    }
  });

  test("stream as one epoch that asks every question once, tasks mixed", () => {
    const { valid } = data.splits;
    let questions = 0;
    let tokens = 0;
    const tasksOfRow = new Set<number>();
    for (const batch of epochBatches(preparedSource(valid, 1), { batch: 128, window: 200 })) {
      questions += batch.questions.reduce((sum, flag) => sum + flag, 0);
      tokens += batch.tokens.length - batch.padded;
      if (tokens < 128 * 200 * 4) for (let t = 0; t < 200; t++) tasksOfRow.add(batch.tasks[t * 128]!);
    }
    expect(questions).toBe(19_907);
    expect(tokens).toBe(570_894 + 6245);
    expect(tasksOfRow.size).toBeGreaterThan(3);
  });

  test("a batch of 64 rows takes well under a millisecond", () => {
    const batcher = new StreamBatcher(preparedSource(data.splits.train, 1), { batch: 64, window: 200 });
    for (let i = 0; i < 50; i++) batcher.next();
    const times = Array.from({ length: 201 }, () => {
      const begin = performance.now();
      batcher.next();
      return performance.now() - begin;
    }).sort((a, b) => a - b);
    // The median was 0.21 to 0.23 ms on a busy two-core machine; single calls meet the garbage collector.
    expect(times[100]).toBeLessThan(1);
  });
});

describe("the real 1k files", needsRealData, () => {
  test("give their counts, with and without the last stories", async () => {
    const options = { ...tiny, variant: "1k", tasks: allTasks, from: realData, allowMissing: false } as const;
    const { splits, provenance } = await prepareCatbabi(options);
    expect(splits.train.counts()).toMatchObject({ stories: 5622, questions: 17_925, tokens: 509_246 });
    expect(splits.valid.counts()).toMatchObject({ stories: 605, questions: 1891, tokens: 54_202 });
    expect(provenance.files.every(({ state }) => state === "official")).toBe(true);
    const kept = await prepareCatbabi({ ...options, keepLastStory: true });
    expect(kept.splits.valid.counts()).toMatchObject({ stories: 625, questions: 1987 });
    expect(kept.splits.test.counts()).toMatchObject({ stories: 6267, questions: 20_000 });
  });
});

describe("a copy of bAbI", () => {
  test("loses the last story of each whole file, keeps it when asked to, and keeps all of a partial file", async () => {
    const from = tinyFolder((files) => {
      files.set("qa2_train.partial.txt", files.get("qa1_train.txt")!);
    });
    const options = { ...tiny, tasks: [1, 2, 15], from };
    const { splits, provenance } = await prepareCatbabi(options);
    const stories = (split: "train" | "valid") =>
      [...splits[split].counts().perTask].map(([t, c]) => [t, c.stories]);
    expect(stories("train")).toEqual([
      [1, 2],
      [2, 3],
      [15, 2],
    ]);
    expect(stories("valid")).toEqual([
      [1, 2],
      [15, 2],
    ]);
    expect(splits.valid.counts()).toMatchObject({ stories: 4, questions: 6 });
    expect(catbabiVocabulary.decode(splits.train.story(0).tokens).join(" ")).toBe(
      "mary moved to the garden . where is mary ? garden john went back to the office . where is john ? office",
    );
    // Far smaller than the official files: every one of them counts as partial.
    expect(provenance.missing).toContain("qa1_train.txt");
    expect(provenance.partial).toContainEqual({
      task: 2,
      split: "train",
      name: "qa2_train.partial.txt",
      stories: 3,
      official: 1799,
    });
    const kept = await prepareCatbabi({ ...options, keepLastStory: true });
    expect(kept.splits.train.stories).toBe(9);
  });

  test("with a gap is used only when that is allowed, and the error says which files are not there", async () => {
    const from = tinyFolder((files) => {
      files.set("qa15_train.partial.txt", files.get("qa15_train.txt")!);
      files.delete("qa15_train.txt");
      files.delete("qa15_test.txt");
    });
    const preparing = prepareCatbabi({ ...tiny, tasks: [15], from, allowMissing: false });
    await expect(preparing).rejects.toThrow(DataError);
    await expect(preparing).rejects.toThrow(
      /missing or partial: qa15_train\.txt \(partial: qa15_train\.partial\.txt has 3 of 2249 stories\), .*qa15_test\.txt \(missing\)/,
    );
    const { splits } = await prepareCatbabi({ ...tiny, tasks: [15], from });
    expect([splits.train.stories, splits.test.stories]).toEqual([3, 0]);
  });

  test("with Windows line ends is the same data", async () => {
    const from = tinyFolder((files) => {
      for (const [name, content] of files) files.set(name, String(content).replaceAll("\n", "\r\n"));
    });
    const windows = await prepareCatbabi({ ...tiny, from });
    const unix = await prepareCatbabi({ ...tiny, from: tinyFolder() });
    expect(windows.splits).toEqual(unix.splits);
  });

  test("is completed with generated stories in train alone, and says so", async () => {
    const generate = ({ task, seed, index }: { task: number; seed: number; index: number }) => ({
      task,
      lines: [
        { kind: "statement", id: 1, words: ["mary", "moved", "to", "the", index % 2 ? "garden" : "office"] },
        {
          kind: "question",
          id: 2,
          words: ["where", "is", seed ? "mary" : "john"],
          answer: "garden",
          supports: [1],
        },
      ] as const,
    });
    const from = tinyFolder((files) => void files.delete("qa15_valid.txt"));
    const options = { ...tiny, from, fill: { generate, seed: 5 } };
    const { splits, provenance } = await prepareCatbabi(options);
    expect(provenance.filled).toEqual([
      { task: 1, split: "train", seed: 5, stories: 1797 },
      { task: 15, split: "train", seed: 5, stories: 2247 },
    ]);
    expect([...splits.train.counts().perTask].map(([task, { stories }]) => [task, stories])).toEqual([
      [1, 1799],
      [15, 2249],
    ]);
    expect(provenance.missing).toContain("qa15_valid.txt");
    expect(splits.valid.stories).toBe(2);
    // Valid and test stay real, so what is missing there still needs a word.
    await expect(prepareCatbabi({ ...options, allowMissing: false })).rejects.toThrow(
      "qa15_valid.txt (missing)",
    );
  });

  const change = (name: string, to: (text: string) => string | Uint8Array) =>
    tinyFolder((files) => files.set(name, to(String(files.get(name)))));

  test.each<[string, () => string, RegExp]>([
    ["an empty file", () => change("qa1_train.txt", () => ""), /qa1_train\.txt: the file is empty/],
    [
      "a line without an ID",
      () => change("qa15_test.txt", (t) => t + "no id\n"),
      /qa15_test\.txt:10: not a bAbI line/,
    ],
    [
      "a file cut in a line",
      () => change("qa1_valid.txt", (t) => t.slice(0, -4)),
      /qa1_valid\.txt:12: not a bAbI line/,
    ],
    [
      "an unknown word",
      () => change("qa1_test.txt", (t) => t.replace("garden", "gazebo")),
      /qa1_test\.txt:1: .*"gazebo"/,
    ],
    [
      "bytes that are not UTF-8",
      () =>
        change("qa1_test.txt", (t) =>
          Buffer.concat([Buffer.from(t.slice(0, 40)), Buffer.from([0xff, 0xfe])]),
        ),
      /qa1_test\.txt:2: not UTF-8/,
    ],
    [
      "binary nonsense",
      () => change("qa1_test.txt", () => new Uint8Array(100)),
      /qa1_test\.txt:1: not a bAbI line/,
    ],
  ])("with %s is refused, file and line named", async (_, make, message) => {
    const preparing = prepareCatbabi({ ...tiny, from: make() });
    await expect(preparing).rejects.toThrow(DataError);
    await expect(preparing).rejects.toThrow(message);
  });

  test("of the other variant is recognised", needsRealData, async () => {
    const { readCopy } = await import("../../src/data/sources/folders.ts");
    const folder = emptyFolder();
    const { files } = await readCopy(realData, "1k");
    for (const [name, { bytes }] of files) writeFileSync(join(folder, name), bytes);
    await expect(prepareCatbabi({ ...tiny, from: folder })).rejects.toThrow("the 1k variant, not of 10k");
  });
});

describe("the prepared folder", () => {
  let good: string;
  beforeAll(async () => {
    good = join(emptyFolder(), "good");
    await prepareInto(good, { ...tiny, from: tinyFolder() });
  });
  const copyOf = () => {
    const copy = join(emptyFolder(), "copy");
    cpSync(good, copy, { recursive: true });
    return copy;
  };

  test("gives back what was written", async () => {
    const { splits } = await prepareCatbabi({ ...tiny, from: tinyFolder() });
    expect((await loadPrepared(good)).splits).toEqual(splits);
    // The files are plain safetensors: any reader of that format has the arrays.
    const file = join(good, "train.safetensors");
    const { tensors } = decodeSafetensors(readFileSync(file), { file });
    expect({ ...tensors }).toEqual({
      offsets: { dtype: "u32", shape: [5], data: splits.train.arrays.offsets },
      tokens: { dtype: "u16", shape: [splits.train.counts().tokens], data: splits.train.arrays.tokens },
      answers: { dtype: "bool", shape: [splits.train.counts().tokens], data: splits.train.arrays.answers },
      tasks: { dtype: "u8", shape: [4], data: Uint8Array.of(1, 1, 15, 15) },
    });
    expect(JSON.parse(readFileSync(join(good, "vocab.json"), "utf8"))).toEqual(catbabiVocabulary.words);
    expect(readdirSync(good).sort()).toEqual([
      "catbabi.json",
      "test.safetensors",
      "train.safetensors",
      "valid.safetensors",
      "vocab.json",
    ]);
  });

  test("notices any flipped byte and any cut, and names the file", async () => {
    for (const name of readdirSync(good)) {
      const bytes = readFileSync(join(good, name));
      const copy = copyOf();
      const path = join(copy, name);
      const places = fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), fc.boolean());
      await fc.assert(
        fc.asyncProperty(places, async ([at, flip, isCut]) => {
          const damaged = Buffer.from(bytes);
          damaged[at] = damaged[at]! ^ flip;
          writeFileSync(path, isCut ? bytes.subarray(0, at) : damaged);
          const loading = loadPrepared(copy);
          await expect(loading).rejects.toThrow(DataError);
          await expect(loading).rejects.toThrow(name);
        }),
        { numRuns: 40 },
      );
      rmSync(path);
      await expect(loadPrepared(copy)).rejects.toThrow(name);
    }
  });

  test("of another version, or none at all, says what to do", async () => {
    const copy = copyOf();
    const header = readFileSync(join(copy, "catbabi.json"), "utf8");
    writeFileSync(join(copy, "catbabi.json"), header.replace('"version": 2', '"version": 1'));
    for (const read of [readHeader, loadPrepared]) {
      const reading = read(copy);
      await expect(reading).rejects.toThrow(DataError);
      await expect(reading).rejects.toThrow(
        /copy: prepared by another version of fwm \(format 1; this one reads 2\)\n.*run `fwm data prepare catbabi` again/,
      );
    }
    await expect(readHeader(emptyFolder())).rejects.toThrow("no prepared data here");
    await expect(readHeader(join(good, "train.safetensors"))).rejects.toThrow("no prepared data here");
  });

  test("checks what right checksums do not: offsets, tokens, tasks and answers", async () => {
    const { provenance, splits } = await prepareCatbabi({ ...tiny, from: tinyFolder() });
    const faults: [string, (arrays: (typeof splits.train)["arrays"]) => void][] = [
      ["beyond the vocabulary", ({ tokens }) => void (tokens[3] = 200)],
      ["is of task 21", ({ tasks }) => void (tasks[1] = 21)],
      ["is empty", ({ offsets }) => void (offsets[1] = 0)],
      ["not an answer", ({ answers }) => void (answers[2] = 1)],
      ["do not cover", ({ offsets }) => void (offsets[0] = 1)],
    ];
    for (const [message, damage] of faults) {
      const { splits: fresh } = await prepareCatbabi({ ...tiny, from: tinyFolder() });
      damage(fresh.train.arrays);
      const out = join(emptyFolder(), "out");
      await writePrepared(out, provenance, fresh);
      await expect(loadPrepared(out)).rejects.toThrow(message);
    }
  });

  test("is replaced whole, and nothing else is ever overwritten", async () => {
    const out = join(emptyFolder(), "a", "b");
    await prepareInto(out, { ...tiny, from: tinyFolder() });
    const again = await prepareInto(out, { ...tiny, tasks: [1], from: tinyFolder() });
    expect(again.header.tasks).toEqual([1]);
    expect(readdirSync(join(out, ".."))).toEqual(["b"]);
    const other = emptyFolder();
    writeFileSync(join(other, "thesis.txt"), "years of work");
    const { provenance, splits } = await prepareCatbabi({ ...tiny, from: tinyFolder() });
    await expect(writePrepared(other, provenance, splits)).rejects.toThrow(
      /holds something else\n.*thesis\.txt/,
    );
    await expect(writePrepared(join(other, "thesis.txt"), provenance, splits)).rejects.toThrow(
      "a file, not a folder",
    );
    expect(readFileSync(join(other, "thesis.txt"), "utf8")).toBe("years of work");
  });

  test("is not written at all on a full disk, and the earlier one stays", async () => {
    const out = join(emptyFolder(), "out");
    const before = await prepareInto(out, { ...tiny, from: tinyFolder() });
    const { provenance, splits } = await prepareCatbabi({ ...tiny, tasks: [1], from: tinyFolder() });
    let opened = 0;
    const full: FileSystem = {
      ...nodeFileSystem,
      open: (async (...call: Parameters<FileSystem["open"]>) => {
        const handle = await nodeFileSystem.open(...call);
        // The third file meets the end of the disk.
        if (++opened === 3) {
          handle.writeFile = () => Promise.reject(Object.assign(new Error("full"), { code: "ENOSPC" }));
        }
        return handle;
      }) as FileSystem["open"],
    };
    await expect(writePrepared(out, provenance, splits, full)).rejects.toThrow("the disk is full");
    expect(opened).toBe(3);
    expect(await loadPrepared(out)).toEqual(before);
    expect(readdirSync(join(out, ".."))).toEqual(["out"]);
    await expect(writePrepared(join(out, "train.safetensors", "x"), provenance, splits)).rejects.toThrow(
      "not a folder",
    );
  });

  test("has a name and a place of its own for each choice", () => {
    expect(preparedName({ ...tiny, tasks: allTasks })).toBe("catbabi-10k");
    expect(preparedName({ variant: "1k", tasks: [1, 2, 15, 16, 17], keepLastStory: true })).toBe(
      "catbabi-1k-tasks-1-2_15-17-keep-last",
    );
    expect(dataRoot({ FWM_DATA: "/data" })).toBe("/data");
    expect(dataRoot({ XDG_CACHE_HOME: "/cache" })).toBe(join("/cache", "fwm", "data"));
    expect(dataRoot({})).toContain(join(".cache", "fwm", "data"));
  });
});
