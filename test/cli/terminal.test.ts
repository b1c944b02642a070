/** Texts from files reach a terminal as texts: what would control it is shown, not sent. */

import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { fwm } from "../../src/cli/commands.ts";
import { runProgram } from "../../src/cli/program.ts";
import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { DataError, printable } from "../../src/errors.ts";
import { saveModelFolder } from "../../src/store/modelFolder.ts";
import { createRun } from "../../src/store/run.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { modelBytes, smallFwm, weightsOf } from "../inference/support.ts";
import { description } from "../store/samples.ts";
import { Written } from "./support.ts";

/** Clears the screen, sets the window's title, hides what follows; the last one is a single byte in ISO 8859. */
const attack = "\u001b[2J\u001b]0;title\u0007\u001b[8m\u009b2J";
/** Anything but line ends, tabs and, where colour is wanted, colours. */
const control = /[^\P{Cc}\n\t]/u;
const escapeMark = "\u001b";
const withoutColours = (text: string) => text.replace(new RegExp(`${escapeMark}\\[[\\d;]*m`, "g"), "");

async function run(argv: readonly string[], lines = "", env: Record<string, string> = {}) {
  const [stdout, stderr] = [new Written(), new Written()];
  const code = await runProgram(fwm, argv, { stdout, stderr, stdin: Readable.from([lines]), env });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

test("printable() shows control characters and marks of direction, and leaves all other text", () => {
  expect(printable(attack)).toBe(String.raw`\x1b[2J\x1b]0;title\x07\x1b[8m\x9b2J`);
  expect(printable("a\u202eb\u2028c\u007f\r")).toBe(String.raw`a\u202eb\u2028c\x7f\x0d`);
  for (const text of ["plain", "line\n\ttab", "Äöü ✓ █ 日本 🦉"]) expect(printable(text)).toBe(text);
});

test("messages of errors are printable, whatever they quote", () => {
  expect(new DataError(`file: ${attack}`, { found: attack }).message).not.toMatch(control);
});

test("words of vocab.json are", async () => {
  const words = catbabiVocabulary.words.map((word) =>
    /^[a-z]+$/.test(word) && word !== "mary" ? word + attack : word,
  );
  const model = await saveModelFolder(join(emptyFolder(), "model"), {
    config: { ...(JSON.parse(modelBytes(smallFwm).config) as object), experiment: attack },
    model: weightsOf(smallFwm),
    files: { "vocab.json": JSON.stringify(words) },
  });
  const plain = await run(["ask", model, "--top", "200"], "Mary?\nMary went.");
  expect(plain.stdout).toContain(String.raw`\x1b[2J`);
  expect(plain.stdout + plain.stderr).not.toMatch(control);
  const coloured = await run(["ask", model, "--top", "200"], "Mary?", { FORCE_COLOR: "1" });
  expect(coloured.stdout).not.toContain("\u001b[8m");
  expect(withoutColours(coloured.stdout)).not.toMatch(control);
  const json = await run(["ask", model, "--json", "--top", "200"], "Mary?");
  expect(json.stdout).not.toMatch(control);
  const { answers } = JSON.parse(json.stdout) as { answers: { word: string }[] };
  expect(answers.map(({ word }) => word).sort()).toEqual([...words].sort());
});

test("fields of run.json are, and none begins a line of its own", async () => {
  const runs = emptyFolder();
  const name = `one${attack}\nfinished`;
  const made = await createRun(join(runs, "one"), description({ experiment: name }));
  await made.close("failed", attack);
  const plain = await run(["runs", runs]);
  expect(plain.stdout.trimEnd().split("\n")).toHaveLength(2);
  expect(plain.stdout + plain.stderr).not.toMatch(control);
  expect(plain.stdout).toContain(String.raw`one\x1b[2J`);
  const json = await run(["runs", runs, "--json"]);
  expect(json.stdout).not.toMatch(control);
  expect((JSON.parse(json.stdout) as { runs: object[] }).runs[0]).toMatchObject({ experiment: name });
});
