/**
 * The memory along a story, computed from what each word wrote: no model, no fast weights, plain loops.
 *
 * After word t the memory is F_t = Σ_{i ≤ t} w_t[i] κ_i u_iᵀ, with κ_i the joined key of word i, u_i = β_i (v_i - vOld_i)
 * and w_t[i] the share of that write which equation 4 has left by then. So a retrieval costs t products of keys, and
 * any moment of the story can be looked at without D³ numbers.
 */
import { dot, keyMatch, type Vector } from "../model/fwmTrace.ts";
import type { StoryWrites } from "./storyTrace.ts";

/** What a pair of keys leads to at a moment of the story. */
export interface Retrieval {
  /** F vec(a ⊗ b), D numbers. */
  readonly value: Float64Array;
  /** Its length; near 0 where nothing is stored. */
  readonly norm: number;
  /** Cosine with the value that each word up to that moment wrote, -1 to 1. */
  readonly match: number[];
}

/** A story's writes, and the memory they make. */
export class StoryMemory {
  /** Number of words. */
  readonly size: number;
  /** Per word: strength of its write, 0 to 1. */
  readonly strength: readonly number[];
  /** Per word: |F| after its write; at most 1. */
  readonly norm: Float64Array;
  /** u_i of every word. */
  private readonly updates: Float64Array[] = [];
  /** shares[t][i]: what is left of write i after word t. */
  private readonly shares: Float64Array[] = [];
  /** κ_i · κ_j, n × n. */
  private readonly products: Float64Array;

  constructor(private readonly writes: StoryWrites) {
    const { beta, scale, k1, k2, keys } = writes;
    const n = (this.size = beta.length);
    this.strength = beta.map((value) => value / scale);
    this.norm = new Float64Array(n);
    this.products = new Float64Array(n * n);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        const match = keyMatch(keys, k1[i]!, k2[i]!, k1[j]!, k2[j]!);
        this.products[i * n + j] = match;
        this.products[j * n + i] = match;
      }
    }
    let squared = 0;
    for (let t = 0; t < n; t++) squared = this.write(t, squared);
  }

  /** Adds the write of word t to a memory of the given squared norm; returns the squared norm after it. */
  private write(t: number, squared: number): number {
    const n = this.size;
    const { beta, v } = this.writes;
    const before = this.shares[t - 1] ?? new Float64Array(0);
    const vOld = this.mix(t - 1, (i) => this.products[t * n + i]!);
    const u = Float64Array.from(v[t]!, (value, c) => beta[t]! * (value - vOld[c]!)); //          (3)
    this.updates.push(u);
    // |F + κuᵀ|² = |F|² + 2 u · (Fᵀκ) + |κ|² |u|²
    const grown = squared + 2 * dot(u, vOld) + this.products[t * n + t]! * dot(u, u);
    const left = 1 / Math.sqrt(Math.max(grown, 1)); //                                            (4)
    const shares = new Float64Array(t + 1);
    for (let i = 0; i < t; i++) shares[i] = before[i]! * left;
    shares[t] = left;
    this.shares.push(shares);
    const after = Math.min(grown, 1);
    this.norm[t] = Math.sqrt(Math.max(0, after));
    return after;
  }

  /** Σ_i w_t[i] match(i) u_i: what a key that matches write i so well retrieves after word t. */
  private mix(t: number, match: (i: number) => number): Float64Array {
    const value = new Float64Array(this.writes.v[0]!.length);
    const shares = this.shares[t] ?? [];
    for (let i = 0; i < shares.length; i++) {
      const weight = shares[i]! * match(i);
      const u = this.updates[i]!;
      for (let c = 0; c < value.length; c++) value[c]! += weight * u[c]!;
    }
    return value;
  }

  /** Cosines of the write keys of all words, rows up to the diagonal: see `overlap`. */
  overlaps(): number[][] {
    return Array.from({ length: this.size }, (_, i) =>
      Array.from({ length: i + 1 }, (_, j) => this.overlap(i, j)),
    );
  }

  /** Cosine of the write keys of two words: 1 where the later write replaces the earlier one, 0 where they share nothing. */
  overlap(i: number, j: number): number {
    const n = this.size;
    const lengths = Math.sqrt(this.products[i * n + i]! * this.products[j * n + j]!);
    return lengths > 0 ? this.products[i * n + j]! / lengths : 0;
  }

  /** Share of the write of word i that is left after word t, 0 to 1; only the norm limit takes from it. */
  share(i: number, t: number): number {
    return this.shares[t]?.[i] ?? 0;
  }

  /** What the first key half of one word and the second of another lead to after word t. */
  retrieve(first: number, second: number, t: number): Retrieval {
    const { keys, k1, k2, v } = this.writes;
    const [a, b] = [k1[first]!, k2[second]!];
    const value = this.mix(t, (i) => keyMatch(keys, k1[i]!, k2[i]!, a, b));
    return {
      value,
      norm: Math.sqrt(dot(value, value)),
      match: v.slice(0, t + 1).map((written) => cosine(value, written)),
    };
  }

  /** How much of what each word up to t wrote is still there after word t: cosine of what its key retrieves and its value. */
  kept(t: number): number[] {
    const n = this.size;
    return this.writes.v.slice(0, t + 1).map((written, word) =>
      cosine(
        this.mix(t, (i) => this.products[word * n + i]!),
        written,
      ),
    );
  }
}

function cosine(a: Vector, b: Vector): number {
  const lengths = Math.sqrt(dot(a, a) * dot(b, b));
  return lengths > 0 ? dot(a, b) / lengths : 0;
}
