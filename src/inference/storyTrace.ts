/**
 * A story read word by word with everything that can be looked at: the answer, what every read matched, and what each
 * word wrote. Plain numbers, so that it passes through JSON as it is; `storyMemory.ts` computes with the writes.
 */
import { UsageError } from "../errors.ts";
import { fwmVariants, type KeyCombination } from "../model/fwm.ts";
import type { SystemSettings } from "../model/registry.ts";
import type { NamedVectors } from "../model/sequence.ts";
import { tracePrefix } from "./stepProgram.ts";
import { type Answer, endOfStory, mostProbable, type StreamSource } from "./stream.ts";
import { encodeText } from "./text.ts";

/** One read, or attention head, of the last word: a number for every word of the story. */
export interface ReadRow {
  readonly name: string;
  readonly values: readonly number[];
}

/** What every word of a story wrote to the memory, equations 1 and 2. */
export interface StoryWrites {
  /** How the halves of a key are joined. */
  readonly keys: KeyCombination;
  /** Factor on every write that is already in `beta`: 1 in the paper, 1/D in the authors' catbAbI program. */
  readonly scale: number;
  /** Per word: the halves of the write key and the value, D numbers each. */
  readonly k1: readonly (readonly number[])[];
  readonly k2: readonly (readonly number[])[];
  readonly v: readonly (readonly number[])[];
  /** Per word: strength of the write, `scale` included. */
  readonly beta: readonly number[];
}

/** A story and what the model made of it. */
export interface StoryTrace {
  /** What was read: `<eos>` first where the model has it, the question's "?" last. */
  readonly words: readonly string[];
  /** The most probable next words, best first. */
  readonly answers: readonly Answer[];
  /** What the reads, or heads, at the last word matched; empty for a system that has nothing to show. */
  readonly rows: readonly ReadRow[];
  /** Absent for a system without a Fast Weight Memory. */
  readonly writes?: StoryWrites;
}

/** What a trace needs of a model. */
export interface TracedModel extends StreamSource {
  readonly config: { readonly system: SystemSettings };
}

/** Longest story that is traced, in words: every word is a step. */
export const longestStory = 1000;

/**
 * Reads a text from an empty memory and answers at its last word, which is "?" for a question. Where an earlier
 * question stands in the text, its answer follows it as in catbAbI. An unknown word is an `UnknownWordError`.
 */
export async function traceStory(
  model: TracedModel,
  text: string | readonly string[],
  { top = 5, writes = true }: { readonly top?: number; readonly writes?: boolean } = {},
): Promise<StoryTrace> {
  const { vocabulary, tracer } = model;
  const eos = vocabulary.id(endOfStory);
  const tokens = [...(eos === undefined ? [] : [eos]), ...encodeText(vocabulary, text)];
  if (tokens.length > longestStory) {
    throw new UsageError(`the story has ${tokens.length} words`, { most: longestStory });
  }
  if (tokens.length < 2) throw new UsageError("the story has no words");
  const program = await model.program(1);
  const history: NamedVectors[] = [];
  let logits: Float32Array = new Float32Array(0);
  for (const token of tokens) {
    const outputs = await program.run({ tokens: [token] });
    const vectors = Object.entries(outputs).filter(([name]) => name.startsWith(tracePrefix));
    history.push(
      Object.fromEntries(
        vectors.map(([name, data]) => [name.slice(tracePrefix.length), (data as Float32Array).slice()]),
      ),
    );
    logits = outputs.logits as Float32Array;
  }
  const state = Object.fromEntries(
    program.plan.updated.map((name) => [name, program.state.get(name).data as Float32Array]),
  );
  const rows = tracer?.rows(history, history.at(-1)!, state) ?? [];
  const memory = writes ? writesOf(model.config.system, history) : undefined;
  return {
    words: tokens.map((token) => vocabulary.word(token)),
    answers: mostProbable(logits, vocabulary.words, top),
    rows: rows.map(({ name, values }) => ({ name, values: [...values] })),
    ...(memory ? { writes: memory } : {}),
  };
}

/** The writes of a system whose steps show them. */
function writesOf(system: SystemSettings, history: readonly NamedVectors[]): StoryWrites | undefined {
  if (system.name !== "fwm" && system.name !== "awd-fwm") return undefined;
  const { writeScale } = fwmVariants[system.variant];
  const all = (name: string): number[][] => history.map((vectors) => [...vectors[name]!]);
  return {
    keys: system.name === "fwm" ? system.keys : "product",
    scale: writeScale === "one" ? 1 : 1 / system.memory,
    k1: all("k1"),
    k2: all("k2"),
    v: all("v"),
    beta: all("beta").map(([strength]) => strength!),
  };
}
