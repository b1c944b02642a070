/** The Fast Weight Memory token by token in plain loops: the paper's equations once more, sharing no code. */
import type { FwmVariant } from "../../src/model/fwm.ts";

/** Sizes: time, batch, hidden, memory, reads. */
export interface MemorySizes {
  readonly T: number;
  readonly B: number;
  readonly H: number;
  readonly D: number;
  readonly R: number;
}

/** Arrays of a layer in row-major order: h [T][B][H], F [B][K][D], matrices [in][out]. */
export interface MemoryArrays {
  readonly h: Float64Array;
  readonly F: Float64Array;
  readonly writeW: Float64Array;
  readonly readW: Float64Array;
  readonly outW: Float64Array;
  readonly writeB?: Float64Array;
  readonly readB?: Float64Array;
  readonly outB?: Float64Array;
  /** [T][B]; at 0 the memory stays as it is. */
  readonly mask?: Float64Array;
}

type Vector = number[];

/** A write of the window: its key, the length of its update, and how much of it is left. */
interface Written {
  readonly t: number;
  readonly k: Vector;
  readonly size: number;
  left: number;
}

/**
 * Outputs [T][B][H], the memory after the window, and how large it became before it was scaled down; and for every read the
 * share of every token's write in what it gives, [B][T][T].
 */
export function fwmReference(
  variant: FwmVariant,
  { T, B, H, D, R }: MemorySizes,
  arrays: MemoryArrays,
): { y: Float64Array; F: Float64Array; smallest: number; largest: number; shares: Float64Array[] } {
  const K = variant.keys === "product" ? D * D : 2 * D;
  const memory = arrays.F.slice();
  const y = new Float64Array(T * B * H);
  let [smallest, largest] = [Number.POSITIVE_INFINITY, 0];
  const shares = Array.from({ length: R }, () => new Float64Array(B * T * T));
  const writes = Array.from({ length: B }, (): Written[] => []);
  const startLeft = new Float64Array(B).fill(1);
  const length = (x: Vector): number => Math.sqrt(x.reduce((total, value) => total + value * value, 0));

  const affine = (x: Vector, W: Float64Array, b: Float64Array | undefined, out: number): Vector =>
    Array.from({ length: out }, (_, j) =>
      x.reduce((total, value, i) => total + value * W[i * out + j]!, b ? b[j]! : 0),
    );
  const key = (a: Vector, b: Vector): Vector =>
    variant.keys === "product" ? a.flatMap((left) => b.map((right) => left * right)) : [...a, ...b];
  const retrieve = (row: number, k: Vector, from: Float64Array = memory): Vector =>
    Array.from({ length: D }, (_, c) =>
      k.reduce((total, value, n) => total + value * from[(row * K + n) * D + c]!, 0),
    );

  for (let t = 0; t < T; t++) {
    for (let row = 0; row < B; row++) {
      const at = (t * B + row) * H;
      const h = Array.from(arrays.h.subarray(at, at + H));
      if (arrays.mask?.[t * B + row] !== 0) {
        const z = affine(h, arrays.writeW, arrays.writeB, 3 * D + 1);
        const [k1, k2, v] = [0, 1, 2].map((n) => z.slice(n * D, (n + 1) * D).map(Math.tanh)) as [
          Vector,
          Vector,
          Vector,
        ];
        const beta = 1 / (1 + Math.exp(-(z[3 * D]! + variant.betaOffset)));
        const strength = variant.writeScale === "one" ? beta : beta / D;
        const k = key(k1, k2);
        const old = retrieve(row, k);
        let squares = 0;
        for (let n = 0; n < K; n++) {
          for (let c = 0; c < D; c++) {
            memory[(row * K + n) * D + c]! += k[n]! * strength * (v[c]! - old[c]!);
            squares += memory[(row * K + n) * D + c]! ** 2;
          }
        }
        const norm = Math.sqrt(squares);
        [smallest, largest] = [Math.min(smallest, norm), Math.max(largest, norm)];
        if (norm > 1) for (let n = 0; n < K * D; n++) memory[row * K * D + n]! /= norm;
        writes[row]!.push({ t, k, size: strength * length(v.map((value, c) => value - old[c]!)), left: 1 });
        for (const write of writes[row]!) write.left /= Math.max(1, norm);
        startLeft[row]! /= Math.max(1, norm);
      }
      const q = affine(h, arrays.readW, arrays.readB, (1 + R) * D);
      let n = q.slice(0, D).map((x) => (variant.tanhQuery ? Math.tanh(x) : x));
      for (let i = 1; i <= R; i++) {
        const e = q.slice(i * D, (i + 1) * D).map((x) => (variant.tanhKeys ? Math.tanh(x) : x));
        const query = key(n, e);
        const answer = retrieve(row, query);
        const parts = writes[row]!.map(({ k, size, left }) =>
          Math.abs(k.reduce((total, value, j) => total + value * query[j]!, 0) * size * left),
        );
        const all = parts.reduce((a, b) => a + b, startLeft[row]! * length(retrieve(row, query, arrays.F)));
        writes[row]!.forEach((write, j) => {
          shares[i - 1]![(row * T + t) * T + write.t] = parts[j]! / all;
        });
        const mean = answer.reduce((a, b) => a + b, 0) / D;
        const variance = answer.reduce((total, x) => total + (x - mean) ** 2, 0) / D;
        n = answer.map((x) => (x - mean) / Math.sqrt(variance + 1e-5));
      }
      affine(n, arrays.outW, arrays.outB, H).forEach((value, j) => {
        y[at + j] = value + (variant.residual ? h[j]! : 0);
      });
    }
  }
  return { y, F: memory, smallest, largest, shares };
}
