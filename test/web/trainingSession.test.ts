/** Training as the playground does it, in Node: it learns, resumes to the bit, and its folder is a model folder. */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { loadModel } from "../../src/inference/load.ts";
import { traceStory } from "../../src/inference/storyTrace.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { encodeSafetensors } from "../../src/store/safetensors.ts";
import {
  type Choices,
  choicesFrom,
  choicesTo,
  defaultChoices,
  sameChoices,
} from "../../web/playground/choices.ts";
import { folderOf, readFolder } from "../../web/playground/folder.ts";
import { choicesOf, settingsOf } from "../../web/playground/settings.ts";
import { TrainingSession } from "../../web/playground/trainingSession.ts";

const options = { runtime: nodeRuntime, threads: 1 };
const small: Choices = {
  ...defaultChoices,
  ...{ tasks: "1", hidden: 8, memory: 4, reads: 2, batch: 4, window: 20, steps: 20 },
};

const sessions: TrainingSession[] = [];
function session(choices: Choices): TrainingSession {
  const made = new TrainingSession(choices, options);
  sessions.push(made);
  return made;
}

afterAll(async () => {
  for (const each of sessions) await each.release();
});

describe("choices", () => {
  test("an address says only what is not as by default, and gives the same back", () => {
    expect(Object.values(choicesTo(defaultChoices)).every((value) => value === undefined)).toBe(true);
    const changed = { ...defaultChoices, tasks: "1-3,15", rate: 0.002, lstm: false };
    const address = Object.fromEntries(
      Object.entries(choicesTo(changed)).filter(([, value]) => value !== undefined),
    );
    expect(Object.keys(address).sort()).toEqual(["lstm", "rate", "tasks"]);
    expect(sameChoices(choicesFrom(address), changed)).toBe(true);
  });

  test.each([
    ["hidden", "100000"],
    ["hidden", "12.5"],
    ["memory", "-1"],
    ["reads", ""],
    ["rate", "NaN"],
    ["tasks", "21"],
    ["tasks", "<script>"],
    ["seed", "1e99"],
  ])("%s=%s in an address is as by default", (name, value) => {
    expect(choicesFrom({ [name]: value })).toEqual(defaultChoices);
  });

  test("a saved model's settings stand for the choices it was trained with", () => {
    const choices = { ...small, lstm: false };
    expect(choicesOf(settingsOf(choices, "fwm"))).toEqual(choices);
    expect(choicesOf(settingsOf(choices, "lstm"))).toBeUndefined();
    const { system, ...rest } = settingsOf(choices, "fwm");
    expect(choicesOf({ ...rest, system: { ...system, variant: "paper" } as typeof system })).toBeUndefined();
  });
});

describe("training", () => {
  test("a checkpoint resumes to the bit, curves and stories included", async () => {
    const whole = session(small);
    await whole.evaluate();
    for (let i = 0; i < 3; i++) await whole.train();
    const halfway = whole.checkpoint();
    await whole.evaluate();
    for (let i = 0; i < 3; i++) await whole.train();

    const resumed = TrainingSession.resume(halfway, options);
    sessions.push(resumed);
    expect([resumed.step, resumed.systems]).toEqual([3, ["fwm", "lstm"]]);
    expect(resumed.curve("fwm")).toHaveLength(1);
    await resumed.evaluate();
    for (let i = 0; i < 3; i++) await resumed.train();
    for (const system of ["fwm", "lstm"] as const) {
      expect(encodeSafetensors(resumed.weights(system))).toEqual(encodeSafetensors(whole.weights(system)));
      const scores = (of: TrainingSession) =>
        of.curve(system).map(({ step, accuracy, tasks }) => [step, accuracy, tasks]);
      expect(scores(resumed)).toEqual(scores(whole));
    }
  });

  test("what is no checkpoint of this version is refused", () => {
    const other = encodeSafetensors({}, { playground: '{"version":2}' });
    expect(() => TrainingSession.resume(other, options)).toThrow("not of this version");
    expect(() => TrainingSession.resume(new Uint8Array(20), options)).toThrow("the saved checkpoint");
  });

  test("a memory learns single facts", { timeout: 120_000 }, async () => {
    const learning = session({
      ...small,
      ...{ hidden: 24, memory: 8, reads: 1, batch: 16, window: 50, steps: 150, rate: 0.01, lstm: false },
    });
    await learning.evaluate();
    for (let i = 0; i < 100; i++) await learning.train();
    await learning.evaluate();
    const [before, after] = learning.curve("fwm");
    // One place in six would be a sixth.
    expect(before!.accuracy).toBeLessThan(0.2);
    expect(after!.accuracy).toBeGreaterThan(0.3);
    expect(after!.trainLoss).toBeGreaterThan(0);
  });
});

describe("a model folder", () => {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "fwm-playground-")));
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  test("is loaded by the library, manifest checked, and answers as the session's weights do", async () => {
    const trained = session(small);
    for (let i = 0; i < 2; i++) await trained.train();
    const files = await folderOf(trained, "fwm");
    expect(Object.keys(files).sort()).toEqual([
      "config.json",
      "manifest.json",
      "model.safetensors",
      "vocab.json",
    ]);
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(place, name), bytes);
    const model = await loadModel(place);
    expect(model.verified).toBe(true);
    const { questions } = await traceStory(model, "mary went to the kitchen .\nwhere is mary ?");
    expect(questions[0]!.answers).toHaveLength(5);
    await model.release();
  });

  test("goes back into training with its sizes and weights", async () => {
    const trained = session(small);
    await trained.train();
    const { choices, weights } = readFolder(await folderOf(trained, "fwm"));
    expect(choices).toEqual({ ...small, lstm: false });
    const again = session(choices);
    again.init("fwm", weights, "model.safetensors");
    expect(encodeSafetensors(again.weights("fwm"))).toEqual(encodeSafetensors(trained.weights("fwm")));
    await again.train();
    expect(again.step).toBe(1);
  });

  test("that lacks a file, or is of something else, is refused with what to do", async () => {
    const trained = session(small);
    const { "config.json": config, ...rest } = await folderOf(trained, "fwm");
    expect(() => readFolder(rest)).toThrow("config.json is missing");
    const lstm = await folderOf(trained, "lstm");
    expect(() => readFolder(lstm)).toThrow("cannot be trained here");
    expect(() => readFolder({ ...lstm, "config.json": config! })).toThrow("model.safetensors");
  });
});
