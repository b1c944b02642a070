/**
 * Fast Weight Memory over a window of tokens at once: the exact parallel form of `fwm.ts`.
 *
 *   code   meaning                                                    shape
 *   K      keys κ_t = vec(k1_t ⊗ k2_t)                                [B, C, K]
 *   G      κ_t · κ_i = (k1_t · k1_i)(k2_t · k2_i)                     [B, C, C]
 *   P      what the keys retrieve from the memory at the start, K F   [B, C, D]
 *   u      update β (v - vOld); row i of U                            [B, D], [B, C, D]
 *   s      1 / max(1, |F'|): how much the write scales memory down    [B, 1]
 *   a      product of the s so far: share of F left                   [B, 1]
 *   w      product of the s since write i: share of write i left      [B, C]
 *   m      |F|²                                                       [B, 1]
 *
 *   T tokens, in chunks of C; B batch, D memory, K = D² (or 2D for concatenated keys)
 *
 * F_t = a_t F + Σ_{i ≤ t} w_t[i] κ_i u_iᵀ. Inside a chunk only u, s, a, w and m go from token to token, and
 * these are small; the D³ weights are touched once per chunk. The norm needs no pass over F:
 * |F'_t|² = |F_{t-1}|² + u · (2 vOld + |κ_t|² u). All products are of numbers in (0, 1]: nothing is divided.
 *
 * A memory that starts empty is given as no F at all: its terms are left out, and if the window is one chunk and
 * nobody asks for the memory after it, no D³ weights are ever made.
 */
import {
  add,
  concat,
  constant,
  div,
  gatherRows,
  layerNorm,
  matmul,
  max,
  min,
  mul,
  pad,
  reshape,
  scan,
  scoped,
  split,
  sqrt,
  squeeze,
  sub,
  sum,
  type Tensor,
  transpose,
  unsqueeze,
  zeros,
} from "../graph/index.ts";
import {
  combine,
  type FwmWeights,
  fwmOutput,
  type KeyCombination,
  readVectors,
  type WriteVectors,
  writeVectors,
} from "./fwm.ts";

/** Tokens per chunk: the fastest of 10, 20, 40, 50 and 100 at the paper's size; see docs/decisions.md. */
const defaultChunk = 50;

/** Choices for a window. */
export interface FwmWindowOptions {
  /** [T, B] f32; where it is 0 nothing is written and the memory stays as it is. */
  readonly mask?: Tensor;
  /** Read only at these positions: i32 [B, Q], each t · B + b for a token t of row b. */
  readonly positions?: Tensor;
  readonly chunk?: number;
}

/** Everything a read of some positions needs of the memory they see. */
interface Readable {
  /** Memory before the writes below, [B, K, D]; absent when it is empty. */
  readonly F: Tensor | undefined;
  /** Share of F left at each position, [B, Q, 1]. */
  readonly a: Tensor;
  /** Keys and updates of the writes, [B, N, D] each. */
  readonly k1: Tensor;
  readonly k2: Tensor;
  readonly U: Tensor;
  /** Share of each write left at each position, [B, Q, N]; 0 for later ones. */
  readonly w: Tensor;
}

/**
 * A window: h [T, B, H] and the memory before it give the layer's output, [T, B, H] or [B, Q, H] at the
 * positions, and the memory after it.
 */
export function fwmWindow(
  w: FwmWeights,
  h: Tensor,
  F: Tensor | undefined,
  { mask, positions, chunk = defaultChunk }: FwmWindowOptions = {},
): { y: Tensor; F: Tensor } {
  const writes = scoped("fwm/write", () => {
    const vectors = writeVectors(w, h);
    const beta = mask ? mul(vectors.beta, unsqueeze(mask, -1)) : vectors.beta;
    return writeWindow(w.variant.keys, { ...vectors, beta }, F, mask, chunk);
  });
  return scoped("fwm/read", () => {
    if (positions) {
      const [T, B, H] = h.shape as [number, number, number];
      const hq = gatherRows(reshape(h, [T * B, H]), positions);
      const n = readAll(w, hq, readableAt(writes, F, positions));
      return { y: fwmOutput(w, hq, n), F: writes.at(-1)!.after };
    }
    const hb = transpose(h, [1, 0, 2]);
    const parts = split(
      hb,
      writes.map(({ U }) => U.shape[1]!),
      1,
    );
    const n = writes.map((write, i) => readAll(w, parts[i]!, write));
    const y = fwmOutput(w, h, transpose(concat(n, 1), [1, 0, 2]));
    return { y, F: writes.at(-1)!.after };
  });
}

/** What the writes of one chunk left behind. */
interface ChunkWrites extends Readable {
  readonly after: Tensor;
}

/** Writes a whole window: vectors are [T, B, ·], time first. */
function writeWindow(
  keys: KeyCombination,
  { k1, k2, v, beta }: WriteVectors,
  F: Tensor | undefined,
  mask: Tensor | undefined,
  chunk: number,
): ChunkWrites[] {
  const T = v.shape[0]!;
  const sizes = Array.from({ length: Math.ceil(T / chunk) }, (_, c) => Math.min(chunk, T - c * chunk));
  const square = (x: Tensor): Tensor => sum(mul(x, x), { axes: -1, keep: true });
  const join = keys === "product" ? mul : add;
  const inTime = [v, beta, join(square(k1), square(k2)), ...(mask ? [unsqueeze(mask, -1)] : [])].map((x) =>
    split(x, sizes, 0),
  );
  const byRow = [k1, k2].map((k) => split(transpose(k, [1, 0, 2]), sizes, 1));
  let memory = F;
  return sizes.map((_, c) => {
    const write = writeChunk(
      keys,
      byRow.map((parts) => parts[c]!),
      inTime.map((parts) => parts[c]!),
      memory,
    );
    memory = write.after;
    return write;
  });
}

function writeChunk(
  keys: KeyCombination,
  [k1, k2]: readonly Tensor[],
  [v, beta, squaredKey, mask]: readonly Tensor[],
  F: Tensor | undefined,
): ChunkWrites {
  const [C, B, D] = v!.shape as [number, number, number];
  const K = combine(keys, k1!, k2!);
  const G = similarity(keys, k1!, k2!, k1!, k2!);
  const { carry, ys } = scan(
    {
      carry: [
        zeros([B, C, D]),
        zeros([B, C]),
        constant(new Float32Array(B).fill(1), [B, 1]),
        F ? squaredNorm(F) : zeros([B, 1]),
      ],
      xs: [
        transpose(G, [1, 0, 2]),
        v!,
        beta!,
        squaredKey!,
        identity(C),
        ...(mask ? [mask] : []),
        ...(F ? [transpose(matmul(K, F), [1, 0, 2])] : []), // P
      ],
    },
    ([U, w, a, m], [Gt, vt, betat, k, here, ...rest]) => {
      const alive = mask && rest[0];
      const Pt = F && rest.at(-1)!;
      const old = squeeze(matmul(unsqueeze(mul(w!, Gt!), 1), U!), 1);
      const vOld = Pt ? add(mul(a!, Pt), old) : old;
      const u = mul(betat!, sub(vt!, vOld));
      const gain = sum(mul(u, add(mul(vOld, 2), mul(k!, u))), { axes: -1, keep: true });
      const norm = add(m!, gain);
      // s² = 1 / max(1, |F'|²); a masked token must not even round the memory.
      const s = sqrt(div(1, max(alive ? mul(norm, alive) : norm, 1)));
      const left = mul(add(w!, here!), s);
      const share = mul(a!, s);
      const rows = add(U!, mul(reshape(here!, [C, 1]), unsqueeze(u, 1)));
      return { carry: [rows, left, share, alive ? mul(norm, mul(s, s)) : min(norm, 1)], ys: [left, share] };
    },
  );
  const [U, wEnd, aEnd] = carry as [Tensor, Tensor, Tensor];
  const kept = mul(unsqueeze(wEnd, -1), U);
  const written = matmul(K, kept, { transA: true });
  const after = F ? add(mul(unsqueeze(aEnd, -1), F), written) : written;
  return {
    F,
    k1: k1!,
    k2: k2!,
    U,
    w: transpose(ys[0]!, [1, 0, 2]),
    a: transpose(ys[1]!, [1, 0, 2]),
    after,
  };
}

/** κ_t · κ_i for keys given by their halves: [B, Q, D] and [B, N, D] → [B, Q, N]. */
export function similarity(keys: KeyCombination, n: Tensor, e: Tensor, k1: Tensor, k2: Tensor): Tensor {
  const join = keys === "product" ? mul : add;
  return join(matmul(n, k1, { transB: true }), matmul(e, k2, { transB: true }));
}

function squaredNorm(F: Tensor): Tensor {
  return squeeze(sum(mul(F, F), { axes: [1, 2], keep: true }), 2);
}

function identity(C: number): Tensor {
  return constant(
    Float32Array.from({ length: C * C }, (_, i) => (i % (C + 1) === 0 ? 1 : 0)),
    [C, C],
  );
}

/** All reads of some positions: h [B, Q, H] → n^(N_r) [B, Q, D]. Equation 7 for every position at once. */
function readAll(w: FwmWeights, h: Tensor, memory: Readable): Tensor {
  const { keys } = w.variant;
  const { n: first, e } = readVectors(w, h);
  return e.reduce((n, key) => {
    const scores = mul(similarity(keys, n, key, memory.k1, memory.k2), memory.w);
    const written = matmul(scores, memory.U);
    if (!memory.F) return layerNorm(written);
    const fromStart = mul(memory.a, matmul(combine(keys, n, key), memory.F));
    return layerNorm(add(fromStart, written));
  }, first);
}

/** The memory as the queried positions see it: the window's start and all its writes, whatever the chunk. */
function readableAt(writes: readonly ChunkWrites[], F: Tensor | undefined, positions: Tensor): Readable {
  const B = positions.shape[0]!;
  const T = writes.reduce((total, { U }) => total + U.shape[1]!, 0);
  const rows: Tensor[] = [];
  let shareBefore: Tensor | undefined; // [B, 1, 1]: of F
  let leftBefore: Tensor | undefined; // [B, 1, t]: of the writes of earlier chunks
  for (const { w, a } of writes) {
    const C = w.shape[1]!;
    const left = leftBefore ? concat([mul(a, leftBefore), w]) : w;
    const share = shareBefore ? mul(a, shareBefore) : a;
    rows.push(concat([pad(left, -1, 0, T - left.shape[2]!), share]));
    leftBefore = lastRow(left, C);
    shareBefore = lastRow(share, C);
  }
  // Row t · B + b of [T · B, T + 1]
  const all = reshape(transpose(concat(rows, 1), [1, 0, 2]), [T * B, T + 1]);
  const [w, a] = split(gatherRows(all, positions), [T, 1]) as [Tensor, Tensor];
  const joined = (pick: (write: ChunkWrites) => Tensor): Tensor => concat(writes.map(pick), 1);
  return { F, w, a, k1: joined(({ k1 }) => k1), k2: joined(({ k2 }) => k2), U: joined(({ U }) => U) };
}

function lastRow(x: Tensor, C: number): Tensor {
  return C === 1 ? x : split(x, [C - 1, 1], 1)[1]!;
}
