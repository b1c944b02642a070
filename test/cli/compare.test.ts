/** `fwm compare` from the command line: in the terminal, as JSON and as a figure. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { drawStrips } from "../../src/cli/heatmap.ts";
import type { LossComparison } from "../../src/experiment/text/compare.ts";
import { drawWords } from "../../src/report/wordFigure.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { sampleModel, sampleText } from "../experiment/text/sample.ts";
import { run } from "./support.ts";

let line: string[];

beforeAll(async () => {
  const data = await sampleText({ train: 30, valid: 5, test: 6 });
  const models = [await sampleModel(data, { seed: 1 }), await sampleModel(data, { seed: 2 })];
  line = ["compare", ...models, "--data", data, "--threads", "1"];
});

test("writes both models and their difference under the words, and names the words that differ most", async () => {
  const how = ["--at", "3", "--words", "14"];
  const { code, stdout, stderr } = await run([...line, ...how, "--quiet"]);
  expect([code, stderr]).toEqual([0, ""]);
  const json = await run([...line, ...how, "--json"]);
  const { passages, models } = JSON.parse(json.stdout) as LossComparison;
  const { words, bits, difference } = passages[0]!;
  expect(stdout).toMatch(new RegExp(`^model-1 +${models[0].bits.toFixed(3)}$`, "m"));
  expect(stdout).toContain(words.join(" ").slice(0, 40));
  expect(stdout).toMatch(/^ {2}model-1 {4}[▁▂▃▄▅▆▇█ ]+$/m);
  const most = difference.reduce((at, value, i) => (Math.abs(value) > Math.abs(difference[at]!) ? i : at), 0);
  const numbers = [bits[0][most]!, bits[1][most]!, difference[most]!].map((value) => value.toFixed(2));
  expect(stdout).toMatch(new RegExp(`${words[most]} \\(word ${3 + most}\\) +${numbers.join(" +")}`));
});

test("is coloured on a terminal, in lines no wider than it", async () => {
  const { stdout } = await run([...line, "--words", "30"], { terminal: true, env: { TERM: "xterm" } });
  expect(stdout).toContain("\u001b[48;5;");
  const rows = stripVTControlCharacters(stdout).split("\n");
  expect(rows.every(({ length }) => length <= 100)).toBe(true);
});

test("draws a figure with every passage", async () => {
  const path = join(emptyFolder(), "deep", "where.svg");
  const how = ["--search", "2", "--words", "8", "--title", "Where it helps", "--figure", path];
  const { code, stdout } = await run([...line, ...how]);
  expect(code).toBe(0);
  expect(stdout).toContain(`figure: ${path}`);
  const svg = readFileSync(path, "utf8");
  expect(svg).toContain("Where it helps");
  expect(svg.match(/from word/g)!.length).toBeGreaterThanOrEqual(2);
  expect(svg).toContain("difference, bits");
});

test("is filed with the command that made it, its commit and machine", async () => {
  const path = join(emptyFolder(), "losses.json");
  const { code, stdout } = await run([...line, "--search", "1", "--words", "8", "--out", path]);
  expect([code, stdout.includes(`written to ${path}`)]).toEqual([0, true]);
  const filed = JSON.parse(readFileSync(path, "utf8")) as LossComparison & Record<string, unknown>;
  const json = await run([...line, "--search", "1", "--words", "8", "--json"]);
  const { models, ...comparison } = JSON.parse(json.stdout) as LossComparison;
  expect(filed).toMatchObject(comparison);
  expect(filed.models.map(({ bits }) => bits)).toEqual(models.map(({ bits }) => bits));
  expect(Object.keys(filed)).toEqual(
    expect.arrayContaining(["reportedBy", "commit", "date", "machine", "packageVersion"]),
  );
});

describe("a mistake is one message, and nothing is written", () => {
  test.each<[number, string, (figure: string) => string[]]>([
    [2, "--at and --search exclude each other", () => ["--at", "3", "--search", "2"]],
    [2, "--at 4000: the test split has words 1 to 41", (figure) => ["--at", "4000", "--figure", figure]],
    [2, "figures are SVG files", () => ["--figure", "where.png"]],
    [2, "--at: expected an integer of at least 1", () => ["--at", "0"]],
  ])("exits %i: %s", async (code, message, more) => {
    const figure = join(emptyFolder(), "x.svg");
    const ended = await run([...line, ...more(figure)]);
    expect(ended.stderr).toContain(message);
    expect([ended.code, ended.stdout, existsSync(figure)]).toEqual([code, "", false]);
  });
});

test("strips have the rows of a line together", () => {
  const strips = [
    { label: "one", values: [0, 1, 2, 4], most: 4 },
    { label: "difference", values: [-1, 0, 1, 0.5], most: 1 },
  ];
  const words = ["aa", "b", "ccc", "dd"];
  expect(drawStrips(words, strips, { color: false, columns: 24 }).split("\n")).toEqual([
    "              aa b ccc",
    "  one            ▃ ▅▅▅",
    "  difference  ▓▓   ███",
    "",
    "              dd",
    "  one         ██",
    "  difference  ▅▅",
  ]);
  expect(drawStrips(words, strips, { color: true, columns: 80 }).split("\n")).toHaveLength(2);
});

test("a figure of words that are markup is still a figure", async () => {
  const passage = {
    title: "from word 1",
    words: ["<unk>", "&", "a".repeat(300)],
    values: [[1, 2, 3] as number[], [0, 0, 0] as number[]] as const,
    difference: [1, 2, 3],
  };
  const svg = await drawWords({
    ...{ title: "t", rows: ["a", "b", "c"], scales: ["x", "y"], passages: [passage], width: 200 },
  });
  expect(svg).toContain("&lt;unk&gt;");
  expect(svg).not.toContain("NaN");
});
