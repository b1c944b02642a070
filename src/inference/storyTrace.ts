/**
 * A story read word by word with everything that can be looked at: the answers, what every read matched, and what each
 * word wrote. Plain numbers, so that it passes through JSON as it is; `storyMemory.ts` computes with the writes.
 */
import { UsageError } from "../errors.ts";
import { fwmVariants, type KeyCombination } from "../model/fwm.ts";
import type { SystemSettings } from "../model/registry.ts";
import type { NamedVectors } from "../model/sequence.ts";
import type { Program } from "../runtime/program.ts";
import { parseLine } from "./sentences.ts";
import { tracePrefix } from "./stepProgram.ts";
import { StoryMemory } from "./storyMemory.ts";
import { type Answer, endOfStory, mostProbable, probabilityOf, type StreamSource } from "./stream.ts";
import { encodeText } from "./text.ts";

/** One token as the model read it. */
export interface StoryToken {
  readonly word: string;
  /** Line of the story it stands in, from 0; -1 for `<eos>` at the beginning. */
  readonly line: number;
  /** Whether it is the answer read after a question: given with the story, or the model's own. */
  readonly answer: "given" | "own" | null;
  /** β: strength of the write, 0 to 1, without the variant's constant factor; null without such a memory. */
  readonly beta: number | null;
  /** Frobenius norm of the fast weights after the write. */
  readonly norm: number | null;
}

/** One read of the memory, or attention head: a number for every token up to the question's "?". */
export interface ReadRow {
  readonly name: string;
  readonly values: readonly number[];
}

/** A question of the story, and what the model makes of it. */
export interface StoryQuestion {
  /** Index of its "?" among the tokens, and of its first word. */
  readonly at: number;
  readonly from: number;
  readonly question: string;
  /** Best first. */
  readonly answers: readonly Answer[];
  /** The true answer, where the story gave one, and its probability. */
  readonly given: Answer | null;
  /** What each read matched; empty for a system that has nothing to show. */
  readonly rows: readonly ReadRow[];
}

/** What every token of a story wrote to the memory, equations 1 and 2. */
export interface StoryWrites {
  /** How the halves of a key are joined. */
  readonly keys: KeyCombination;
  /** Factor on every write that is in `beta` already: 1 in the paper, 1/D in the authors' catbAbI program. */
  readonly scale: number;
  /** Per token: the halves of the write key and the value, D numbers each. */
  readonly k1: readonly (readonly number[])[];
  readonly k2: readonly (readonly number[])[];
  readonly v: readonly (readonly number[])[];
  /** Per token: strength of the write, `scale` included. */
  readonly beta: readonly number[];
}

/** A story and what the model made of it. */
export interface StoryTrace {
  readonly tokens: readonly StoryToken[];
  readonly questions: readonly StoryQuestion[];
  /** What the rows are: reads of a fast weight memory, attention heads, or nothing. */
  readonly shows: "reads" | "attention" | "nothing";
  /** Absent for a system without a Fast Weight Memory. */
  readonly writes?: StoryWrites;
}

/** What a trace needs of a model. */
export interface TracedModel extends Pick<StreamSource, "vocabulary" | "tracer"> {
  readonly config: { readonly system: SystemSettings };
  /** The compiled step for a number of rows, over a state of its own. */
  program(rows: number): Promise<Program>;
}

/** Longest story that is traced, in tokens: every one is a step. */
export const longestStory = 1000;

/** A token to read; `undefined` for the answer that the model gives itself. */
interface Planned extends Pick<StoryToken, "line" | "answer"> {
  readonly token: number | undefined;
  /** On the "?" of a question: where it began, and the true answer if there is one. */
  readonly question?: { readonly from: number; readonly given: number | undefined };
}

/**
 * Reads a story from an empty memory and answers its questions. Lines are as `fwm ask` takes them: a question may have
 * its true answer behind a tab, else the story goes on with the model's own. Unknown words are an `UnknownWordError`.
 */
export async function traceStory(
  model: TracedModel,
  story: string,
  { top = 5 }: { readonly top?: number } = {},
): Promise<StoryTrace> {
  const { vocabulary, tracer } = model;
  const plan = planOf(model, story);
  const program = await model.program(1);
  const history: NamedVectors[] = [];
  const read: { token: number; planned: Planned }[] = [];
  const questions: StoryQuestion[] = [];
  let own = 0;
  for (const planned of plan) {
    const token = planned.token ?? own;
    const outputs = await program.run({ tokens: [token] });
    history.push(vectorsOf(outputs));
    read.push({ token, planned });
    if (!planned.question) continue;
    const logits = outputs.logits as Float32Array;
    const { from, given } = planned.question;
    const answers = mostProbable(logits, vocabulary.words, Math.max(1, top));
    own = vocabulary.id(answers[0]!.word)!;
    const state = program.plan.updated.map(
      (name) => [name, program.state.get(name).data as Float32Array] as const,
    );
    const rows = tracer?.rows(history, history.at(-1)!, Object.fromEntries(state)) ?? [];
    questions.push({
      at: read.length - 1,
      from,
      question: read
        .slice(from)
        .map(({ token: id }) => vocabulary.word(id))
        .join(" "),
      answers,
      given:
        given === undefined
          ? null
          : { word: vocabulary.word(given), probability: probabilityOf(logits, given) },
      rows: rows.map(({ name, values }) => ({ name, values: [...values] })),
    });
  }
  const writes = writesOf(model.config.system, history);
  const memory = writes && new StoryMemory(writes);
  return {
    tokens: read.map(({ token, planned: { line, answer } }, i) => ({
      word: vocabulary.word(token),
      line,
      answer,
      beta: memory?.strength[i] ?? null,
      norm: memory?.norm[i] ?? null,
    })),
    questions,
    shows: !tracer ? "nothing" : model.config.system.name === "transformer-xl" ? "attention" : "reads",
    ...(writes ? { writes } : {}),
  };
}

/** What is to be read. Every word is looked up before the first step. */
function planOf({ vocabulary }: TracedModel, story: string): Planned[] {
  const eos = vocabulary.id(endOfStory);
  const plan: Planned[] = eos === undefined ? [] : [{ token: eos, line: -1, answer: null }];
  const first = plan.length;
  const lines = story.split(/\r?\n/).map(parseLine);
  encodeText(
    vocabulary,
    lines.flatMap(({ sentences, answer }) => [
      ...sentences.flatMap(({ words }) => words),
      ...(answer === undefined ? [] : [answer]),
    ]),
  );
  for (const [line, { sentences, answer }] of lines.entries()) {
    for (const { kind, words } of sentences) {
      const from = plan.length;
      const given = answer === undefined ? undefined : vocabulary.id(answer)!;
      words.forEach((word, i) => {
        const isMark = kind === "question" && i === words.length - 1;
        const token = vocabulary.id(word)!;
        plan.push({ token, line, answer: null, ...(isMark ? { question: { from, given } } : {}) });
      });
      if (kind === "question")
        plan.push({ token: given, line, answer: given === undefined ? "own" : "given" });
    }
  }
  // The answer to the last question is asked for, not read.
  if (plan.at(-1)?.answer) plan.pop();
  if (plan.length === first) throw new UsageError("the story has no words");
  if (plan.length > longestStory) {
    throw new UsageError(`the story has ${plan.length} words`, { most: longestStory });
  }
  return plan;
}

/** A copy of everything a step shows, by name. */
function vectorsOf(outputs: Readonly<Record<string, unknown>>): NamedVectors {
  const shown = Object.entries(outputs).filter(([name]) => name.startsWith(tracePrefix));
  return Object.fromEntries(
    shown.map(([name, data]) => [name.slice(tracePrefix.length), (data as Float32Array).slice()]),
  );
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
