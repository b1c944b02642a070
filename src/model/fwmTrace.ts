/**
 * What a question's reads matched: the inner products of the paper's figure on transitive inference, in plain loops.
 *
 * For every earlier token t and read i: ⟨k1_t ⊗ k2_t, n^(i-1) ⊗ e^(i)⟩ = (k1_t · n^(i-1)) (k2_t · e^(i)), where k1
 * and k2 are the keys that token was written under, and n and e the query and key of that read.
 */
import type { KeyCombination } from "./fwm.ts";
import type { NamedVectors, Tracer } from "./sequence.ts";

/** A vector as it may be given: any array of numbers. */
export type Vector = ArrayLike<number>;

/** The tracer of a memory: `step` has to give k1, k2 of every token, and n0, e1 … of the one that is asked at. */
export function fwmTracer(sizes: { memory: number; reads: number }, keys: KeyCombination): Tracer {
  return {
    keep: ["k1", "k2"],
    rows(history, now, state) {
      const memory = { valueSize: sizes.memory, keys, weights: vector(state, "F") };
      let n: Vector = vector(now, "n0");
      return Array.from({ length: sizes.reads }, (_, i) => {
        const e = vector(now, `e${i + 1}`);
        const values = Float32Array.from(history, (token) =>
          keyMatch(keys, vector(token, "k1"), vector(token, "k2"), n, e),
        );
        n = layerNorm(retrieve(memory, n, e));
        return { name: `read ${i + 1}`, values };
      });
    },
  };
}

function vector(of: NamedVectors, name: string): Float32Array {
  return of[name]!;
}

/** What a retrieval needs to know of a memory. */
export interface FastWeights {
  readonly valueSize: number;
  readonly keys: KeyCombination;
  /** F, K × V, row by row. */
  readonly weights: Float32Array | Float64Array;
}

/** Rows of F: one per pair of entries of the two keys, or one per entry. */
export function keyRows(keys: KeyCombination, keySize: number): number {
  return keys === "product" ? keySize * keySize : 2 * keySize;
}

/** F vec(a ⊗ b): what a pair of keys leads to. */
export function retrieve({ valueSize, keys, weights }: FastWeights, a: Vector, b: Vector): Float64Array {
  return lookUp(weights, joined(keys, a, b), valueSize);
}

/** F applied to a joined key. */
export function lookUp(F: Float32Array | Float64Array, key: Float64Array, V: number): Float64Array {
  const value = new Float64Array(V);
  for (let row = 0, at = 0; row < key.length; row++) {
    const share = key[row]!;
    for (let c = 0; c < V; c++, at++) value[c]! += share * F[at]!;
  }
  return value;
}

/** vec(a ⊗ b), or [a; b]: one entry per row of F. */
export function joined(keys: KeyCombination, a: Vector, b: Vector): Float64Array {
  const D = a.length;
  const key = new Float64Array(keyRows(keys, D));
  for (let i = 0; i < D; i++) {
    if (keys === "concat") {
      key[i] = a[i]!;
      key[D + i] = b[i]!;
    } else {
      for (let j = 0; j < D; j++) key[i * D + j] = a[i]! * b[j]!;
    }
  }
  return key;
}

/** (x - mean) / sqrt(variance + eps), as between two reads. */
export function layerNorm(x: Vector, eps = 1e-5): Float64Array {
  const size = x.length;
  let mean = 0;
  for (let i = 0; i < size; i++) mean += x[i]! / size;
  let variance = 0;
  for (let i = 0; i < size; i++) variance += (x[i]! - mean) ** 2 / size;
  const share = 1 / Math.sqrt(variance + eps);
  return Float64Array.from({ length: size }, (_, i) => (x[i]! - mean) * share);
}

/** ⟨a1 ⊗ b1, a2 ⊗ b2⟩ = (a1 · a2)(b1 · b2): how much two pairs of keys match; the sum for concatenated keys. */
export function keyMatch(keys: KeyCombination, a1: Vector, b1: Vector, a2: Vector, b2: Vector): number {
  const [first, second] = [dot(a1, a2), dot(b1, b2)];
  return keys === "product" ? first * second : first + second;
}

/** a · b */
export function dot(a: Vector, b: Vector): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}
