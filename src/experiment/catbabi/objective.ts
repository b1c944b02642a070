/**
 * What is learned of a window of catbAbI, and where its questions are. QA: only the answers count, and logits are
 * computed only at "?"; LM: every next token but padding. Either way only answers are scored.
 */
import type { Batch } from "../../data/batches.ts";
import { padId } from "../../data/vocabulary.ts";
import type { TokenBatch } from "../../train/sequenceWindow.ts";

/** QA: only answers count. LM: every next token. */
export type Mode = "qa" | "lm";

/** A window as a trainer takes it. */
export interface Objective extends TokenBatch {
  /** Positions t · B + b of the questions. */
  readonly questions: Int32Array;
  /** Where each question stands among the targets. */
  readonly slots: Int32Array;
}

/** Slots per row are rounded up to a multiple of this, so that few shapes are compiled. */
const granularity = 16;

/** Facts per question that are told; of questions with more of them none are. */
const mostFacts = 3;

/**
 * The window with its targets, and the weight of each in the loss; with the facts of the answers, if these are wanted. In LM
 * an answer weighs `answerWeight` times as much as any other token.
 */
export function objectiveOf(
  batch: Batch,
  mode: Mode,
  { facts = false, answerWeight = 1 }: { facts?: boolean; answerWeight?: number } = {},
): Objective {
  const { tokens, padded, batch: B, window: T } = batch;
  const isToken = Float32Array.from(tokens, (token) => (token === padId ? 0 : 1));
  const common = { batch: B, window: T, tokens, ...(padded > 0 ? { mask: isToken } : {}) };
  if (mode === "qa") {
    const answers = answersOnly(batch);
    return { ...common, ...answers, ...(facts ? { facts: factsOf(batch, answers) } : {}) };
  }
  const questions = Int32Array.from(batch.questions.keys()).filter((at) => batch.questions[at]);
  const lossMask = isToken.slice();
  for (const at of questions) lossMask[at] = answerWeight;
  const everywhere = { ...common, targets: batch.targets, lossMask, questions, slots: questions };
  if (!facts || questions.length === 0) return everywhere;
  const answers = answersOnly(batch);
  return { ...everywhere, facts: factsOf(batch, answers), factPositions: answers.positions };
}

/** Positions of the questions, as many for every row; unused ones point at the row's first token and weigh nothing. */
function answersOnly({ batch: B, window: T, targets, questions }: Batch) {
  const counts = new Int32Array(B);
  for (let at = 0; at < T * B; at++) if (questions[at]) counts[at % B]!++;
  const most = counts.reduce((a, b) => Math.max(a, b), 0);
  const Q = Math.ceil(most / granularity) * granularity;
  const positions = Int32Array.from({ length: B * Q }, (_, i) => Math.floor(i / Q));
  const answers = new Int32Array(B * Q);
  const lossMask = new Float32Array(B * Q);
  counts.fill(0);
  for (let at = 0; at < T * B; at++) {
    if (!questions[at]) continue;
    const b = at % B;
    const slot = b * Q + counts[b]!++;
    positions[slot] = at;
    answers[slot] = targets[at]!;
    lossMask[slot] = 1;
  }
  const slots = Int32Array.from(lossMask.keys()).filter((slot) => lossMask[slot] === 1);
  return {
    positions,
    targets: answers,
    lossMask,
    questions: slots.map((slot) => positions[slot]!),
    slots,
  };
}

/** [B, Q, mostFacts, T]: 1 at the tokens of what the answer in a slot follows from. */
function factsOf(
  { window: T, facts = new Int32Array(0) }: Batch,
  { positions, questions, slots }: Required<Pick<Objective, "positions" | "questions" | "slots">>,
): Float32Array {
  const told = new Float32Array(positions.length * mostFacts * T);
  const slotOf = new Map(Array.from(questions, (at, i) => [at, slots[i]!]));
  const spans = new Map<number, [from: number, to: number][]>();
  for (let i = 0; i < facts.length; i += 3) {
    const slot = slotOf.get(facts[i]!)!;
    spans.set(slot, [...(spans.get(slot) ?? []), [facts[i + 1]!, facts[i + 2]!]]);
  }
  for (const [slot, of] of spans) {
    if (of.length > mostFacts) continue;
    for (const [n, [from, to]] of of.entries()) {
      const at = (slot * mostFacts + n) * T;
      told.fill(1, at + from, at + to);
    }
  }
  return told;
}

/** For each question whether its answer was the most probable token. */
export function correctAnswers({ targets, slots }: Objective, predicted: Int32Array): Uint8Array {
  return Uint8Array.from(slots, (slot) => (predicted[slot] === targets[slot] ? 1 : 0));
}

/** Mean loss over the questions; 0 without any. */
export function answerLoss({ slots }: Objective, losses: Float32Array): number {
  let total = 0;
  for (const slot of slots) total += losses[slot]!;
  return slots.length > 0 ? total / slots.length : 0;
}
