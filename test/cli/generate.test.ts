/** `fwm generate` from the command line: what is written where, and what it says to a model of another kind. */
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { saveModelFolder } from "../../src/store/modelFolder.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { textModel, textSystems } from "../support/textModel.ts";
import { run } from "./support.ts";

let model: string;
let stories: string;

beforeAll(async () => {
  const folder = emptyFolder();
  model = await saveModelFolder(join(folder, "text"), textModel(textSystems["awd-fwm"]));
  stories = await saveModelFolder(join(folder, "stories"), textModel(textSystems.lstm, { kind: "catbabi" }));
});

interface Generated {
  readonly prompt: string;
  readonly text: string;
  readonly words: readonly { readonly word: string; readonly probability: number }[];
}

test("writes the prompt and the words, a line per <eos>", async () => {
  const line = ["generate", model, "--prompt", "a b", "--words", "25", "--seed", "2"];
  const plain = await run(line);
  expect([plain.code, plain.stderr]).toEqual([0, ""]);
  const json = await run([...line, "--json"]);
  const { prompt, text, words } = JSON.parse(json.stdout) as Generated;
  expect([prompt, words.length]).toEqual(["a b", 25]);
  expect(text).toBe(words.map(({ word }) => word).join(" "));
  expect(text).toContain("<eos>");
  for (const { probability } of words) expect(probability > 0 && probability < 1).toBe(true);
  const lines = `a b ${text}`.split("<eos>").map((part) => part.trim());
  expect(plain.stdout.trimEnd()).toBe(lines.join("\n").trimEnd());
  expect(plain.stdout.endsWith("\n")).toBe(true);
});

test("keeps to the width of a terminal, with the prompt dimmed", async () => {
  const prompt = Array.from({ length: 80 }, () => "a").join(" ");
  const line = ["generate", model, "--prompt", prompt, "--words", "2", "--temperature", "0"];
  const { stdout } = await run(line, { terminal: true, env: { TERM: "xterm" } });
  expect(stdout).toContain("\u001b[2ma\u001b[22m");
  const plain = stripVTControlCharacters(stdout);
  expect(plain.split("\n").every((row) => row.length <= 100)).toBe(true);
});

test("words of the prompt that are not known are a warning", async () => {
  const { code, stderr } = await run(["generate", model, "--prompt", "a zebra", "--words", "1"]);
  expect([code, stderr]).toEqual([0, 'warning: not in the model\'s vocabulary, read as <unk>: "zebra"\n']);
});

describe("a mistake is one message", () => {
  test.each<[number, string, () => string[]]>([
    [2, "a model of the kind catbabi: it answers questions", () => ["generate", stories]],
    [2, "a model of the kind text: it continues text", () => ["ask", model]],
    [2, "temperature: expected a number of at least 0", () => ["generate", model, "--temperature", "-1"]],
    [2, "--words: expected an integer of at least 1", () => ["generate", model, "--words", "0"]],
    [3, "no such folder", () => ["generate", "/no/such/model"]],
    [3, "a model of the kind metarl; it reads no words", () => ["generate", "models/metarl"]],
  ])("exits %i: %s", async (code, message, line) => {
    const ended = await run(line());
    expect(ended.stderr).toContain(message);
    expect([ended.code, ended.stdout]).toEqual([code, ""]);
  });
});
