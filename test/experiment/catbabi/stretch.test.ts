/** The stretch suite's score: against answers given one word at a time, and its numbers by hand. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { stretchAxes } from "../../../src/babi/generator/suite.ts";
import { calibrationOf, judged } from "../../../src/experiment/catbabi/calibration.ts";
import { isStretch } from "../../../src/experiment/catbabi/options.ts";
import { showStretch, stretchSection } from "../../../src/experiment/catbabi/presentStretch.ts";
import type { CatbabiSettings } from "../../../src/experiment/catbabi/settings.ts";
import { evaluateStretch } from "../../../src/experiment/catbabi/stretch.ts";
import type { SavedModel } from "../../../src/experiment/kind.ts";
import { loadSaved } from "../../../src/experiment/savedModel.ts";
import { loadModel } from "../../../src/inference/load.ts";
import { run } from "../../cli/support.ts";
import { emptyFolder } from "../../data/support/tiny.ts";
import { trainSmall } from "../../inference/trained.ts";

let folder: string;
let trained: string;

beforeAll(async () => {
  folder = emptyFolder();
  trained = await trainSmall(folder);
});

test("accuracy, confidence and calibration error are those of the definition", () => {
  const answers = [
    { correct: true, confidence: 0.95 },
    { correct: false, confidence: 0.91 },
    { correct: true, confidence: 0.55 },
    { correct: false, confidence: 0.12 },
    { correct: true, confidence: 1 },
  ];
  const { calibrationError, ...score } = judged(answers);
  expect(score).toEqual({ questions: 5, correct: 3, accuracy: 0.6, confidence: 3.53 / 5 });
  // Bins: 0.9 to 1 (two of three right, confidence 2.86), 0.5 to 0.6 (one right), 0.1 to 0.2 (none right).
  expect(calibrationError).toBeCloseTo((Math.abs(2 - 2.86) + Math.abs(1 - 0.55) + 0.12) / 5, 12);
});

test("right and wrong answers have their own median and share above 90 %", () => {
  const right = [0.95, 0.85, 0.99].map((confidence) => ({ correct: true, confidence }));
  const wrong = [0.3, 0.92].map((confidence) => ({ correct: false, confidence }));
  const { right: sure, wrong: mistaken, confidence } = calibrationOf([...right, ...wrong])!;
  expect(sure).toEqual({ answers: 3, median: 0.95, above90: 2 });
  expect(mistaken).toEqual({ answers: 2, median: 0.61, above90: 1 });
  expect(confidence).toBeCloseTo((0.95 + 0.85 + 0.99 + 0.3 + 0.92) / 5, 12);
  expect(calibrationOf(right)!.wrong).toEqual({ answers: 0, median: null, above90: 0 });
  expect(calibrationOf([])).toBeUndefined();
});

test("a card names the first point of an axis below 90 %, or says that there is none", () => {
  const filed = JSON.parse(
    readFileSync(join(import.meta.dirname, "../../../results/stretch-catbabi-qa.json"), "utf8"),
  ) as { score: Parameters<typeof stretchSection>[0] };
  const card = (beyond20: number): string => {
    const { axes, points, ...all } = filed.score;
    const [axis] = axes;
    const of = points.filter((point) => point.axis === axis!.name);
    const changed = of.map((point, i) => ({ ...point, accuracy: i < 2 ? 1 : beyond20 }));
    return stretchSection({ ...all, axes: [axis!], points: changed });
  };
  expect(card(0.6)).toMatch(/below 90 %:\n\n- sentences back to the fact, 40: right 60\.00% [^\n]+\n\n\|/);
  expect(card(0.9)).toMatch(/questions\. No point is below 90 %[^\n]+\n\n\|/);
});

describe("a model", () => {
  test("has the confidence that it has when it is asked word by word", async () => {
    const saved = (await loadSaved(trained)) as unknown as SavedModel<CatbabiSettings>;
    const axis = { ...stretchAxes.find(({ name }) => name === "counted")!, points: [2], stories: 6 };
    const evaluation = await evaluateStretch(saved, { batch: 1 }, { env: {}, threads: 1 }, [axis]);
    const model = await loadModel(trained, { threads: 1 });
    const stream = model.stream();
    const answers = [];
    for (let index = 0; index < axis.stories; index++) {
      await stream.newStory();
      for (const line of axis.story(2, index).lines) {
        if (line.kind === "statement") await stream.read([...line.words, "."]);
        else {
          const { answers: given } = await stream.ask([...line.words, "?"]);
          answers.push({ correct: given[0]!.word === line.answer, confidence: given[0]!.probability });
          await stream.tell(line.answer);
        }
      }
    }
    await model.release();
    const expected = judged(answers);
    expect(evaluation.points[0]!.correct).toBe(expected.correct);
    // Windows and single steps add up in another order.
    expect(evaluation.points[0]!.confidence).toBeCloseTo(expected.confidence, 5);
    expect(evaluation.questions).toBe(6);
  });

  test("is scored by the command, as a table of 80 columns, as JSON and as a result file", async () => {
    const path = join(folder, "results", "stretch.json");
    const argv = ["eval", trained, "--suite", "stretch", "--batch", "200", "--threads", "1", "--json"];
    const { code, stdout } = await run([...argv, "--out", path]);
    expect(code).toBe(0);
    const score = JSON.parse(stdout) as Parameters<typeof showStretch>[0];
    expect(isStretch(score)).toBe(true);
    expect(score.points).toHaveLength(stretchAxes.reduce((sum, { points }) => sum + points.length, 0));
    expect(score.points.reduce((sum, { questions }) => sum + questions, 0)).toBe(score.questions);
    for (const line of showStretch({ ...score, model: "m" }).split("\n")) {
      expect(line.length).toBeLessThanOrEqual(80);
    }
    const file = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    expect(file).toMatchObject({ experiment: "catbabi-qa-fwm", score: { model: "small", suite: "stretch" } });
    expect(Object.keys(file)).toEqual(
      expect.arrayContaining(["reportedBy", "date", "commit", "packageVersion", "machine"]),
    );
  });

  test.each(["report", "package"])("%s, which is about a split, does not offer it", async (name) => {
    const { code, stderr } = await run([name, trained, "--suite", "stretch", "--out", join(folder, name)]);
    expect(code).toBe(2);
    expect(stderr).toContain("--suite");
  });

  test.each([
    ["--split", "test"],
    ["--state", "zero"],
  ])("%s has no meaning with it", async (option, value) => {
    const { code, stderr } = await run(["eval", trained, "--suite", "stretch", option, value]);
    expect(code).toBe(2);
    expect(stderr).toContain(`${option}: not with --suite`);
  });
});
