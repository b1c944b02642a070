/** A story's trace against the stream that answers it, and the memory along it against the fast weights themselves. */
import { afterAll, describe, expect, test } from "vitest";
import { type FwmModel, modelFromBytes } from "../../src/inference/model.ts";
import { StoryMemory } from "../../src/inference/storyMemory.ts";
import { type StoryTrace, traceStory } from "../../src/inference/storyTrace.ts";
import type { Answer } from "../../src/inference/stream.ts";
import { retrieve } from "../../src/model/fwmTrace.ts";
import type { SystemSettings } from "../../src/model/registry.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { expectClose } from "../support/check.ts";
import { modelBytes, smallFwm, smallLstm } from "./support.ts";

const text = "mary went to the kitchen . john moved to the garden . where is mary ?";

/** A stream reads the words of a call in chunks, a trace one by one: the same equations in another order. */
const rounding = { rtol: 1e-4, atol: 1e-6 };

function expectSame(got: readonly Answer[], want: readonly Answer[]): void {
  expect(got.map(({ word }) => word)).toEqual(want.map(({ word }) => word));
  const shares = (of: readonly Answer[]) => of.map(({ probability }) => probability);
  expectClose(shares(got), shares(want), rounding);
}

const models: FwmModel[] = [];
function modelOf(system: SystemSettings): FwmModel {
  const model = modelFromBytes(modelBytes(system), { runtime: nodeRuntime });
  models.push(model);
  return model;
}

afterAll(async () => {
  for (const model of models) await model.release();
});

test("answers and reads are those of a stream", async () => {
  const model = modelOf(smallFwm);
  const trace = await traceStory(model, text, { top: 3 });
  const stream = model.stream();
  const { answers, trace: asked } = await stream.ask(text, { top: 3 });
  const [question] = trace.questions;
  expect(trace.tokens.map(({ word }) => word)).toEqual(asked.words);
  expect(trace.shows).toBe("reads");
  expect(question).toMatchObject({ given: null, at: 16, from: 13, question: "where is mary ?" });
  expectSame(question!.answers, answers);
  expect(question!.rows.map(({ name }) => name)).toEqual(["read 1", "read 2", "read 3"]);
  for (const [i, row] of question!.rows.entries()) {
    expectClose(row.values, asked.rows[i]!.values, rounding);
  }
  // It goes over a wire as it is.
  expect(JSON.parse(JSON.stringify(trace))).toEqual(trace);
});

test("after a question the story goes on with the answer it gives, or with the model's own", async () => {
  const model = modelOf(smallFwm);
  const lines = ["Mary went to the kitchen.", "Where is Mary?\tkitchen", "where is john", "Where is Mary?"];
  const { tokens, questions } = await traceStory(model, lines.join("\n"), { top: 200 });
  const stream = model.stream();
  await stream.read(lines[0]!);
  const first = await stream.ask(lines[1]!.split("\t")[0]!, { top: 200 });
  await stream.tell("kitchen");
  const second = await stream.ask("where is john ?");
  const third = await stream.ask(lines[3]!);
  for (const [i, { answers }] of [first, second, third].entries()) {
    expectSame([questions[i]!.answers[0]!], [answers[0]!]);
  }
  expectSame([questions[0]!.given!], [first.answers.find(({ word }) => word === "kitchen")!]);
  const told = tokens.filter(({ answer }) => answer !== null);
  expect(told.map(({ word, answer, line }) => [word, answer, line])).toEqual([
    ["kitchen", "given", 1],
    [second.answers[0]!.word, "own", 2],
  ]);
  expect(tokens.at(-1)).toMatchObject({ word: "?", line: 3 });
});

test("a system without a memory has no writes", async () => {
  const trace = await traceStory(modelOf(smallLstm), text);
  expect(trace.writes).toBeUndefined();
  expect(trace.shows).toBe("nothing");
  expect(trace.questions[0]!.rows).toEqual([]);
  expect(trace.tokens.every(({ beta, norm }) => beta === null && norm === null)).toBe(true);
});

test("unknown words, an empty story and one without end are refused", async () => {
  const model = modelOf(smallLstm);
  await expect(traceStory(model, "mary went to the kitchn .")).rejects.toThrow('"kitchn"');
  await expect(traceStory(model, " ")).rejects.toThrow("no words");
  await expect(traceStory(model, "mary ".repeat(1001))).rejects.toThrow("1003 words");
});

describe.each([
  ["released", smallFwm],
  ["the paper's writes of strength 1", { ...smallFwm, variant: "paper" }],
  ["concatenated keys", { ...smallFwm, variant: "paper", keys: "concat" }],
] as [string, SystemSettings & { memory: number }][])("the memory along a story: %s", (_, system) => {
  let trace: StoryTrace;
  let memory: StoryMemory;
  const weights: Float32Array[] = [];

  test("every word's norm is that of the fast weights", async () => {
    const model = modelOf(system);
    trace = await traceStory(model, text);
    memory = new StoryMemory(trace.writes!);
    const program = await model.program(1);
    for (const { word } of trace.tokens) {
      await program.run({ tokens: [model.vocabulary.id(word)!] });
      weights.push((program.state.get("F").data as Float32Array).slice());
    }
    expectClose(
      memory.norm,
      weights.map((F) => Math.hypot(...F)),
      { rtol: 1e-4, atol: 1e-6 },
    );
    expect(trace.tokens.map(({ norm }) => norm)).toEqual([...memory.norm]);
    expect(memory.strength.every((beta) => beta > 0 && beta < 1)).toBe(true);
  });

  test("what a pair of words retrieves is what the fast weights give", () => {
    const { k1, k2, keys } = trace.writes!;
    for (const [first, second, t] of [
      [1, 1, 4],
      [3, 5, 12],
      [16, 2, 16],
    ] as const) {
      const F = { valueSize: system.memory, keys, weights: weights[t]! };
      const want = retrieve(F, k1[first]!, k2[second]!);
      expectClose(memory.retrieve(first, second, t).value, want, { rtol: 1e-3, atol: 1e-6 });
    }
  });

  test("overlap is a cosine, and shares only fade", () => {
    expect(memory.overlap(4, 4)).toBeCloseTo(1, 10);
    expect(memory.overlap(2, 9)).toBe(memory.overlap(9, 2));
    expect(Math.abs(memory.overlap(2, 9))).toBeLessThanOrEqual(1);
    for (let t = 4; t < memory.size; t++)
      expect(memory.share(3, t)).toBeLessThanOrEqual(memory.share(3, t - 1));
    expect(memory.share(9, 3)).toBe(0);
    const { match, norm, value } = memory.retrieve(3, 3, 7);
    expect(match).toHaveLength(8);
    expect(match.every((each) => Math.abs(each) <= 1 + 1e-9)).toBe(true);
    expect(norm).toBeCloseTo(Math.hypot(...value), 12);
    // A word's own pair of keys is one of the pairs.
    expect(memory.kept(7)[3]).toBeCloseTo(match[3]!, 12);
    expect(memory.overlaps()[9]![2]).toBe(memory.overlap(9, 2));
  });
});
