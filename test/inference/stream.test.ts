/** Streams: words go through the model one by one, and what comes out is what the model's equations say. */
import { afterAll, describe, expect, test } from "vitest";
import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { UsageError } from "../../src/errors.ts";
import { input, state, stateAttrs, type Tensor } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { type FwmModel, modelFromBytes } from "../../src/inference/model.ts";
import { UnknownWordError, wordsOf } from "../../src/inference/text.ts";
import { buildSystem } from "../../src/model/registry.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose } from "../support/check.ts";
import { modelBytes, smallFwm, smallLstm, weightsOf } from "./support.ts";

const models: FwmModel[] = [];
function model(system = smallFwm, seed = 1): FwmModel {
  const made = modelFromBytes(modelBytes(system, seed), { runtime: nodeRuntime });
  models.push(made);
  return made;
}
afterAll(async () => {
  for (const made of models) await made.release();
});

const story = "Gertrude is a mouse. Mice are afraid of wolves.";
const question = "What is gertrude afraid of?";

/** The step of the model in the oracle over a list of words: everything it says at each. */
function oracle(words: readonly string[], system = smallFwm) {
  const built = buildSystem(system);
  const given = new Map<Tensor, Value>();
  const weights = weightsOf(system);
  for (const tensor of built.parameters) {
    const { name, shape } = stateAttrs(tensor)!;
    given.set(tensor, { shape, data: Float64Array.from(weights[name]!.data as Float32Array) });
  }
  let before: Value[] = built.recurrent.map(({ shape }) => ({
    shape: shape(1),
    data: new Float64Array(shape(1).reduce((a, b) => a * b)),
  }));
  return words.map((word) => {
    const states = built.recurrent.map(({ name, shape }) => state(name, shape(1)));
    const tokens = input("tokens", [1], "i32");
    const step = built.step(tokens, states);
    const names = Object.keys(step.trace);
    const values = interpret(
      [step.logits, ...step.state, ...names.map((name) => step.trace[name]!)],
      new Map([
        ...given,
        [tokens, { shape: [1], data: Float64Array.of(catbabiVocabulary.id(word)!) }],
        ...states.map((tensor, i) => [tensor, before[i]!] as const),
      ]),
    );
    before = values.slice(1, 1 + states.length);
    const trace = Object.fromEntries(names.map((name, i) => [name, values[1 + states.length + i]!.data]));
    return { logits: values[0]!.data, F: before[2]!.data, trace };
  });
}

const dot = (a: Float64Array, b: Float64Array) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);

function softmax(logits: Float64Array): Float64Array {
  const shares = logits.map((x) => Math.exp(x - Math.max(...logits)));
  return shares.map((x) => x / shares.reduce((a, b) => a + b));
}

describe("a stream", () => {
  const words = ["<eos>", ...wordsOf(story), ...wordsOf(question)];

  test("answers with the probabilities of the model's equations", async () => {
    const stream = model().stream();
    await stream.read(story);
    const { answers, trace } = await stream.ask(question, { top: 200 });
    const want = softmax(oracle(words).at(-1)!.logits);
    expect(answers.map(({ probability }) => probability)).toEqual(
      answers.map(({ probability }) => probability).toSorted((a, b) => b - a),
    );
    const got = answers.toSorted((a, b) => catbabiVocabulary.id(a.word)! - catbabiVocabulary.id(b.word)!);
    // 18 steps in float32.
    expectClose(
      got.map(({ probability }) => probability),
      want,
      { rtol: 1e-4, atol: 1e-7 },
    );
    expect(trace.words).toEqual(words);
  });

  test("traces the inner products of each read with each word's keys", async () => {
    const stream = model().stream();
    await stream.read(story);
    const { trace } = await stream.ask(question);
    const steps = oracle(words);
    const { F, trace: asked } = steps.at(-1)!;
    const D = 5;
    let n = asked.n0!;
    for (let read = 1; read <= 3; read++) {
      const e = asked[`e${read}`]!;
      const want = steps.map(({ trace: { k1, k2 } }) => dot(k1!, n) * dot(k2!, e));
      expectClose(trace.rows[read - 1]!.values, want, { rtol: 1e-3, atol: 1e-4, label: `read ${read}` });
      // n^(i) = LN(F vec(n ⊗ e)), spelled out.
      const value = Float64Array.from({ length: D }, (_, c) => {
        let sum = 0;
        for (let i = 0; i < D; i++)
          for (let j = 0; j < D; j++) sum += n[i]! * e[j]! * F[(i * D + j) * D + c]!;
        return sum;
      });
      const mean = value.reduce((a, b) => a + b) / D;
      const variance = value.reduce((a, x) => a + (x - mean) ** 2, 0) / D;
      n = value.map((x) => (x - mean) / Math.sqrt(variance + 1e-5));
    }
  });

  test("takes numbers and words as well as text", async () => {
    const [a, b, c] = [model().stream(), model().stream(), model().stream()];
    await a.read(story);
    await b.read(wordsOf(story));
    await c.read(catbabiVocabulary.encode(wordsOf(story)));
    const replies = [await a.ask(question), await b.ask(wordsOf(question)), await c.ask(question)];
    expect(replies[1]).toEqual(replies[0]);
    expect(replies[2]).toEqual(replies[0]);
  });

  test("goes on with its own answer unless another is told", async () => {
    const shared = model();
    const [silent, own, other] = [shared.stream(), shared.stream(), shared.stream()];
    const best = (await silent.ask(question)).answers[0]!.word;
    await own.ask(question);
    await own.tell(best);
    await other.ask(question);
    await other.tell(best === "wolf" ? "cat" : "wolf");
    const [a, b, c] = [await silent.ask(question), await own.ask(question), await other.ask(question)];
    expect(a.trace.words).toEqual(["<eos>", ...wordsOf(question), best, ...wordsOf(question)]);
    expect(b).toEqual(a);
    expect(c.answers).not.toEqual(a.answers);
    await expect(shared.stream().tell("wolf")).rejects.toThrow("no question is waiting");
  });

  test("can be kept, copied, put back and reset", async () => {
    const stream = model().stream();
    await stream.read(story);
    const kept = await stream.snapshot();
    const copy = await stream.clone();
    const first = await stream.ask(question);
    await stream.read("Winona is a sheep.");
    expect((await stream.ask(question)).answers).not.toEqual(first.answers);
    expect(await copy.ask(question)).toEqual(first);
    await stream.restore(kept);
    expect(await stream.ask(question)).toEqual(first);
    await stream.reset();
    await stream.read(story);
    expect(await stream.ask(question)).toEqual(first);
  });

  test("an answer told to a copy is not lost when the copy begins to run", async () => {
    const stream = model().stream();
    await stream.ask(question);
    const copy = await stream.clone();
    await copy.tell("wolf");
    expect((await copy.ask(question)).trace.words).toContain("wolf");
  });

  test("a new story begins with <eos>, and the memory stays", async () => {
    const shared = model();
    const [going, fresh] = [shared.stream(), shared.stream()];
    await going.read(story);
    await going.newStory();
    const [a, b] = [await going.ask(question), await fresh.ask(question)];
    expect(a.trace.words.filter((word) => word === "<eos>")).toHaveLength(2);
    expect(a.answers).not.toEqual(b.answers);
  });

  test("looks back no further than its window", async () => {
    const stream = model().stream({ window: 7 });
    await stream.read(story);
    const { trace } = await stream.ask(question);
    expect(trace.words).toEqual(words.slice(-7));
    expect(trace.rows.map(({ values }) => values.length)).toEqual([7, 7, 7]);
  });

  test("calls made at once follow each other", async () => {
    const shared = model();
    const [once, later] = [shared.stream(), shared.stream()];
    const [, reply] = await Promise.all([once.read(story), once.ask(question)]);
    await later.read(story);
    expect(reply).toEqual(await later.ask(question));
  });

  test("a system without a memory answers and has no reads", async () => {
    const stream = model(smallLstm).stream();
    const { answers, trace } = await stream.ask(question, { top: 2 });
    expect(answers).toHaveLength(2);
    expect(trace).toEqual({ words: ["<eos>", ...wordsOf(question)], rows: [] });
  });

  test("concatenated keys are traced too", async () => {
    const system = { ...smallFwm, keys: "concat" as const };
    const stream = model(system).stream();
    const { trace } = await stream.ask(question);
    const steps = oracle(["<eos>", ...wordsOf(question)], system);
    const { n0, e1 } = steps.at(-1)!.trace;
    const want = steps.map(({ trace: { k1, k2 } }) => dot(k1!, n0!) + dot(k2!, e1!));
    expectClose(trace.rows[0]!.values, want, { rtol: 1e-3, atol: 1e-5 });
  });
});

describe("many streams at once", () => {
  test("each row is as if it were alone, whatever the others read", async () => {
    const shared = model();
    const texts = [story, "Winona is a sheep.", undefined, "Mary went to the kitchen."];
    const together = shared.streams(4);
    await together.read(texts);
    await together.newStory(3);
    await together.read([undefined, story, undefined, story]);
    const replies = await together.ask([question, undefined, question, question]);
    expect(replies[1]).toBeUndefined();
    for (const row of [0, 2, 3]) {
      const alone = shared.stream();
      if (texts[row] !== undefined) await alone.read(texts[row]);
      if (row === 3) {
        await alone.newStory();
        await alone.read(story);
      }
      const want = await alone.ask(question);
      expect(replies[row]!.trace.words).toEqual(want.trace.words);
      // A product over more rows may add in another order.
      expectClose(
        replies[row]!.answers.map(({ probability }) => probability),
        want.answers.map(({ probability }) => probability),
        { rtol: 1e-4, atol: 1e-7, label: `row ${row}` },
      );
    }
    // A row moves to a stream of its own and back.
    const alone = shared.stream();
    await alone.restore(await together.snapshot(1));
    const want = await alone.ask(question);
    const [, got] = await together.ask([undefined, question, undefined, undefined]);
    expect(got!.answers.map(({ word }) => word)).toEqual(want.answers.map(({ word }) => word));
    await together.reset();
    const [fresh] = await together.ask([question, undefined, undefined, undefined]);
    expect(fresh!.trace.words).toEqual(["<eos>", ...wordsOf(question)]);
  });

  test("calls that are not awaited follow each other too", async () => {
    const [hasty, patient] = [model().stream(), model().stream()];
    const [first, second, question] = [
      "mary went to the garden .",
      "john went to the office .",
      "where is mary ?",
    ];
    const calls = [
      hasty.read(first),
      hasty.newStory(),
      hasty.read(second),
      hasty.ask(question),
      hasty.tell("office"),
    ];
    await Promise.all(calls);
    await patient.read(first);
    await patient.newStory();
    await patient.read(second);
    await patient.ask(question);
    await patient.tell("office");
    const { trace } = await patient.ask(question);
    expect((await hasty.ask(question)).trace.words).toEqual(trace.words);
    expect(trace.words.filter((word) => word === "<eos>")).toHaveLength(2);
  });

  test("must be given a text each, and rows that exist", async () => {
    const streams = model().streams(2);
    await expect(streams.read(["."])).rejects.toThrow("1 texts given for 2 streams");
    await expect(streams.newStory(2)).rejects.toThrow("there is no row 2");
    expect(() => model().streams(0)).toThrow("at least 1");
  });
});

describe("what cannot be read", () => {
  test("every unknown word is named with the nearest known ones, and nothing is read", async () => {
    const stream = model().stream();
    const before = await stream.snapshot();
    const attempt = () => stream.read("Mary went to the kitchn and the xylophone.");
    await expect(attempt).rejects.toThrow(UnknownWordError);
    await expect(attempt).rejects.toThrow(/"kitchn", "xylophone"[\s\S]*kitchn +nearest: kitchen/);
    await expect(attempt).rejects.toThrow(UsageError);
    expect(await stream.snapshot()).toEqual(before);
  });

  test("marks are no words, and a question ends in a question mark", async () => {
    const stream = model().stream();
    await expect(() => stream.read("<eos>")).rejects.toThrow('does not know "<eos>"');
    await expect(() => stream.ask("Where is mary")).rejects.toThrow('a question ends in "?"');
    await expect(() => stream.read(Int32Array.of(200))).rejects.toThrow("no word has number 200");
  });

  test("a released model says so", async () => {
    const gone = model();
    const stream = gone.stream();
    await stream.read(story);
    await gone.release();
    await expect(stream.read(story)).rejects.toThrow("the model was released");
  });
});

describe("files that do not make a model", () => {
  const good = modelBytes(smallFwm);
  const make = (change: object) => () =>
    modelFromBytes({ ...good, ...change }, { runtime: nodeRuntime, name: "m" });
  test.each([
    ["a config of another kind", { config: '{"format":"other"}' }, "m/config.json: not a model"],
    ["a config that is no JSON", { config: "{" }, "m/config.json: not valid JSON"],
    ["weights cut short", { safetensors: good.safetensors.subarray(0, 999) }, "m/model.safetensors"],
    [
      "weights of another size",
      { safetensors: encodeOther() },
      'm/model.safetensors: the tensor "embedding" does not fit',
    ],
    ["too few words", { vocab: '["<pad>","<eos>"]' }, "m/vocab.json: the vocabulary does not fit"],
    ["words that are none", { vocab: "[1,2]" }, "m/vocab.json: expected a list of words"],
  ])("%s", (_, change, message) => {
    expect(make(change)).toThrow(message);
  });

  function encodeOther(): Uint8Array {
    return modelBytes({ ...smallFwm, embedding: 13 }).safetensors;
  }
});

test("words are lower case, with the marks apart", () => {
  expect(wordsOf("Mary went  to the\tkitchen.Where is Mary?")).toEqual(
    "mary went to the kitchen . where is mary ?".split(" "),
  );
  expect(wordsOf("")).toEqual([]);
});
