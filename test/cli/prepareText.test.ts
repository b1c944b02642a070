/** `fwm data prepare ptb | wikitext-2 | text` from the command line: results, warnings, exit codes, nothing half-written. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { emptyFolder } from "../data/support/tiny.ts";
import { run } from "./support.ts";

function textFolder(files: Record<string, string | Uint8Array>): string {
  const folder = emptyFolder();
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

const fine = { "train.txt": "a b a\nc <unk>\n", "valid.txt": "a\n", "test.txt": "b\n" };

test("own text goes to the data folder, under its name, and says what it holds", async () => {
  const env = { FWM_DATA: emptyFolder() };
  const from = join(textFolder({ "my.txt": "one two\n".repeat(100) }), "my.txt");
  const { code, stdout, stderr } = await run(["data", "prepare", "text", "--from", from, "--json"], { env });
  expect([code, stderr]).toEqual([0, ""]);
  const { path, splits, vocabulary } = JSON.parse(stdout) as {
    path: string;
    splits: Record<string, { tokens: number }>;
    vocabulary: { size: number };
  };
  expect(path).toBe(join(env.FWM_DATA, "text-my"));
  expect(splits).toMatchObject({ train: { tokens: 270 }, valid: { tokens: 15 }, test: { tokens: 15 } });
  expect(vocabulary.size).toBe(4);
  expect(readdirSync(env.FWM_DATA)).toEqual(["text-my"]);
});

test("a copy of a corpus that is not the published one is prepared with a warning", async () => {
  const env = { FWM_DATA: emptyFolder() };
  const { code, stdout, stderr } = await run(["data", "prepare", "ptb", "--from", textFolder(fine)], { env });
  expect(code).toBe(0);
  expect(stderr).toContain("not the published files: train.txt, valid.txt, test.txt");
  expect(stdout).toContain("vocabulary 5");
});

test("a last line without a line end is a warning", async () => {
  const from = textFolder({ ...fine, "valid.txt": "a\nb" });
  const { code, stderr } = await run(["data", "prepare", "text", "--from", from], {
    env: { FWM_DATA: emptyFolder() },
  });
  expect(code).toBe(0);
  expect(stderr).toContain("valid.txt:2: the last line has no line end");
});

describe("a mistake is one message, and leaves nothing behind", () => {
  test.each<[number, string, () => string[]]>([
    [
      3,
      "test.txt:2: not UTF-8",
      () => ["--from", textFolder({ ...fine, "test.txt": Buffer.from([0x61, 0x0a, 0xff, 0x0a]) })],
    ],
    [3, "valid.txt: the valid split is empty", () => ["--from", textFolder({ ...fine, "valid.txt": "" })]],
    [3, "no such file or folder", () => ["--from", "/no/such/text"]],
    [2, "--from", () => []],
    [
      2,
      "must be above 0 and leave some to train",
      () => ["--from", textFolder({ "a.txt": "x\ny\n" }), "--valid-share", "1"],
    ],
    [3, "no prepared text here", () => ["--from", textFolder(fine), "--vocabulary", emptyFolder()]],
    [2, "leave --min-count", () => ["--from", textFolder(fine), "--vocabulary", "v", "--min-count", "2"]],
  ])("exits %i: %s", async (code, message, more) => {
    const env = { FWM_DATA: emptyFolder() };
    const ended = await run(["data", "prepare", "text", ...more()], { env });
    expect(ended.stderr).toContain(message);
    expect([ended.code, ended.stdout]).toEqual([code, ""]);
    expect(readdirSync(env.FWM_DATA)).toEqual([]);
  });
});
