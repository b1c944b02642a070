/** What is read in chunks of tokens is what is read word by word, for every system. */
import { afterAll, describe, expect, test } from "vitest";
import { catbabiVocabulary, Vocabulary } from "../../src/data/vocabulary.ts";
import { stateAttrs } from "../../src/graph/index.ts";
import { FwmModel } from "../../src/inference/model.ts";
import type { StreamSnapshot, Streams } from "../../src/inference/stream.ts";
import { buildSystem, type SystemSettings } from "../../src/model/registry.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import { State } from "../../src/runtime/state.ts";
import { expectClose } from "../support/check.ts";
import { drawnModel, smallSystems } from "../support/systems.ts";
import { smallFwm } from "./support.ts";

const models: FwmModel[] = [];
afterAll(async () => {
  for (const model of models) await model.release();
});

/** A model over weights that are given, and the lengths of its programs' token inputs, run by run. */
function modelOf(
  system: SystemSettings,
  vocabulary: Vocabulary,
  weights: ReadonlyMap<string, Float32Array>,
): { model: FwmModel; runs: number[] } {
  const runs: number[] = [];
  const runtime: Runtime = {
    name: "watched",
    async createSession(bytes, options) {
      const session = await nodeRuntime.createSession(bytes, options);
      return {
        run(feeds, into) {
          runs.push(feeds.get("tokens")!.data.length);
          return session.run(feeds, into);
        },
        release: () => session.release(),
      };
    },
  };
  const config = {
    format: "fwm-model",
    version: 2,
    kind: "catbabi",
    experiment: "test",
    settings: {},
    system,
  } as const;
  const model = new FwmModel(config, vocabulary, buildSystem(system), weights, { runtime });
  models.push(model);
  return { model, runs };
}

const words = ["<pad>", "<eos>", ".", "?", "a", "b", "c", "d", "e", "f", "g"];

/** A small model of a system. */
function small(settings: SystemSettings): { model: FwmModel; runs: number[] } {
  const drawn = [...drawnModel(settings).weights].map(
    ([tensor, { data }]) => [stateAttrs(tensor)!.name, Float32Array.from(data)] as const,
  );
  return modelOf(settings, new Vocabulary(words), new Map(drawn));
}

/** So many words, other ones for other seeds. */
const text = (length: number, seed: number): string[] =>
  Array.from({ length }, (_, i) => words[4 + ((i * i + 3 * i + seed) % 7)]!);

/** Reads texts in single calls, or one word per call. */
async function read(streams: Streams, texts: readonly (string[] | undefined)[], bySingle: boolean) {
  if (!bySingle) return streams.read(texts);
  const longest = Math.max(...texts.map((one) => one?.length ?? 0));
  for (let t = 0; t < longest; t++) {
    await streams.read(texts.map((one) => (one && t < one.length ? [one[t]!] : undefined)));
  }
}

/** Float32 in two orders of summation, over some forty tokens, against the largest entry. */
function near(got: ArrayLike<number>, want: ArrayLike<number>, label: string): void {
  const largest = Array.from(want).reduce((most, x) => Math.max(most, Math.abs(x)), 1e-3);
  expectClose(got, Float64Array.from(want), { rtol: 0, atol: 3e-4 * largest, label });
}

function expectSame(got: StreamSnapshot, want: StreamSnapshot): void {
  for (const [name, values] of want.state) near(got.state.get(name)!, values, name);
  expect(got.history.map(({ word }) => word)).toEqual(want.history.map(({ word }) => word));
  got.history.forEach(({ vectors }, i) => {
    for (const [name, values] of Object.entries(want.history[i]!.vectors)) {
      near(vectors[name]!, values, `${name} of word ${i}`);
    }
  });
  expect([got.pending, got.inStory]).toEqual([want.pending, want.inStory]);
}

describe.each(Object.entries(smallSystems))("%s", (_, settings) => {
  test("texts of any lengths side by side give what their words give one by one", async () => {
    const { model, runs } = small(settings);
    const [whole, single] = [model.streams(3), model.streams(3)];
    const calls = [
      [text(6, 1), text(2, 2), undefined],
      [undefined, text(41, 3), text(9, 4)],
      [text(12, 5), undefined, text(17, 6)],
    ];
    for (const texts of calls) await read(whole, texts, false);
    // 7 words with <eos>; 41, of which 9 are left after a chunk of 32, and one after one of 8; 17.
    expect(runs).toEqual([24, 96, 24, 3, 96]);
    for (const texts of calls) await read(single, texts, true);
    expect(runs.slice(5).every((tokens) => tokens === 3)).toBe(true);
    const question = [..."abcde", "?"];
    const got = await whole.ask([question, undefined, question], { top: words.length });
    await read(single, [question.slice(0, -1), undefined, question.slice(0, -1)], true);
    const want = await single.ask([["?"], undefined, ["?"]], { top: words.length });
    for (const b of [0, 2]) {
      const byWord = ({ answers }: (typeof got)[number] & object) =>
        answers.toSorted((x, y) => x.word.localeCompare(y.word)).map(({ probability }) => probability);
      near(byWord(got[b]!), byWord(want[b]!), `answers of row ${b}`);
      expect(got[b]!.trace.words).toEqual(want[b]!.trace.words);
      expect(got[b]!.trace.rows.map(({ name }) => name)).toEqual(want[b]!.trace.rows.map(({ name }) => name));
      want[b]!.trace.rows.forEach(({ name, values }, i) => {
        near(got[b]!.trace.rows[i]!.values, values, `${name} of row ${b}`);
      });
    }
    expect(got[1]).toBeUndefined();
    for (const b of [0, 1, 2]) expectSame(await whole.snapshot(b), await single.snapshot(b));
  });

  test("a row that reads nothing keeps its state to the last bit", async () => {
    const { model } = small(settings);
    const streams = model.streams(2);
    await streams.read([text(5, 1), text(5, 2)]);
    const before = await streams.snapshot(1);
    await streams.read([text(30, 3), undefined]);
    expect(await streams.snapshot(1)).toEqual(before);
  });
});

test("a word whose numbers are not finite is found inside a chunk, and what came before it is read", async () => {
  const initial = new State(1);
  const weights = buildSystem(smallFwm).parameters.map((parameter) => {
    const attrs = stateAttrs(parameter)!;
    initial.declare(attrs);
    return [attrs.name, (initial.get(attrs.name).data as Float32Array).slice()] as const;
  });
  const made = new Map(weights);
  const id = catbabiVocabulary.id("wolf")!;
  made.get("embedding")!.fill(Number.NaN, id * 12, (id + 1) * 12);
  const { model, runs } = modelOf(smallFwm, catbabiVocabulary, made);
  const [stream, witness] = [model.stream(), model.stream()];
  const attempt = stream.read("mary went to the wolf and the garden .");
  await expect(attempt).rejects.toThrow('not finite any more at "wolf"');
  // A chunk, then <eos> and five words one by one.
  expect(runs).toEqual([8, 1, 1, 1, 1, 1, 1]);
  for (const word of ["mary", "went", "to", "the"]) await witness.read([word]);
  expect(await stream.snapshot()).toEqual(await witness.snapshot());
  await stream.read("mary is in the garden .");
});
