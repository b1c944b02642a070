/**
 * The writes of a window as a fixed point: the form of `fwmWindow.ts` without its loop over tokens. Equations 3 and 4.
 *
 *   code     meaning                                                                       shape
 *   r        e^σ; the memory was scaled down by so much before token t                     [B, C]
 *   e        r_t (v_t - vOld_t): what is missing, in units of the memory at the start      [B, C, D]
 *   N        κ_t · κ_i β_i for i < t, so that (I + N) e = r v - P                          [B, C, C]
 *   M        (I + N)⁻¹                                                                     [B, C, C]
 *   g        |F'_t|² - |F_{t-1}|²: what a write adds to the squared norm                   [B, C]
 *   n        |F'_t|²                                                                       [B, C]
 *
 *   blocks of C tokens; the other names are those of fwmWindow.ts
 *
 * Given σ, all writes of a block are one product, e = M (r v - P), and give g. Given g, the norm is a sum with an upper
 * limit, whose closed form needs no loop, and gives σ_t = Σ_{s < t} ½ log max(1, n_s). The two are applied in turn until σ
 * stays: token t is right after t rounds at the latest, after 6 to 14 of 25 in training (docs/decisions.md).
 *
 * The gradient is that of the fixed point: σ = φ(σ, θ) gives dσ = (I - J)⁻¹ ∂φ/∂θ dθ with J = ∂φ/∂σ, which is strictly
 * lower triangular. The rounds themselves are not differentiated.
 *
 * Numbers in units of the start grow as r. A block that scales the memory down by more than float32 can hold, or has
 * not converged, shows in the residual; the window is then to be computed by `fwmScan.ts`.
 */
import {
  add,
  cast,
  concat,
  constant,
  div,
  equal,
  exp,
  gatherRows,
  greater,
  lessEqual,
  log,
  lowerTriangle,
  matmul,
  max,
  min,
  mul,
  neg,
  pad,
  reduceMax,
  relu,
  reshape,
  scan,
  slice,
  split,
  stopGradient,
  sub,
  sum,
  type Tensor,
  transpose,
  unsqueeze,
  withValue,
  zeros,
} from "../graph/index.ts";
import { combine, type KeyCombination, similarity, squaredKey, type WriteVectors } from "./fwm.ts";
import { inChunks, squaredNorm, type WindowWrites, type WrittenMemory } from "./fwmWrites.ts";

/** How the fixed point is found. */
export interface FixedPointOptions {
  /** Tokens between two passes over the D³ weights, where all positions are read. */
  readonly chunk?: number;
  /** Tokens per block; see docs/decisions.md. */
  readonly block?: number;
  /** Rounds in a block; as many as tokens are always enough. */
  readonly rounds?: number;
}

/** Largest σ in a block: squares of e^38 are within float32. */
const largestSigma = 38;

/** By how much the last round may still have changed σ, relative to 1 + σ: some roundings of float32. */
const tolerance = 1e-5;

/** Writes a window: vectors [T, B, ·], β with the mask in it. */
export function writeByFixedPoint(
  keys: KeyCombination,
  { k1, k2, v, beta }: WriteVectors,
  F: Tensor,
  mask: Tensor | undefined,
  { chunk = 100, block = 25, rounds = 16 }: FixedPointOptions,
): WindowWrites {
  const parts = inChunks([k1, k2, v, beta, ...(mask ? [mask] : [])], chunk);
  let memory = F;
  const writes = parts.map(([a, b, values, strength, alive]) => {
    const vectors = { k1: a!, k2: b!, v: values!, beta: strength! };
    const made = writeChunk(keys, vectors, memory, alive, Math.min(block, values!.shape[0]!), rounds);
    memory = made.after;
    return made;
  });
  return {
    after: memory,
    residual: largest(writes),
    everywhere: () => writes.map(readableEverywhere),
    at: (positions) => readableAt(joinChunks(writes), positions),
  };
}

/** The largest residual (see `WindowOutput`), or NaN if anything is not finite: a maximum may pass over what a sum does not. */
function largest(writes: readonly ChunkWrites[]): Tensor {
  const all = concat(
    writes.map(({ residual }) => residual),
    1,
  );
  const sums = writes.map(({ U }) => sum(U)).reduce((total, next) => add(total, next), sum(all));
  return add(reduceMax(all), mul(sums, 0));
}

/** The writes of one chunk, [B, T, ·]: keys, updates, log of the scale before and after each token, residuals. */
interface ChunkWrites {
  readonly F: Tensor;
  readonly k1: Tensor;
  readonly k2: Tensor;
  readonly U: Tensor;
  readonly sigma: Tensor;
  readonly rho: Tensor;
  readonly after: Tensor;
  readonly residual: Tensor;
}

function writeChunk(
  keys: KeyCombination,
  vectors: WriteVectors,
  F: Tensor,
  mask: Tensor | undefined,
  C: number,
  rounds: number,
): ChunkWrites {
  const [T, B] = vectors.v.shape as [number, number, number];
  const count = Math.ceil(T / C);
  const missing = count * C - T;
  // Tokens that fill the last block up are padding.
  const alive = mask ?? (missing > 0 ? constant(new Float32Array(T * B).fill(1), [T, B]) : undefined);
  const inBlocks = (x: Tensor): Tensor =>
    transpose(reshape(pad(x, 0, 0, missing), [count, C, B, -1]), [0, 2, 1, 3]); // [count, B, C, ·]
  const flat = (x: Tensor): Tensor => reshape(x, x.shape.slice(0, -1));
  const [k1, k2, v] = [vectors.k1, vectors.k2, vectors.v].map(inBlocks) as [Tensor, Tensor, Tensor];
  const beta = flat(inBlocks(vectors.beta));
  const N = mul(lowerTriangle(similarity(keys, k1, k2, k1, k2), -1), unsqueeze(beta, -2));
  const each = (x: Tensor): Tensor[] => split(x, count, 0).map((part) => reshape(part, x.shape.slice(1)));
  const blocks = {
    k1: each(k1),
    k2: each(k2),
    v: each(v),
    beta: each(beta),
    kk: each(flat(squaredKey(keys, k1, k2))),
    N: each(N),
    M: each(stopGradient(unitInverse(N))),
    alive: alive && each(flat(inBlocks(unsqueeze(alive, -1)))),
  };
  const rows1 = transpose(vectors.k1, [1, 0, 2]);
  const rows2 = transpose(vectors.k2, [1, 0, 2]);
  const K = combine(keys, rows1, rows2);
  const fromStart = split(pad(matmul(K, F), 1, 0, missing), count, 1);

  let m = squaredNorm(F);
  let total: Tensor | undefined; // [B, 1]: σ after the blocks so far
  let kept: Tensor | undefined; // [B, t, D]: what is left of their updates
  const made = blocks.v.map((_, c) => {
    let P = fromStart[c]!;
    if (total && kept) {
      const past = [rows1, rows2].map((rows) => slice(rows, 1, 0, c * C)) as [Tensor, Tensor];
      const scores = similarity(keys, blocks.k1[c]!, blocks.k2[c]!, ...past);
      P = add(mul(unsqueeze(exp(neg(total)), -1), P), matmul(scores, kept));
    }
    const written = writeBlock(
      {
        v: blocks.v[c]!,
        P,
        beta: blocks.beta[c]!,
        kk: blocks.kk[c]!,
        N: blocks.N[c]!,
        M: blocks.M[c]!,
        alive: blocks.alive?.[c],
        m,
      },
      Math.min(rounds, C),
    );
    const last = slice(written.rho, 1, C - 1); // [B, 1]
    const all = kept ? concat([kept, written.e], 1) : written.e;
    kept = mul(all, unsqueeze(exp(neg(last)), -1));
    const before = total;
    total = before ? add(before, last) : last;
    m = written.m;
    const sofar = (x: Tensor): Tensor => (before ? add(before, x) : x);
    return { ...written, sigma: sofar(written.sigma), rho: sofar(written.rho) };
  });
  const joined = (pick: (block: (typeof made)[number]) => Tensor): Tensor =>
    slice(concat(made.map(pick), 1), 1, 0, T);
  return {
    F,
    k1: rows1,
    k2: rows2,
    U: joined(({ U }) => U),
    sigma: joined(({ sigma }) => sigma),
    rho: joined(({ rho }) => rho),
    after: add(mul(unsqueeze(exp(neg(total!)), -1), F), matmul(K, slice(kept!, 1, 0, T), { transA: true })),
    residual: joined(({ residual }) => residual),
  };
}

/** (I + N)⁻¹ for a strictly lower triangular N [..., C, C], by blocks of 2, 4, 8, … on the diagonal. */
function unitInverse(N: Tensor): Tensor {
  const C = N.shape.at(-1)!;
  const corner = (b: number): Tensor =>
    mul(
      N,
      matrix(
        C,
        (t, i) => Math.floor(t / (2 * b)) === Math.floor(i / (2 * b)) && t % (2 * b) >= b && i % (2 * b) < b,
      ),
    );
  let M = sub(
    matrix(C, (t, i) => t === i),
    corner(1),
  );
  for (let b = 2; b < C; b *= 2) M = sub(M, matmul(matmul(M, corner(b)), M));
  return M;
}

/** A constant [C, C] of ones and zeros. */
function matrix(C: number, isOne: (row: number, column: number) => boolean): Tensor {
  return constant(
    Float32Array.from({ length: C * C }, (_, at) => (isOne(Math.floor(at / C), at % C) ? 1 : 0)),
    [C, C],
  );
}

/** What a block is written from: v, P [B, C, D]; β, |κ|², mask [B, C]; N, M [B, C, C]; m [B, 1]. */
interface Block {
  readonly v: Tensor;
  readonly P: Tensor;
  readonly beta: Tensor;
  readonly kk: Tensor;
  readonly N: Tensor;
  readonly M: Tensor;
  readonly alive: Tensor | undefined;
  readonly m: Tensor;
}

/** What a block leaves behind: β e and updates [B, C, D]; σ before and after each token, residual [B, C]; |F|² [B, 1]. */
interface WrittenBlock {
  readonly e: Tensor;
  readonly U: Tensor;
  readonly sigma: Tensor;
  readonly rho: Tensor;
  readonly m: Tensor;
  readonly residual: Tensor;
}

function writeBlock(block: Block, rounds: number): WrittenBlock {
  const { v, P, beta, kk, N, M, m } = block;
  const [B, C] = v.shape as [number, number, number];
  const column = (x: Tensor): Tensor => unsqueeze(x, -1);
  const overTime = (x: Tensor, isBefore: Tensor): Tensor => matmul(x, isBefore);
  const before = matrix(C, (s, t) => s < t);
  const upTo = matrix(C, (s, t) => s <= t);
  const masked = (x: Tensor): Tensor => (block.alive ? mul(x, block.alive) : x);
  const twice = mul(v, 2);
  const curvature = sub(mul(beta, kk), 2);

  // (I + N) e = y                                                                                           (3)
  const given = (sigma: Tensor): { r: Tensor; y: Tensor } => {
    const r = exp(min(sigma, largestSigma));
    return { r, y: sub(mul(column(r), v), P) };
  };
  // |F'|² - |F|² = u · (2 vOld + |κ|² u)
  const gain = (e: Tensor, r: Tensor): Tensor => {
    const squares = div(mul(curvature, sum(mul(e, e), { axes: -1 })), r);
    return div(mul(beta, add(sum(mul(e, twice), { axes: -1 }), squares)), r);
  };
  /** |F'|² from the gains: m_t = min(m_{t-1} + g_t, 1) is the sum less the most by which it was above 1 so far. */
  const normOf = (g: Tensor): Tensor => {
    // A gain above 1 reaches the limit from anywhere; cut there, the sums stay small.
    const bounded = min(g, 1);
    const excess = masked(relu(sub(add(overTime(bounded, upTo), m), 1)));
    const most = reduceMax(mul(column(excess), before), { axes: 1 });
    return add(sub(add(overTime(bounded, before), m), most), g);
  };
  const growth = (n: Tensor): Tensor => mul(log(max(masked(n), 1)), 0.5); //                                 (4)

  const { carry } = scan({ carry: [zeros([B, C])], length: rounds }, ([sigma]) => {
    const { r, y } = given(sigma!);
    return { carry: [overTime(growth(normOf(gain(matmul(M, y), r))), before)] };
  });
  const sigma = stopGradient(carry[0]!);

  /** e and g, with the gradient of (I + N)⁻¹ y: dy = Mᵀ de, dN = -dy eᵀ. */
  const solve = (at: Tensor): { r: Tensor; e: Tensor; g: Tensor } => {
    const { r, y } = given(at);
    const solved = stopGradient(matmul(M, y));
    const e = matmul(M, withValue(sub(y, matmul(N, solved)), stopGradient(y)));
    return { r, e, g: gain(e, r) };
  };
  const first = solve(sigma);
  const n = stopGradient(normOf(first.g));
  const isLimited = cast(greater(masked(n), 1), "f32");
  const limits = overTime(isLimited, before); // limits before each token
  const since = cast(equal(column(limits), unsqueeze(limits, -2)), "f32");
  // E[t, i]: write i ≤ t adds to |F'_t|², no limit lies between.
  const E = lowerTriangle(since);
  const untouched = mul(cast(equal(limits, 0), "f32"), m);
  const norm = (g: Tensor): Tensor => withValue(add(reshape(matmul(E, column(g)), [B, C]), untouched), n);
  const phi = overTime(growth(norm(first.g)), before);

  // J = ∂φ/∂σ through ∂g_t/∂σ_i = 2 β (v + (β |κ|² - 2) e / r) · ∂(e / r)/∂σ_i
  const J = stopGradient(jacobian());
  function jacobian(): Tensor {
    const { r, e } = first;
    const actual = div(e, column(r));
    const slope = mul(column(beta), add(twice, mul(column(mul(curvature, 2)), actual)));
    const crossed = matmul(div(slope, column(r)), mul(column(r), v), { transB: true });
    const own = mul(
      column(sum(mul(slope, actual), { axes: -1 })),
      matrix(C, (t, i) => t === i),
    );
    const perGain = mul(E, column(div(mul(isLimited, 0.5), n)));
    return matmul(
      matrix(C, (t, s) => s < t),
      matmul(perGain, sub(mul(M, crossed), own)),
    );
  }
  // (I - J)⁻¹ = (I + J)(I + J²)(I + J⁴) …
  let corrected = column(phi);
  let power = J;
  for (let k = 1; k < C; k *= 2) {
    corrected = add(corrected, matmul(power, corrected));
    power = matmul(power, power);
  }
  const out = withValue(reshape(corrected, [B, C]), sigma);

  const { r, e, g } = solve(out);
  const rho = overTime(growth(norm(g)), upTo);
  const limitsInAll = sum(isLimited, { axes: -1, keep: true });
  const sinceLast = mul(cast(equal(limits, limitsInAll), "f32"), g);
  const last = slice(n, 1, C - 1);
  const above = relu(sub(block.alive ? mul(last, slice(block.alive, 1, C - 1)) : last, 1));
  const scaled = mul(column(beta), e);
  const change = sub(phi, sigma);
  return {
    e: scaled,
    U: div(scaled, column(r)),
    sigma: out,
    rho,
    m: withValue(
      add(sum(sinceLast, { axes: -1, keep: true }), mul(cast(equal(limitsInAll, 0), "f32"), m)),
      stopGradient(sub(last, above)),
    ),
    residual: stopGradient(
      max(div(max(change, neg(change)), mul(add(sigma, 1), tolerance)), sub(sigma, largestSigma - 1)),
    ),
  };
}

/** The memory as every token of a chunk sees it. */
function readableEverywhere({ F, k1, k2, U, sigma, rho }: ChunkWrites): WrittenMemory {
  const now = unsqueeze(rho, -1);
  const left = exp(min(sub(unsqueeze(sigma, -2), now), 0));
  return { F, a: exp(neg(now)), k1, k2, U, w: lowerTriangle(left) };
}

/** The writes of several chunks as those of one: what was scaled down before a chunk counts for all that follows. */
function joinChunks(
  chunks: readonly ChunkWrites[],
): Pick<ChunkWrites, "F" | "k1" | "k2" | "U" | "sigma" | "rho"> {
  let before: Tensor | undefined; // [B, 1]: σ after the chunks so far
  const scales = chunks.map(({ sigma, rho }) => {
    const sofar = (x: Tensor): Tensor => (before ? add(before, x) : x);
    const joined = { sigma: sofar(sigma), rho: sofar(rho) };
    before = slice(joined.rho, 1, rho.shape[1]! - 1);
    return joined;
  });
  const along = (parts: readonly Tensor[]): Tensor => (parts.length === 1 ? parts[0]! : concat(parts, 1));
  return {
    F: chunks[0]!.F,
    k1: along(chunks.map(({ k1 }) => k1)),
    k2: along(chunks.map(({ k2 }) => k2)),
    U: along(chunks.map(({ U }) => U)),
    sigma: along(scales.map(({ sigma }) => sigma)),
    rho: along(scales.map(({ rho }) => rho)),
  };
}

/** The memory as the tokens at positions t · B + b, [B, Q], see it. */
function readableAt(
  { F, k1, k2, U, sigma, rho }: ReturnType<typeof joinChunks>,
  positions: Tensor,
): WrittenMemory {
  const [B, T] = rho.shape as [number, number];
  const now = gatherRows(reshape(transpose(rho), [T * B, 1]), positions); // [B, Q, 1]
  const starts = constant(
    Array.from({ length: T }, (_, t) => t * B),
    [T],
    "i32",
  );
  const isWritten = cast(lessEqual(starts, unsqueeze(positions, -1)), "f32");
  const left = exp(min(sub(unsqueeze(sigma, -2), now), 0));
  return { F, a: exp(neg(now)), k1, k2, U, w: mul(left, isWritten) };
}
