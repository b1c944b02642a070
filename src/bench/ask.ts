/** How fast a model answers: stories read through its streams, as a caller reads them. */
import { catbabiVocabulary } from "../data/vocabulary.ts";
import { stateAttrs } from "../graph/index.ts";
import { FwmModel } from "../inference/model.ts";
import type { Streams } from "../inference/stream.ts";
import { fwmDefaults } from "../model/fwmModel.ts";
import { buildSystem } from "../model/registry.ts";
import { nodeRuntime } from "../runtime/node.ts";
import { State } from "../runtime/state.ts";
import { interleaved } from "./measure.ts";

/** What is read in one call. */
export type Reading = "word" | "sentence" | "story";

/** What `fwm bench ask` reports. */
export interface AskReport {
  readonly rows: readonly {
    readonly streams: number;
    /** What each call read. */
    readonly reading: Reading;
    /** Of each stream, the question and its answer included: the median, and the least. */
    readonly microsecondsPerToken: number;
    readonly leastMicrosecondsPerToken: number;
    /** Of all streams together. */
    readonly tokensPerSecond: number;
  }[];
}

/** As long as catbAbI's: 6.2 words a sentence, a question after every sixth. */
const sentences = [
  "mary went to the kitchen .",
  "john travelled to the office .",
  "sandra went back to the garden .",
  "daniel picked up the milk there .",
  "mary got the football .",
  "john moved to the hallway .",
].map((sentence) => sentence.split(" "));
const question = "where is the football ?".split(" ");
/** A story, a question and the answer that follows it. */
const storyTokens = sentences.flat().length + question.length + 1;

/** Measures an untrained model at the paper's sizes, the ways of reading in turn. */
export async function benchAsk({
  streams = [1, 64],
  repeats = 15,
  threads = 1,
}: {
  streams?: readonly number[];
  repeats?: number;
  threads?: number;
} = {}): Promise<AskReport> {
  const model = untrained(threads);
  try {
    const rows: AskReport["rows"][number][] = [];
    for (const count of streams) {
      const reader = (reading: Reading) => {
        const group = model.streams(count);
        return () => readStory(group, reading);
      };
      const cases = { word: reader("word"), sentence: reader("sentence"), story: reader("story") };
      const times = await interleaved(cases, { repeats });
      for (const reading of Object.keys(cases) as Reading[]) {
        const ms = times[reading].median / storyTokens;
        rows.push({
          streams: count,
          reading,
          microsecondsPerToken: 1000 * ms,
          leastMicrosecondsPerToken: (1000 * times[reading].least) / storyTokens,
          tokensPerSecond: (count / ms) * 1000,
        });
      }
    }
    return { rows };
  } finally {
    await model.release();
  }
}

/** Reads one story on every stream, each from another sentence on, and asks the question. */
async function readStory(streams: Streams, reading: Reading): Promise<void> {
  const { size } = streams;
  const stories = Array.from({ length: size }, (_, b) =>
    sentences.map((__, i) => sentences[(b + i) % sentences.length]!),
  );
  const pieces = {
    word: stories.map((story) => [...story.flat(), ...question.slice(0, -1)].map((word) => [word])),
    sentence: stories,
    story: stories.map((story) => [story.flat()]),
  }[reading];
  const asked = reading === "word" ? question.slice(-1) : question;
  for (let i = 0; i < pieces[0]!.length; i++) await streams.read(pieces.map((piece) => piece[i]));
  await streams.ask(Array.from({ length: size }, () => asked));
}

function untrained(threads: number): FwmModel {
  const system = buildSystem(fwmDefaults);
  const initial = new State(1);
  const weights = system.parameters.map((parameter) => {
    const attrs = stateAttrs(parameter)!;
    initial.declare(attrs);
    return [attrs.name, initial.get(attrs.name).data as Float32Array] as const;
  });
  const config = {
    format: "fwm-model",
    version: 2,
    kind: "catbabi",
    experiment: "bench",
    settings: { system: fwmDefaults },
    system: fwmDefaults,
  } as const;
  return new FwmModel(config, catbabiVocabulary, system, new Map(weights), { runtime: nodeRuntime, threads });
}
