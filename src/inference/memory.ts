/**
 * The memory alone: an online associative store by the paper's equations, in plain loops. No training, no
 * graph, no runtime; what is written can be read at once.
 *
 *   code      paper              size            meaning
 *   F         F_t                K × V           fast weights; K = D² for the product of two keys, 2D for concatenation
 *   k1, k2    k_1, k_2           D               the two halves of the key to write under
 *   v, beta   v, β               V, 1            value to store, strength of the write
 *   n, e      n^(i), e^(i)       D               query, and the key it is paired with
 *
 * `src/model/fwm.ts` holds the same equations as a graph that can be trained.
 */
import { DataError, ShapeError, UsageError } from "../errors.ts";
import type { KeyCombination } from "../model/fwm.ts";
import { joined, keyRows, layerNorm, lookUp, retrieve, type Vector } from "../model/fwmTrace.ts";

export type { Vector };

/** Sizes and choices of a memory. */
export interface MemoryOptions {
  /** D and V at once: width of both halves of a key and of the values. Chained reads need them equal. */
  readonly size?: number;
  /** D: width of each half of a key; `size` by default. */
  readonly keySize?: number;
  /** V: width of the values; the key size by default. */
  readonly valueSize?: number;
  /** Factor on every write: 1 in the paper, 1/V in the authors' catbAbI program. */
  readonly scale?: number;
  /** The paper's product of two keys, or its ablation. */
  readonly keys?: KeyCombination;
  /** Numbers of the fast weights: f32 by default. */
  readonly precision?: "f32" | "f64";
}

/** A memory as plain JSON. */
export interface MemoryDocument {
  readonly format: "fwm-memory";
  readonly version: 1;
  readonly keySize: number;
  readonly valueSize: number;
  readonly scale: number;
  readonly keys: KeyCombination;
  readonly precision: "f32" | "f64";
  /** F, row by row. */
  readonly weights: readonly number[];
}

const largestMemory = 2 ** 28;

/** An associative store: pairs of keys lead to values, and a value can be half of the next key. */
export class AssociativeMemory {
  /** D: width of each half of a key. */
  readonly keySize: number;
  /** V: width of the values. */
  readonly valueSize: number;
  /** Factor on every write. */
  readonly scale: number;
  /** How the halves of a key are joined. */
  readonly keys: KeyCombination;
  /** F, K × V, row by row. Shared, not copied: what is changed here is changed in the memory. */
  readonly weights: Float32Array | Float64Array;

  constructor({ size, keySize, valueSize, scale = 1, keys = "product", precision = "f32" }: MemoryOptions) {
    this.keySize = wholeSize("keySize", keySize ?? size);
    this.valueSize = wholeSize("valueSize", valueSize ?? size ?? keySize);
    if (!Number.isFinite(scale) || scale <= 0) {
      throw new UsageError(`AssociativeMemory: scale must be a positive number, not ${scale}`);
    }
    this.scale = scale;
    this.keys = keys;
    const cells = keyRows(keys, this.keySize) * this.valueSize;
    if (cells > largestMemory) {
      throw new UsageError(`AssociativeMemory: ${cells} fast weights are too many`, {
        most: largestMemory,
        hint: "there are keySize² · valueSize of them",
      });
    }
    this.weights = precision === "f64" ? new Float64Array(cells) : new Float32Array(cells);
  }

  /**
   * Stores `v` under the pair of keys, as far as `beta` (0: not at all, 1: wholly) says, and returns what was
   * there before. With keys of length 1, reading the pair afterwards gives β v + (1 - β) vOld, times the scale
   * that the norm leaves.
   */
  write(k1: Vector, k2: Vector, v: Vector, beta = 1): Float64Array {
    this.#checkKeys("write", k1, k2);
    checkVector("write", "v", v, this.valueSize);
    if (!Number.isFinite(beta)) throw new UsageError(`write: beta must be a number, not ${beta}`);
    const F = this.weights;
    const V = this.valueSize;
    const key = joined(this.keys, k1, k2);
    const vOld = lookUp(F, key, V);
    const update = new Float64Array(V);
    for (let c = 0; c < V; c++) update[c] = beta * this.scale * (v[c]! - vOld[c]!);
    let squares = 0;
    for (let row = 0, at = 0; row < key.length; row++) {
      const share = key[row]!;
      for (let c = 0; c < V; c++, at++) {
        const written = F[at]! + share * update[c]!; //                                                     (3)
        squares += written * written;
      }
    }
    // Nothing has been changed so far.
    if (!Number.isFinite(squares)) throw tooLarge("write", "keys, value or beta");
    // Scaled down only above norm 1, so that a nearly empty memory is not inflated.
    const scale = squares > 1 ? 1 / Math.sqrt(squares) : 1;
    for (let row = 0, at = 0; row < key.length; row++) {
      const share = key[row]!;
      for (let c = 0; c < V; c++, at++) F[at] = scale * (F[at]! + share * update[c]!); //                      (4)
    }
    return vOld;
  }

  /**
   * Reads: `n` and the first of `keys` retrieve a value, which with the second retrieves the next, and so on
   * (equation 7). Between reads, and at the end, stands a layer norm; `raw` leaves it out everywhere.
   */
  read(n: Vector, keys: readonly Vector[], options: { readonly raw?: boolean } = {}): Float64Array {
    return this.readChain(n, keys, options).at(-1)!;
  }

  /** As `read`, with the result of every read: the first one first. */
  readChain(
    n: Vector,
    keys: readonly Vector[],
    { raw = false }: { readonly raw?: boolean } = {},
  ): Float64Array[] {
    if (keys.length === 0) throw new UsageError("read: at least one key is needed");
    if (keys.length > 1 && this.keySize !== this.valueSize) {
      throw new ShapeError("read: a chain of reads needs values that fit as keys", {
        keySize: this.keySize,
        valueSize: this.valueSize,
      });
    }
    const chain: Float64Array[] = [];
    let query = n;
    for (const e of keys) {
      this.#checkKeys("read", query, e);
      const value = retrieve(this, query, e);
      const squares = value.reduce((total, x) => total + x * x, 0);
      if (!Number.isFinite(squares)) throw tooLarge("read", "query or keys");
      chain.push((query = raw ? value : layerNorm(value))); //                                               (7)
    }
    return chain;
  }

  /** The Frobenius norm of F: how full the memory is; at most 1 but for rounding. */
  get norm(): number {
    let squares = 0;
    for (let at = 0; at < this.weights.length; at++) squares += this.weights[at]! ** 2;
    return Math.sqrt(squares);
  }

  /** Forgets everything. */
  clear(): void {
    this.weights.fill(0);
  }

  /** A memory with the same content that goes its own way from here. */
  clone(): AssociativeMemory {
    const copy = new AssociativeMemory(this.#options());
    copy.weights.set(this.weights);
    return copy;
  }

  /** The memory as plain JSON; `JSON.stringify` calls this. */
  toJSON(): MemoryDocument {
    return { format: "fwm-memory", version: 1, ...this.#options(), weights: Array.from(this.weights) };
  }

  /** A memory from what `toJSON` gave; anything else is a `DataError`. */
  static fromJSON(document: unknown): AssociativeMemory {
    const from = (typeof document === "object" ? document : null) as Partial<MemoryDocument> | null;
    if (from?.format !== "fwm-memory" || from.version !== 1 || !Array.isArray(from.weights)) {
      throw new DataError("AssociativeMemory: not the JSON of a memory", {
        expected: 'an object with format "fwm-memory", version 1 and weights',
      });
    }
    const { keySize, valueSize, scale, keys, precision } = from;
    const known = [keys === "product" || keys === "concat", precision === "f32" || precision === "f64"];
    if (known.includes(false))
      throw new DataError("AssociativeMemory: unknown keys or precision in the JSON");
    const sizes = [keySize, valueSize].every((size) => Number.isSafeInteger(size) && size! > 0);
    if (!sizes || !(typeof scale === "number" && Number.isFinite(scale) && scale > 0)) {
      throw new DataError("AssociativeMemory: missing or impossible sizes or scale in the JSON");
    }
    const memory = new AssociativeMemory({ keySize, valueSize, scale, keys, precision } as MemoryOptions);
    const weights: readonly unknown[] = from.weights;
    if (weights.length !== memory.weights.length || !weights.every(Number.isFinite)) {
      throw new DataError("AssociativeMemory: the weights in the JSON do not fit its sizes", {
        expected: `${memory.weights.length} finite numbers`,
        found: weights.length,
      });
    }
    memory.weights.set(weights as readonly number[]);
    if (!memory.weights.every(Number.isFinite)) {
      throw new DataError(`AssociativeMemory: a weight in the JSON is too large for ${precision}`);
    }
    return memory;
  }

  #options(): Required<Omit<MemoryOptions, "size">> {
    const { keySize, valueSize, scale, keys, weights } = this;
    return { keySize, valueSize, scale, keys, precision: weights instanceof Float64Array ? "f64" : "f32" };
  }

  #checkKeys(what: string, first: Vector, second: Vector): void {
    checkVector(what, what === "write" ? "k1" : "n", first, this.keySize);
    checkVector(what, what === "write" ? "k2" : "e", second, this.keySize);
  }
}

function wholeSize(name: string, value: number | undefined): number {
  if (value !== undefined && Number.isSafeInteger(value) && value >= 1 && value <= 65_536) return value;
  throw new UsageError(`AssociativeMemory: ${name} must be a whole number from 1 to 65536, not ${value}`, {
    hint: "give size, or keySize and valueSize",
  });
}

function tooLarge(what: string, which: string): UsageError {
  return new UsageError(`${what}: the numbers are too large to compute with; the memory is as it was`, {
    hint: `give smaller ${which}; lengths of about 1 are usual`,
  });
}

function checkVector(what: string, name: string, vector: Vector, size: number): void {
  if (vector.length !== size) {
    throw new ShapeError(`${what}: ${name} has ${vector.length} numbers, ${size} are needed`);
  }
  for (let i = 0; i < size; i++) {
    if (!Number.isFinite(vector[i])) throw new ShapeError(`${what}: ${name}[${i}] is ${vector[i]}`);
  }
}
