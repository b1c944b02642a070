/** Stories of one's own from the first file to an answer: prepare, train, evaluate, ask. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { beforeAll, describe, expect, test } from "vitest";
import { fwm } from "../../src/cli/commands.ts";
import { runProgram } from "../../src/cli/program.ts";
import type { CatbabiEvaluation } from "../../src/experiment/catbabi/options.ts";
import { integer, keyOf } from "../../src/random.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { run, Written } from "./support.ts";

const robots = ["r2-d2", "c-3po", "bb-8"];
const moons = ["endor", "yavin-4", "dantooine"];

/** Stories of robots and moons: where a robot flew last is where it is. */
function stories(count: number, seed: number): string {
  const key = keyOf(seed, "robots");
  return Array.from({ length: count }, (_, i) => {
    const [robot, first, last] = [robots, moons, moons].map((all, j) => all[integer(key, 3 * i + j, 3)]!);
    return `1 ${robot} flew to ${first}.\n2 Now ${robot} flew to ${last}.\n3 Where is ${robot}?\t${last}\n`;
  }).join("");
}

let data: string;
let folder: string;
let trained: string;

beforeAll(async () => {
  folder = emptyFolder();
  for (const [i, split] of ["train", "valid", "test"].entries()) {
    writeFileSync(join(folder, `moons_${split}.txt`), stories(split === "train" ? 400 : 40, i));
    writeFileSync(join(folder, `again_${split}.txt`), stories(split === "train" ? 100 : 20, i + 3));
  }
  data = join(folder, "prepared");
  const prepared = await run(["data", "prepare", "stories", "--from", folder, "--out", data]);
  expect(prepared.code).toBe(0);
  expect(prepared.stdout).toMatch(/^moons +400 +40 +40$/m);
  expect(prepared.stdout).toContain("vocabulary 15;");

  trained = join(folder, "run");
  const sizes = ["system.embedding=16", "system.hidden=24", "system.memory=6", "system.reads=1"];
  const how = ["training.batch=16", "training.window=40", "training.optimizer.learningRate=0.01"];
  const often = ["training.steps=150", "training.evalEvery=75", "training.evalBatch=8"];
  const sets = [...sizes, ...how, ...often].flatMap((set) => ["--set", set]);
  const line = ["train", "catbabi-qa-fwm", "--data", data, "--out", trained, "--threads", "1", ...sets];
  const ended = await run(line);
  expect(ended.stderr).toContain("the stories are not bAbI's (again, moons)");
  expect(ended.code).toBe(0);
}, 120_000);

test("the vocabulary of the system is that of the stories", () => {
  const record = JSON.parse(readFileSync(join(trained, "run.json"), "utf8")) as {
    settings: { system: { vocabulary: number } };
  };
  expect(record.settings.system.vocabulary).toBe(15);
});

test("it learns them, and the evaluation has the tasks' names and no published number", async () => {
  const { code, stdout } = await run(["eval", trained, "--split", "test", "--batch", "4"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^moons +40 +/m);
  expect(stdout).toMatch(/^again +20 +/m);
  expect(stdout).not.toContain("paper");
  const json = await run(["eval", trained, "--split", "test", "--batch", "4", "--json"]);
  const { accuracy, ownTasks, paper } = JSON.parse(json.stdout) as CatbabiEvaluation & { paper: unknown };
  expect(accuracy).toBeGreaterThan(0.9);
  expect([ownTasks, paper]).toEqual([{ 1: "again", 2: "moons" }, null]);
});

test("it answers in its own words, also as a packaged model", async () => {
  const model = join(emptyFolder(), "robots");
  const packaged = await run(["package", trained, "--out", model, "--split", "valid", "--batch", "4"]);
  expect(packaged.code).toBe(0);
  expect(readFileSync(join(model, "README.md"), "utf8")).toContain("the 13 words of its stories");
  const stdout = new Written();
  const stderr = new Written();
  const stdin = Readable.from(["C-3PO flew to Endor.\nNow C-3PO flew to Yavin-4.\nWhere is C-3PO?\n"]);
  const code = await runProgram(fwm, ["ask", model, "--json"], { stdout, stderr, stdin, env: {} });
  expect([code, stderr.text]).toEqual([0, ""]);
  const { answers } = JSON.parse(stdout.text) as { answers: { word: string }[] };
  expect(answers[0]!.word).toBe("yavin-4");
  // A model folder does not know where the stories lay.
  const again = await run(["eval", model, "--data", data, "--batch", "4", "--split", "valid"]);
  expect(again.code).toBe(0);
});

test("fwm data stats counts them", async () => {
  const { code, stdout } = await run(["data", "stats", "catbabi", "--data", data]);
  expect(code).toBe(0);
  expect(stdout).toContain("own stories, tasks 1-2, vocabulary 15");
});

describe("a mistake is one message", () => {
  test("generated stories among them", async () => {
    const line = ["train", "catbabi-qa-fwm", "--data", data, "--set", "task.source=mixed"];
    const { code, stderr } = await run([...line, "--out", join(folder, "no")]);
    expect(code).toBe(2);
    expect(stderr).toContain("task.source: stories of your own are used alone, not mixed");
  });

  test("their words exchanged", async () => {
    const line = ["train", "catbabi-qa-fwm", "--data", data, "--set", "task.rename=true"];
    const { code, stderr } = await run([...line, "--out", join(folder, "no")]);
    expect(code).toBe(2);
    expect(stderr).toContain("task.rename: which words of your own stories can stand for each other");
  });

  test("a vocabulary of another size", async () => {
    const line = ["train", "catbabi-qa-fwm", "--data", data, "--set", "system.vocabulary=99"];
    const { code, stderr } = await run([...line, "--out", join(folder, "no")]);
    expect(code).toBe(2);
    expect(stderr).toContain("has 15 words, not 99");
  });

  test("questions in bAbI's words", async () => {
    const { code, stderr } = await run(["eval", trained, "--suite", "stretch"]);
    expect(code).toBe(2);
    expect(stderr).toContain("the model's words are not those of the data");
  });

  test("stories of other words, and the way out", async () => {
    const from = join(emptyFolder(), "other.txt");
    writeFileSync(from, stories(30, 9).replaceAll("endor", "hoth"));
    const other = join(emptyFolder(), "other");
    expect((await run(["data", "prepare", "stories", "--from", from, "--out", other])).code).toBe(0);
    const { code, stderr } = await run(["eval", trained, "--data", other, "--batch", "4"]);
    expect(code).toBe(2);
    expect(stderr).toContain("the model's words are not those of the data");
    expect(stderr).toContain("fwm data prepare stories --vocabulary");
    const more = ["--from", from, "--out", join(other, "x"), "--vocabulary", data];
    const refused = await run(["data", "prepare", "stories", ...more]);
    expect(refused.code).toBe(3);
    expect(refused.stderr).toMatch(/other\.txt:\d+: the vocabulary has no word "hoth"/);
  });
});
