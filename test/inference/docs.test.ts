/**
 * The examples of docs/library.md, run as they stand: only the package's name becomes the path of its source, and
 * folders are made in a temporary place.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { saveModelFolder } from "../../src/store/modelFolder.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { textModel, textSystems } from "../support/textModel.ts";
import { trainSmall } from "./trained.ts";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/library.md"), "utf8");

interface DocExample {
  readonly title: string;
  readonly code: string;
  /** For each console.log in order, what the page says it prints; undefined where it says nothing. */
  readonly prints: readonly (string | undefined)[];
}

function examplesOf(text: string): DocExample[] {
  const examples: DocExample[] = [];
  for (const section of text.split(/^#+ /m).slice(1)) {
    const title = section.split("\n")[0]!;
    for (const [, code] of section.matchAll(/```ts\n([\s\S]*?)```/g)) {
      const lines = code!.split("\n").filter((line) => line.startsWith("console.log("));
      examples.push({ title, code: code!, prints: lines.map((line) => / \/\/ → (.*)$/.exec(line)?.[1]) });
    }
  }
  return examples;
}

const examples = examplesOf(page);
let folder: string;

beforeAll(async () => {
  folder = emptyFolder();
  mkdirSync(join(folder, "runs"));
  await trainSmall(join(folder, "runs"), "catbabi-qa-fwm-seed1");
  await saveModelFolder(
    join(folder, "my-language-model"),
    textModel(textSystems["awd-fwm"], { words: ["<unk>", "<eos>", "the", ..."abcdefgh"] }),
  );
});

describe("docs/library.md", () => {
  test("has an example for every part", () => {
    expect(new Set(examples.map(({ title }) => title))).toEqual(
      new Set([
        "Answering",
        "Many streams",
        "Generating text",
        "Scores",
        "The memory alone",
        "Training",
        "Agents",
        "Systems and kinds of your own",
        "Layers",
        "Data",
        "Runs",
        "The engine",
      ]),
    );
  });

  test.each(examples.map((example, i) => ({ ...example, i })))(
    "$title, example $i",
    async ({ i, code, prints }) => {
      const source = (path: string) => JSON.stringify(pathToFileURL(join(root, path)).href);
      const file = join(folder, `example-${i}.mts`);
      writeFileSync(
        file,
        code
          .replace(/from "fwm"/g, `from ${source("src/index.ts")}`)
          .replace(/from "fwm\/engine"/g, `from ${source("src/engine.ts")}`)
          .replace(/from "fwm\/model"/g, `from ${source("src/model/index.ts")}`)
          .replace(/from "zod"/g, `from ${source("node_modules/zod/index.js")}`)
          .replace(
            /"(runs|handed-on|my-language-model)(?=[/"])/g,
            (_, name: string) => `"${join(folder, name)}`,
          ),
      );
      // Each example is a program of its own.
      vi.resetModules();
      const log = vi.spyOn(console, "log").mockReturnValue();
      try {
        await import(/* @vite-ignore */ file);
        const said = log.mock.calls.map((values) => values.map(String).join(" "));
        expect(said).toHaveLength(prints.length);
        prints.forEach((want, at) => {
          if (want !== undefined) expect(said[at]).toBe(want);
        });
      } finally {
        log.mockRestore();
      }
    },
  );
});
