/**
 * What a question's reads matched: the inner products of the paper's figure on transitive inference.
 *
 * For every earlier word t and read i: ⟨k1_t ⊗ k2_t, n^(i-1) ⊗ e^(i)⟩ = (k1_t · n^(i-1)) (k2_t · e^(i)), where k1
 * and k2 are the keys that word was written under, and n and e the query and key of that read at the "?".
 */
import { type FastWeights, keyMatch, layerNorm, retrieve, type Vector } from "./memory.ts";

/** A word that went by, with the keys it was written under; a system without a memory has none. */
export interface TracedWord {
  readonly word: string;
  readonly k1?: Vector;
  readonly k2?: Vector;
}

/** How each read of a question matches each word before it. */
export interface MemoryTrace {
  /** The words so far, oldest first; the last one is the "?" itself. */
  readonly words: readonly string[];
  /** One array per read, the first read first: an inner product per word. Empty for a system without a memory. */
  readonly reads: readonly Float32Array[];
}

/** The query and keys at a question, and the memory they are put to. */
export interface TracedQuery {
  readonly memory: FastWeights;
  /** n^(0) */
  readonly n: Vector;
  /** e^(1) … e^(N_r) */
  readonly e: readonly Vector[];
}

/** The matches of a question's reads with the words before it. */
export function traceReads(history: readonly TracedWord[], query: TracedQuery | undefined): MemoryTrace {
  const words = history.map(({ word }) => word);
  if (!query) return { words, reads: [] };
  const { memory, e } = query;
  let n = query.n;
  const reads = e.map((key) => {
    const matches = Float32Array.from(history, ({ k1, k2 }) =>
      k1 && k2 ? keyMatch(memory.keys, k1, k2, n, key) : 0,
    );
    n = layerNorm(retrieve(memory, n, key));
    return matches;
  });
  return { words, reads };
}
