/**
 * The examples in every command's help are run: as they stand, or by the cheap variant they name. What `$NAMES`
 * stand for, and what data the commands find, is prepared here.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { Command, CommandEntry } from "../../src/cli/command.ts";
import { fwm } from "../../src/cli/commands.ts";
import { saveModelFolder } from "../../src/store/modelFolder.ts";
import { emptyFolder, tinyFolder } from "../data/support/tiny.ts";
import { sampleModel, sampleText } from "../experiment/text/sample.ts";
import { textModel, textSystems } from "../support/textModel.ts";
import { run } from "./support.ts";

const places: Record<string, string> = {};

beforeAll(async () => {
  places.BABI = tinyFolder();
  places.EMPTY = emptyFolder();
  places.TEXT = emptyFolder();
  for (const split of ["train", "valid", "test"]) {
    const lines = Array.from({ length: 60 }, (_, i) => `the ${i % 7} of ${split}`);
    writeFileSync(join(places.TEXT, `${split}.txt`), lines.join("\n") + "\n");
  }
  places.STORIES = emptyFolder();
  const story = "1 Ada lives in X-1.\n2 Where is Ada?\tx-1\n";
  writeFileSync(join(places.STORIES, "kinship.txt"), story.repeat(20));
  places.FWM_DATA = join(places.EMPTY, "data");
  const prepared = await run(["data", "prepare", "catbabi", "--from", places.BABI, "--allow-missing"], {
    env: { FWM_DATA: places.FWM_DATA },
  });
  expect(prepared.code).toBe(0);
  places.RUN = join(places.EMPTY, "trained");
  const trained = await run(["train", "catbabi-qa-fwm", "--smoke", "--steps", "4", "--out", places.RUN]);
  expect(trained.code).toBe(0);
  places.RESULT = join(places.EMPTY, "filed", "trained.json");
  const filed = await run([
    ...["report", places.RUN, "--split", "valid", "--batch", "16", "--out", join(places.EMPTY, "filed")],
  ]);
  expect(filed.code).toBe(0);
  places.AGENT = join(places.EMPTY, "trained-agent");
  const agent = await run(["train", "metarl-fwm", "--smoke", "--steps", "4", "--out", places.AGENT]);
  expect(agent.code).toBe(0);
  places.PREPARED = await sampleText({ train: 30, valid: 5, test: 5 });
  places.LANGUAGEONE = await sampleModel(places.PREPARED, { seed: 1 });
  places.LANGUAGETWO = await sampleModel(places.PREPARED, { seed: 2 });
  places.LANGUAGE = await saveModelFolder(join(places.EMPTY, "language"), textModel(textSystems["awd-fwm"]));
});

function commandsOf(entries: readonly CommandEntry[], path = "fwm"): { path: string; command: Command }[] {
  return entries.flatMap((entry) =>
    entry.kind === "group"
      ? commandsOf(entry.commands, `${path} ${entry.name}`)
      : [{ path: `${path} ${entry.name}`, command: entry }],
  );
}

describe.each(commandsOf(fwm.commands))("$path", ({ path, command }) => {
  test("has examples, and they show this command", () => {
    expect(command.examples.length).toBeGreaterThan(0);
    for (const example of command.examples) {
      expect(typeof example === "string" ? example : example.line).toContain(path);
    }
  });

  test.each(
    command.examples.map((example) =>
      typeof example === "string" ? { line: example, trial: example } : example,
    ),
  )("$line", async ({ trial }) => {
    const words = trial
      .split(" ")
      .map((word) => word.replace(/\$([A-Z]+)/, (_, name: string) => places[name]!));
    expect(words[0]).toBe("fwm");
    const { code, stdout, stderr } = await run(words.slice(1), { env: { FWM_DATA: places.FWM_DATA! } });
    expect(stderr).not.toContain("error:");
    expect(code).toBe(0);
    if (words.includes("--json")) expect(() => JSON.parse(stdout) as unknown).not.toThrow();
  });
});

test.each(commandsOf(fwm.commands))(
  "the lines of $path use only options that the command has",
  ({ command }) => {
    for (const example of command.examples) {
      const line = typeof example === "string" ? example : example.line;
      const options = line.match(/--[a-z-]+/g) ?? [];
      const known = Object.keys(command.options).map((name) =>
        name.replace(/[A-Z]/g, (l) => "-" + l.toLowerCase()),
      );
      const common = ["json", "quiet", "verbose", "no-color"];
      for (const option of options) expect([...known, ...common]).toContain(option.slice(2));
    }
  },
);
