/** Where a window has to be answered: question positions of every row, padded to one number per row. */

/** Positions as a program takes them. */
export interface Queries {
  /** Slots per row. */
  readonly slots: number;
  /** i32 [B, Q]: t · B + b; unused slots point at the row's first token. */
  readonly ids: Int32Array;
  /** i32 [B, Q] */
  readonly targets: Int32Array;
  /** f32 [B, Q]: 1 for a question, 0 for an unused slot. */
  readonly mask: Float32Array;
  /** Questions in all. */
  readonly count: number;
}

/** What is needed of a batch: time-major arrays. */
export interface AskedBatch {
  readonly batch: number;
  readonly window: number;
  readonly targets: Int32Array;
  readonly questions: Uint8Array;
}

/** Slots are rounded up to a multiple of this, so that few shapes are compiled. */
const granularity = 16;

/** Collects the question positions of a batch. */
export function collectQueries({ batch: B, window: T, targets, questions }: AskedBatch): Queries {
  const counts = new Int32Array(B);
  for (let at = 0; at < T * B; at++) if (questions[at]) counts[at % B]!++;
  const most = counts.reduce((a, b) => Math.max(a, b), 1);
  const slots = Math.ceil(most / granularity) * granularity;
  const ids = Int32Array.from({ length: B * slots }, (_, i) => Math.floor(i / slots));
  const answers = new Int32Array(B * slots);
  const mask = new Float32Array(B * slots);
  counts.fill(0);
  let count = 0;
  for (let at = 0; at < T * B; at++) {
    if (!questions[at]) continue;
    const b = at % B;
    const slot = b * slots + counts[b]!++;
    ids[slot] = at;
    answers[slot] = targets[at]!;
    mask[slot] = 1;
    count++;
  }
  return { slots, ids, targets: answers, mask, count };
}
