/** `fwm ask`: stories piped in and from files, answers as text and as JSON, and words the model does not know. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { fwm } from "../../src/cli/commands.ts";
import { drawBar, drawReads } from "../../src/cli/heatmap.ts";
import { runProgram } from "../../src/cli/program.ts";
import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { loadModel } from "../../src/inference/load.ts";
import type { SystemSettings } from "../../src/model/registry.ts";
import { saveModelFolder } from "../../src/store/modelFolder.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { modelBytes, smallFwm, smallLstm, weightsOf } from "../inference/support.ts";
import { Written } from "./support.ts";

let folder: string;
let model: string;

async function save(name: string, system: SystemSettings): Promise<string> {
  return saveModelFolder(join(folder, name), {
    config: JSON.parse(modelBytes(system).config) as Record<string, unknown>,
    model: weightsOf(system),
    files: { "vocab.json": JSON.stringify(catbabiVocabulary.words) },
  });
}

beforeAll(async () => {
  folder = emptyFolder();
  model = await save("model", smallFwm);
});

/** Runs `fwm ask` with lines on its standard input. */
async function ask(
  argv: readonly string[],
  lines = "",
  env: Record<string, string> = {},
  stdin: Readable = Readable.from([lines]),
) {
  const [stdout, stderr] = [new Written(), new Written()];
  const surroundings = { stdout, stderr, stdin, env };
  const code = await runProgram(fwm, ["ask", ...argv], surroundings);
  return { code, stdout: stdout.text, stderr: stderr.text };
}

interface Asked {
  question: string;
  answers: { word: string; probability: number }[];
  words: string[];
  reads: number[][];
  margin: number;
  reader?: { answer: string | null; reason: string | null; agrees: boolean | null };
  given?: string;
  correct?: boolean;
}

async function asked(lines: string, ...argv: string[]): Promise<Asked[]> {
  const { code, stdout, stderr } = await ask([model, "--json", ...argv], lines);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Asked);
}

describe("questions", () => {
  test("are answered as the library answers them, one line of JSON each", async () => {
    const [first, second] = await asked(
      "Mary went to the kitchen\n\nWhere is Mary?\nJohn is in the park. Where is John?\n",
    );
    const loaded = await loadModel(model);
    const stream = loaded.stream();
    await stream.read("mary went to the kitchen .");
    const reply = await stream.ask("where is mary?");
    expect(first!.question).toBe("where is mary ?");
    expect(first!.answers.map(({ word }) => word)).toEqual(reply.answers.map(({ word }) => word));
    expect(first!.words).toEqual("mary went to the kitchen . where is mary ?".split(" "));
    expect(first!.reads).toHaveLength(3);
    first!.reads.forEach((read, i) => {
      expect(read).toHaveLength(first!.words.length);
      expect(read[3]!).toBeCloseTo(reply.trace.rows[i]!.values[4]!, 4);
    });
    // The story went on with the model's own answer.
    expect(second!.words[first!.words.length]).toBe(first!.answers[0]!.word);
    await loaded.release();
  });

  test("show as many answers as asked for, with bars and blocks under the words", async () => {
    const { code, stdout } = await ask([model, "--top", "2"], "Mary went to the kitchen.\nWhere is Mary?\n");
    expect(code).toBe(0);
    const lines = stdout.split("\n");
    expect(lines[0]).toBe("where is mary?");
    expect(lines[1]).toMatch(/^ {2}\S+ +\d+\.\d% /);
    expect(lines[2]).toMatch(/^ {2}\S+ +\d+\.\d% /);
    expect(lines[3]).toBe("          mary went to the kitchen . where is mary ?");
    for (const read of [1, 2, 3]) expect(lines[3 + read]).toMatch(new RegExp(`^  read ${read}  [ ▁-█░▒▓]+$`));
    expect(stdout).not.toContain("\u001b");
  });

  test("are coloured when colour is wanted", async () => {
    const { stdout } = await ask([model], "Where is Mary?\n", { FORCE_COLOR: "1" });
    const [, strip] = stdout.split("  read 1  ");
    expect(strip!.split("\u001b")[1]).toMatch(/^\[48;5;\d+;38;5;\d+m[a-z?]+$/);
    expect(stdout).not.toMatch(/[▂▃▄▅▆▇░▒▓] /);
  });

  test("of a system without a memory have no strips", async () => {
    const path = await save("lstm", smallLstm);
    const { code, stdout } = await ask([path, "--top", "1"], "Where is Mary?\n");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^where is mary\?\n {2}\S+ +\d+\.\d% [█▏▎▍▌▋▊▉]* {2}margin \d+\.\d%\n$/);
  });
});

describe("lines", () => {
  test("of a bAbI file: numbers begin stories, and answers behind tabs are told", async () => {
    const file = join(folder, "qa1.txt");
    writeFileSync(
      file,
      "1 Mary went to the park.\n2 Where is Mary? \tpark\t1\n3 Where is Mary?\tpark\t1\n1 Where is John?\tpark\t1\n",
    );
    const [first, second, third] = await asked("", "--story", file);
    expect(first).toMatchObject({ given: "park", question: "where is mary ?" });
    expect(first!.correct).toBe(first!.answers[0]!.word === "park");
    expect(second!.words[first!.words.length]).toBe("park");
    expect(third!.words).toEqual("where is john ?".split(" "));
    const { stdout } = await ask([model, "--story", file, "--top", "200"]);
    expect(stdout.match(/✓/g)).toHaveLength(3);
  });

  test("are understood as people type them", async () => {
    const story = "Mary went to the kitchen";
    const usual = await asked(`${story}.\nWhere is Mary?\n`);
    for (const typed of ["Where is Mary??", "Where is Mary ?!", "where, is Mary?"]) {
      expect(await asked(`${story}!\n${typed}\n`), typed).toEqual(usual);
    }
    expect(await asked(`${story}, where is Mary?`)).toMatchObject([
      { words: "mary went to the kitchen where is mary ?".split(" ") },
    ]);
    for (const typed of ["Where is Mary", "Where is Mary."]) {
      const { code, stdout, stderr } = await ask([model, "--json"], `${story}\n${typed}\n`);
      expect([code, stderr]).toEqual([0, "taken as a question: where is mary?\n"]);
      expect(JSON.parse(stdout)).toEqual(usual[0]);
    }
  });

  test("with a bare ? are refused: it is not a question", async () => {
    for (const typed of ["?", " ?? ", "Mary went to the kitchen. ?"]) {
      const { code, stdout, stderr } = await ask([model], `${typed}\n`);
      expect([code, stdout, stderr]).toEqual([
        2,
        "",
        expect.stringContaining('a "?" alone is not a question'),
      ]);
    }
  });

  test("of the next story follow :new, which keeps the memory; :words lists what is known", async () => {
    const story = "Mary went to the kitchen.\n";
    const file = join(folder, "two.txt");
    writeFileSync(file, `1 ${story}1 Where is Mary?`);
    const [want] = await asked("", "--story", file);
    const { stdout, stderr } = await ask([model, "--json"], `${story}:new\nWhere is Mary?\n:words\n`);
    expect(JSON.parse(stdout)).toEqual(want);
    expect(stderr).toContain("a new story begins; the memory stays");
    expect(stderr).toMatch(/\bkitchen\b/);
    expect(stderr).not.toContain("<eos>");
    for (const line of stderr.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
  });

  test("are also read by the symbolic reader, and where it differs from the model that is marked", async () => {
    const story = "Mary went to the kitchen.\nJohn went to the garden.\n";
    const [there, , open] = await asked(
      `${story}Where is Mary?\nWhere is John?\nWhere is Sandra?\n`,
      "--reader",
    );
    expect(there!.reader).toEqual({
      answer: "kitchen",
      reason: null,
      agrees: there!.answers[0]!.word === "kitchen",
    });
    expect(open!.reader).toMatchObject({ answer: null, agrees: null, reason: expect.any(String) as string });
    const [lost] = await asked("Mary kitchen the to went.\nWhere is Mary?\n", "--reader");
    expect(lost!.reader!.answer).toBeNull();
    const { stdout } = await ask([model, "--reader", "--top", "1"], `${story}Where is Mary?\n`);
    expect(stdout).toMatch(
      there!.reader!.agrees ? /^ {2}reader: kitchen$/m : /^ {2}reader: kitchen {2}≠ the model$/m,
    );
  });

  test("give the margin between the first and the second answer, also with --top 1", async () => {
    const [two] = await asked("Where is Mary?\n", "--top", "2");
    expect(two!.margin).toBeCloseTo(two!.answers[0]!.probability - two!.answers[1]!.probability, 5);
    const [one] = await asked("Where is Mary?\n", "--top", "1");
    expect([one!.margin, one!.answers.length]).toEqual([two!.margin, 1]);
  });

  test("are forgotten after :reset, and :quit ends the conversation", async () => {
    const story = "Mary went to the kitchen.\n";
    const question = "Where is Mary?\n";
    const { stdout, stderr } = await ask(
      [model, "--json"],
      `${story}${question}:reset\n${story}${question}:help\n:quit\n${question}`,
    );
    const lines = stdout.trim().split("\n");
    expect(lines).toHaveLength(2);
    expect(lines[1]).toBe(lines[0]);
    expect(stderr).toContain("everything is forgotten");
    expect(stderr).toContain(":reset  ");
  });

  test("with an unknown word end a piped conversation with 2 and the nearest words", async () => {
    const { code, stdout, stderr } = await ask(
      [model],
      "Mary went to the kitchen.\nMary went to the kitchn.\nWhere is Mary?\n",
    );
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(
      /^error: line 2: the model does not know "kitchn"\n {2}kitchn {2}nearest: kitchen$/m,
    );
    const file = join(folder, "story.txt");
    writeFileSync(file, "Mary is in the parc.\n");
    expect((await ask([model, "--story", file])).stderr).toContain(
      `${file}:1: the model does not know "parc"`,
    );
    expect((await ask([model], ":stop\n")).stderr).toContain("line 1: there is no command :stop");
  });
});

describe("on a terminal", () => {
  test("a line that cannot be read is left out, and the conversation goes on", async () => {
    const shown = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    // A terminal stays open until it is left.
    const typed = new PassThrough();
    typed.write("Mary went to the kitchn.\n:stop\nWhere is Mary?\n:quit\n");
    const { code, stdout, stderr } = await ask(
      [model, "--json"],
      "",
      {},
      Object.assign(typed, { isTTY: true }),
    );
    const prompts = shown.mock.calls.map(([text]) => String(text)).join("");
    shown.mockRestore();
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as Asked).words).toEqual("where is mary ?".split(" "));
    expect(stderr).toMatch(/warning: the model does not know "kitchn"\n.*kitchen\n {2}the line was left out/);
    expect(stderr).toContain("warning: there is no command :stop");
    expect(prompts).toContain("a fwm with 200 words");
    expect(prompts.match(/> /g)).toHaveLength(4);
  });

  test("the lines before the end of the input are answered, without a prompt on a closed terminal", async () => {
    const shown = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    const typed = Readable.from(["Mary went to the kitchen.\nWhere is Mary?\n"]);
    const { code, stdout } = await ask([model, "--json"], "", {}, Object.assign(typed, { isTTY: true }));
    const prompts = shown.mock.calls.map(([text]) => String(text)).join("");
    shown.mockRestore();
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as Asked).question).toBe("where is mary ?");
    expect(prompts.match(/> /g)).toHaveLength(1);
  });
});

describe("a model", () => {
  test("that is not named must come with the package", async () => {
    const { code, stderr } = await ask([], "");
    // Once a model ships in models/, leaving the name out uses it.
    if (code === 0) return;
    expect(code).toBe(2);
    expect(stderr).toContain("none comes with this package");
    expect(stderr).toContain("fwm train catbabi-qa-fwm");
  });

  test("without its words, or that is not there, is bad data", async () => {
    const path = await saveModelFolder(join(folder, "wordless"), {
      config: JSON.parse(modelBytes(smallFwm).config) as Record<string, unknown>,
      model: weightsOf(smallFwm),
    });
    expect(await ask([path])).toMatchObject({ code: 3 });
    expect((await ask([path])).stderr).toContain("vocab.json is missing");
    expect(await ask([join(folder, "absent")])).toMatchObject({ code: 3 });
  });
});

describe("strips", () => {
  const style = { color: false, columns: 30 };

  test("wrap at the width, blocks under their words", () => {
    const words = ["gertrude", "is", "a", "mouse", ".", "who", "?"];
    expect(drawReads({ words, reads: [[8, 4, 0, -8, 1, -2, 2]] }, style)).toBe(
      [
        "          gertrude is a mouse",
        "  read 1  ████████ ▅▅   ▓▓▓▓▓",
        "          . who ?",
        "  read 1  ▂ ░░░ ▃",
      ].join("\n"),
    );
  });

  test("colour the background by sign and strength, and leave weak words plain", () => {
    const drawn = drawReads({ words: ["a", "b", "c"], reads: [[1, -1, 0.1]] }, { color: true, columns: 80 });
    expect(drawn).toBe("  read 1  \u001b[48;5;220;38;5;16ma\u001b[0m \u001b[48;5;117;38;5;16mb\u001b[0m c");
  });

  test("leave out sentences in which nothing stands out, once a story is long", () => {
    const words = Array.from({ length: 12 }, (_, i) => [`word${i}`, "of", "it", "."]).flat();
    const values = words.map((word) => (word === "word3" || word === "word7" ? 1 : 0.1));
    expect(
      drawReads({ words, reads: [values] }, { color: false, columns: 200 })
        .split("\n")[0]!
        .trim(),
    ).toBe("… word3 of it . … word7 of it . …");
  });

  test("of nothing but zeros are blank", () => {
    expect(drawReads({ words: ["a"], reads: [[0]] }, style)).toBe("          a\n  read 1");
  });

  test("bars are drawn in eighths", () => {
    expect([0, 1 / 32, 0.5, 1, 2].map((share) => drawBar(share, 4))).toEqual(["", "▏", "██", "████", "████"]);
  });
});
