/**
 * The writes of a window as a loop over its tokens, chunk by chunk: equations 3 and 4 in the form of `fwmWindow.ts`.
 *
 * The loop carries
 *
 *   code   meaning                                                    shape
 *   U      updates so far, 0 for those to come                        [B, C, D]
 *   w      product of the s since write i: share of write i left      [B, C]
 *   a      product of the s so far: share of F left                   [B, 1]
 *   m      |F|²                                                       [B, 1]
 *
 * All products are of numbers in (0, 1]: nothing is divided, nothing can overflow.
 */
import {
  add,
  concat,
  constant,
  div,
  gatherRows,
  matmul,
  max,
  min,
  mul,
  pad,
  reshape,
  scan,
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
import { combine, type KeyCombination, similarity, squaredKey, type WriteVectors } from "./fwm.ts";
import { inChunks, squaredNorm, type WindowWrites, type WrittenMemory } from "./fwmWrites.ts";

/** Writes a window: vectors [T, B, ·], β with the mask in it, in chunks of so many tokens. */
export function writeByScan(
  keys: KeyCombination,
  { k1, k2, v, beta }: WriteVectors,
  F: Tensor,
  mask: Tensor | undefined,
  chunk: number,
): WindowWrites {
  let memory = F;
  const parts = inChunks([k1, k2, v, beta, ...(mask ? [mask] : [])], chunk);
  const writes = parts.map(([a, b, values, strength, alive]) => {
    const write = writeChunk(keys, { k1: a!, k2: b!, v: values!, beta: strength! }, memory, alive);
    memory = write.after;
    return write;
  });
  return { after: memory, everywhere: () => writes, at: (positions) => readableAt(writes, F, positions) };
}

/** What the writes of one chunk left behind. */
interface ChunkWrites extends WrittenMemory {
  readonly after: Tensor;
}

function writeChunk(
  keys: KeyCombination,
  { v, beta, ...vectors }: WriteVectors,
  F: Tensor,
  mask: Tensor | undefined,
): ChunkWrites {
  const [C, B, D] = v.shape as [number, number, number];
  const k1 = transpose(vectors.k1, [1, 0, 2]);
  const k2 = transpose(vectors.k2, [1, 0, 2]);
  const K = combine(keys, k1, k2);
  const G = similarity(keys, k1, k2, k1, k2);
  const P = matmul(K, F);
  const { carry, ys } = scan(
    {
      carry: [zeros([B, C, D]), zeros([B, C]), constant(new Float32Array(B).fill(1), [B, 1]), squaredNorm(F)],
      xs: [
        transpose(G, [1, 0, 2]),
        transpose(P, [1, 0, 2]),
        v,
        beta,
        squaredKey(keys, vectors.k1, vectors.k2),
        identity(C),
        ...(mask ? [unsqueeze(mask, -1)] : []),
      ],
    },
    ([U, w, a, m], [Gt, Pt, vt, betat, k, here, alive]) => {
      const vOld = add(mul(a!, Pt!), squeeze(matmul(unsqueeze(mul(w!, Gt!), 1), U!), 1));
      const u = mul(betat!, sub(vt!, vOld)); //                                                               (3)
      const gain = sum(mul(u, add(mul(vOld, 2), mul(k!, u))), { axes: -1, keep: true });
      const norm = add(m!, gain);
      // s² = 1 / max(1, |F'|²); a masked token must not even round the memory.
      const s = sqrt(div(1, max(alive ? mul(norm, alive) : norm, 1))); //                                     (4)
      const left = mul(add(w!, here!), s);
      const share = mul(a!, s);
      const rows = add(U!, mul(reshape(here!, [C, 1]), unsqueeze(u, 1)));
      return { carry: [rows, left, share, alive ? mul(norm, mul(s, s)) : min(norm, 1)], ys: [left, share] };
    },
  );
  const [U, wEnd, aEnd] = carry as [Tensor, Tensor, Tensor];
  const written = matmul(K, mul(unsqueeze(wEnd, -1), U), { transA: true });
  const after = add(mul(unsqueeze(aEnd, -1), F), written);
  return { F, k1, k2, U, w: transpose(ys[0]!, [1, 0, 2]), a: transpose(ys[1]!, [1, 0, 2]), after };
}

function identity(C: number): Tensor {
  return constant(
    Float32Array.from({ length: C * C }, (_, i) => (i % (C + 1) === 0 ? 1 : 0)),
    [C, C],
  );
}

/** The memory as the queried positions see it: the window's start and all its writes, whatever the chunk. */
function readableAt(writes: readonly ChunkWrites[], F: Tensor, positions: Tensor): WrittenMemory {
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
