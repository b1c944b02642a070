/** Models and calls that mean harm or are merely far too large: refused with a message, or bounded. */
import { describe, expect, test } from "vitest";
import { DataError, nearest, UsageError } from "../../src/errors.ts";
import { modelFromBytes } from "../../src/inference/model.ts";
import type { StreamSnapshot } from "../../src/inference/stream.ts";
import { UnknownWordError } from "../../src/inference/text.ts";
import { fwmDefaults } from "../../src/model/fwmModel.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import { encodeSafetensors } from "../../src/store/safetensors.ts";
import { modelBytes, smallFwm, weightsOf } from "./support.ts";

const story = "Gertrude is a mouse. Mice are afraid of wolves.";
const question = "What is gertrude afraid of?";
const make = (change: object = {}, runtime: Runtime = nodeRuntime) =>
  modelFromBytes({ ...modelBytes(smallFwm), ...change }, { runtime });

/** A runtime that knows how many sessions are open. */
function counted(): { runtime: Runtime; open: () => number; made: () => number } {
  let [open, made] = [0, 0];
  const runtime: Runtime = {
    name: "counted",
    async createSession(model, options) {
      const session = await nodeRuntime.createSession(model, options);
      open++;
      made++;
      return {
        run: (feeds, into) => session.run(feeds, into),
        release: async () => {
          open--;
          await session.release();
        },
      };
    },
  };
  return { runtime, open: () => open, made: () => made };
}

describe("many sizes of streams", () => {
  test("keep few sessions open, and a stream whose session was let go reads on", async () => {
    const { runtime, open, made } = counted();
    const model = make({}, runtime);
    const [first, witness] = [model.stream(), make().stream()];
    for (const stream of [first, witness]) await stream.read(story);
    for (let rows = 2; rows <= 12; rows++) {
      await model.streams(rows).read(Array.from({ length: rows }, () => story));
      expect(open()).toBeLessThanOrEqual(3);
    }
    expect(made()).toBe(12);
    expect(await first.ask(question)).toEqual(await witness.ask(question));
    await model.release();
    expect(open()).toBe(0);
  });

  test("that are stepped at once have a session each, for as long as they need it", async () => {
    const { runtime, open } = counted();
    const model = make({}, runtime);
    const groups = [1, 2, 3, 4, 5, 6].map((rows) => model.streams(rows));
    await Promise.all(groups.map((group) => group.read(Array.from({ length: group.size }, () => story))));
    await Promise.all(groups.map((group) => group.read(Array.from({ length: group.size }, () => story))));
    expect(open()).toBeLessThanOrEqual(3);
    await model.release();
  });

  test("beyond what memory can hold are refused at once", () => {
    const model = make();
    expect(() => model.streams(1e8)).toThrow(UsageError);
    expect(() => model.streams(1e8)).toThrow(/100000000 are too many to step together[\s\S]*most/);
    expect(() => model.streams(2.5)).toThrow(/a whole number/);
  });
});

describe("a model of few bytes that asks for much memory", () => {
  test("is refused for the size of its state", () => {
    const system = { ...fwmDefaults, vocabulary: 200, embedding: 1, hidden: 1, memory: 500, reads: 1 };
    const { safetensors, ...others } = modelBytes(system);
    expect(safetensors.length).toBeLessThan(40_000);
    const attempt = () => make({ safetensors, ...others });
    expect(attempt).toThrow(DataError);
    expect(attempt).toThrow(/the state of one stream of this model takes 50000000\d bytes/);
  });

  test.each(["hidden", "reads", "embedding", "memory"])(
    "is refused for a %s that no weights are there for",
    (name) => {
      const config = JSON.parse(modelBytes(smallFwm).config) as {
        settings: { system: Record<string, unknown> };
      };
      config.settings.system[name] = name === "reads" ? 16 : 65_536;
      expect(() => make({ config })).toThrow(DataError);
    },
  );
});

describe("weights far too large", () => {
  test.each([1e20, 3e38])(
    "of %d are told of when their numbers stop being finite, and nothing is read",
    async (size) => {
      const tensors = weightsOf(smallFwm);
      for (const { data } of Object.values(tensors)) {
        (data as Float32Array).forEach((_, i) => {
          data[i] = i % 2 === 0 ? size : -size;
        });
      }
      const stream = make({ safetensors: encodeSafetensors(tensors) }).stream();
      const before = await stream.snapshot();
      await expect(stream.ask(question)).rejects.toThrow(DataError);
      await expect(stream.ask(question)).rejects.toThrow(/not finite any more at "[^"]+"[\s\S]*weights/);
      expect((await stream.snapshot()).state).toEqual(before.state);
    },
  );
});

test("a snapshot that is none of the model's is refused, and the stream is as it was", async () => {
  const stream = make().stream();
  await stream.read(story);
  const good = await stream.snapshot();
  const changed = (name: string, vector: unknown) => new Map([...good.state, [name, vector as Float32Array]]);
  const cases: readonly [object, RegExp][] = [
    [
      {
        state: changed(
          "F",
          good.state.get("F")!.map(() => Number.NaN),
        ),
      },
      /F\[0\] is NaN/,
    ],
    [{ state: changed("h", new Float32Array(11)) }, /h is 11 numbers, not a Float32Array of 12/],
    [{ state: changed("h", new Float32Array(13)) }, /h is 13 numbers/],
    [{ state: changed("h", [1, 2]) }, /h is object/],
    [{ state: new Map() }, /is undefined/],
    [{ state: changed("G", new Float32Array(1)) }, /a state G/],
    [{ history: [{ word: "xylophone", vectors: {} }] }, /"xylophone" is no word/],
    [{ history: [{ word: "mary", vectors: {} }] }, /is undefined/],
    [{ pending: 200 }, /no word has number 200/],
    [{ pending: Number.NaN }, /no word has number NaN/],
    [{ inStory: undefined }, /whether it is inside a story/],
  ];
  for (const [change, message] of cases) {
    const bad = { ...good, ...change } as StreamSnapshot;
    await expect(stream.restore(bad)).rejects.toThrow(UsageError);
    await expect(stream.restore(bad)).rejects.toThrow(message);
  }
  expect(await stream.snapshot()).toEqual(good);
  await stream.restore(good);
});

describe("text that a model does not know", () => {
  test("is named in a few lines, however much there is of it", async () => {
    const words = Array.from({ length: 20_000 }, (_, i) => `wort${i.toString(36)}`);
    const error = await make()
      .stream()
      .read(words)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnknownWordError);
    const { message, suggestions } = error as UnknownWordError;
    expect(message).toMatch(/"wort0", .* and 19990 more words/);
    expect(message.length).toBeLessThan(2000);
    expect(suggestions.size).toBe(10);
  });

  test("is cut where a word is long, and a long word is compared with nothing", async () => {
    const word = "a".repeat(2_000_000);
    expect(nearest(word, ["kitchen", "garden"])).toEqual([]);
    const error = await make()
      .stream()
      .read([word])
      .catch((thrown: unknown) => thrown);
    expect((error as Error).message.length).toBeLessThan(300);
  });
});

test("the files of a model may be ArrayBuffers, as fetch gives them", async () => {
  const { config, safetensors, vocab } = modelBytes(smallFwm);
  const buffer = (text: string) => new TextEncoder().encode(text).buffer as ArrayBuffer;
  const files = { config: buffer(config), safetensors: safetensors.buffer, vocab: buffer(vocab) };
  const want = await make().stream().ask(question);
  expect(await modelFromBytes(files, { runtime: nodeRuntime }).stream().ask(question)).toEqual(want);
  expect(() => make({ config: Uint8Array.of(0x7b, 0xff).buffer })).toThrow(/not UTF-8/);
});
