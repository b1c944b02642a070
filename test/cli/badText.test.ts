/** Text that something is wrong with, given to the commands that train on it and read it: one message, nothing half-written. */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { TextEvaluation } from "../../src/experiment/text/options.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { sampleModel, sampleText } from "../experiment/text/sample.ts";
import { run } from "./support.ts";

/** Prepares three splits of text; gives the prepared folder. */
async function prepared(
  files: Record<"train" | "valid" | "test", string>,
  ...more: string[]
): Promise<string> {
  const folder = emptyFolder();
  for (const [split, text] of Object.entries(files)) writeFileSync(join(folder, `${split}.txt`), text);
  const out = join(folder, "prepared");
  const { code, stderr } = await run(["data", "prepare", "text", "--from", folder, "--out", out, ...more]);
  expect([code, stderr]).toEqual([0, ""]);
  return out;
}

const small = ["--smoke", "--steps", "2", "--set", "task.dataset=text-mine", "--set", "system.vocabulary=9"];

/** Trains a small system on a text; the run folder must not be there after a mistake. */
async function train(data: string, ...more: string[]) {
  const out = join(emptyFolder(), "run");
  const line = ["train", "ptb-lstm-small", ...small, "--data", data, "--out", out, "--threads", "1"];
  const ended = await run([...line, ...more]);
  return { ...ended, exists: existsSync(out) };
}

const line = "a b c a b d a b c\n";
const fine = { train: line.repeat(40), valid: line.repeat(4), test: line.repeat(4) };

describe("training", () => {
  test("on text that is fine works", async () => {
    const { code, exists } = await train(await prepared(fine));
    expect([code, exists]).toEqual([0, true]);
  });

  test("a vocabulary larger than the model's: the first word too many is named with its line", async () => {
    const words = Array.from({ length: 30 }, (_, i) => `w${i}`).join(" ");
    const { code, stderr, exists } = await train(
      await prepared({ ...fine, train: `${words}\n${fine.train}` }),
    );
    expect(stderr).toMatch(/vocabulary\.txt:10: the text has more words than the model/);
    expect(stderr).toContain("--max-words");
    expect([code, exists]).toEqual([2, false]);
  });

  test.each(["training.window", "training.lengths.min"])("a length of 1: %s", async (setting) => {
    const { code, stderr, exists } = await train(await prepared(fine), "--set", `${setting}=1`);
    expect(stderr).toContain(setting);
    expect([code, exists]).toEqual([2, false]);
  });

  test.each(["train", "valid"] as const)("a %s split that is too short for its columns", async (split) => {
    const { code, stderr, exists } = await train(await prepared({ ...fine, [split]: "a\n" }));
    expect(stderr).toMatch(new RegExp(`${split}\\.safetensors: 2 tokens are too few for \\d+ columns`));
    expect([code, exists]).toEqual([3, false]);
  });

  test("a folder that was not prepared", async () => {
    const { code, stderr, exists } = await train(emptyFolder());
    expect(stderr).toContain("no prepared text here (text.json is missing)");
    expect([code, exists]).toEqual([3, false]);
  });
});

describe("reading", () => {
  let data: string;
  let model: string;
  beforeAll(async () => {
    data = await sampleText({ train: 30, valid: 4, test: 4 });
    model = await sampleModel(data);
  });

  test("a word never seen is <unk> with the model's vocabulary, and counted", async () => {
    const folder = emptyFolder();
    const from = join(folder, "my.txt");
    writeFileSync(from, "the zebra sees the cat meows\n".repeat(30));
    const out = join(folder, "prepared");
    const preparing = [
      "data",
      "prepare",
      "text",
      "--from",
      from,
      "--vocabulary",
      data,
      "--out",
      out,
      "--json",
    ];
    const { code, stdout } = await run(preparing);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ splits: { train: { unknown: 27 } } });
    const read = await run(["eval", model, "--data", out, "--threads", "1", "--json"]);
    expect(read.code).toBe(0);
  });

  test("a word never seen is an error with file and line where there is no <unk>", async () => {
    const words = emptyFolder();
    const folder = emptyFolder();
    for (const split of ["train", "valid", "test"]) writeFileSync(join(words, `${split}.txt`), "a b\n");
    for (const split of ["train", "valid"]) writeFileSync(join(folder, `${split}.txt`), "b a\n");
    writeFileSync(join(folder, "test.txt"), "a\n\na zebra\n");
    const without = join(words, "prepared");
    // Penn Treebank's rule: every word of the files has its number, and nothing stands for others.
    expect((await run(["data", "prepare", "ptb", "--from", words, "--out", without])).code).toBe(0);
    const out = join(folder, "prepared");
    const preparing = ["data", "prepare", "text", "--from", folder, "--vocabulary", without, "--out", out];
    const { code, stderr } = await run(preparing);
    expect(stderr).toContain('test.txt:3: the vocabulary has no word "zebra", and no <unk>');
    expect([code, existsSync(out)]).toEqual([3, false]);
    expect(readdirSync(folder).sort()).toEqual(["test.txt", "train.txt", "valid.txt"]);
  });

  test("windows and segments of one token give the score of any other window", async () => {
    const score = async (...more: string[]): Promise<TextEvaluation> => {
      const { stdout } = await run(["eval", model, "--data", data, "--threads", "1", "--json", ...more]);
      return JSON.parse(stdout) as TextEvaluation;
    };
    const usual = await score();
    const single = await score(
      "--window",
      "1",
      "--dynamic",
      "1e-12,1e-9",
      "--segment",
      "1",
      "--cache",
      "0.1,1,1",
    );
    expect(single.loss).toBeCloseTo(usual.loss, 4);
    expect(single.splits.valid!.dynamic!.loss).toBeCloseTo(usual.loss, 4);
    expect(single.splits.valid!.cache!.loss).not.toBe(usual.loss);
  });

  test("a split of one token has nothing to predict", async () => {
    const words = "the cat sees the dog barks\n";
    const short = await prepared(
      { train: words.repeat(9), valid: words, test: "the\n" },
      ...["--vocabulary", data],
    );
    const { code, stderr } = await run(["eval", model, "--data", short, "--split", "test", "--batch", "2"]);
    expect(stderr).toContain("test.safetensors: 2 tokens are too few for 2 columns of at least 2");
    expect(code).toBe(3);
    const one = await run(["eval", model, "--data", short, "--split", "test", "--threads", "1", "--json"]);
    expect((JSON.parse(one.stdout) as TextEvaluation).tokens).toBe(1);
  });
});
