/**
 * The continuous neural cache (Grave, Joulin and Usunier, ICLR 2017): words that followed a similar hidden vector
 * not long ago become more probable.
 *
 *   code      equation                                          shape          meaning
 *   h         h_t                                               [T, B, E]      what the output layer reads at token t
 *   keys      h_(t-W) … h_(t-1)                                 [B, W, E]      hidden vectors of the last W tokens
 *   next      x_(t-W+1) … x_t                                   [B, W]         the word that followed each
 *   p_cache   Σ_i 1[next_i = w] exp(θ h_t · h_i) / Σ_i exp(θ h_t · h_i)        i over the cache
 *   p         (1 - λ) p_model + λ p_cache
 *
 * The word that follows h_t is what is predicted, so h_t itself is not in its own cache, and nothing of the future is:
 * next_i is at most x_t. Before the first word the cache is empty and p is p_model.
 */
import type { TextBatch } from "../../data/text/columns.ts";
import type { TokenStream } from "../../data/text/prepared.ts";
import {
  add,
  and,
  cast,
  concat,
  constant,
  equal,
  greater,
  input,
  matmul,
  mul,
  reshape,
  slice,
  softmax,
  stack,
  state,
  sum,
  type Tensor,
  transpose,
  unsqueeze,
  where,
} from "../../graph/index.ts";
import { ProgramCache } from "../../runtime/cache.ts";
import { type CompileOptions, compile, type ProgramSpec } from "../../runtime/program.ts";
import { State } from "../../runtime/state.ts";
import type { SequenceEvaluator } from "../../train/sequenceEvaluator.ts";
import { type ReadOptions, readText, type Score, Total } from "./score.ts";

/** A cache and its share in predictions. */
export interface CacheSettings {
  /** λ: share of the cache. */
  readonly lambda: number;
  /** θ: how much similarity counts. */
  readonly theta: number;
  /** W: tokens it looks back. */
  readonly window: number;
}

/** What is tried when a cache is tuned: all combinations. */
export const cacheGrid = {
  lambda: [0.02, 0.05, 0.1, 0.15, 0.2, 0.3],
  theta: [0.01, 0.03, 0.1, 0.3, 0.6, 1, 1.5],
  window: [500, 2000],
} as const satisfies Readonly<Record<keyof CacheSettings, readonly number[]>>;

/** The part of a cache that decides p_cache. */
type Lookup = Omit<CacheSettings, "lambda">;

/** Probabilities that caches of several settings give to the next words, window by window. */
export class NeuralCache {
  private readonly programs = new ProgramCache();
  private readonly state = new State();
  /** Tokens per column so far. */
  private position = 0;

  constructor(
    private readonly lookups: readonly Lookup[],
    private readonly options: Omit<CompileOptions, "state">,
  ) {}

  /**
   * p_cache of the targets of a window by each of the settings, [K, B, T]: entry (k, b, t) is at (k B + b) T + t. NaN
   * where the cache is empty. Then the window goes into the cache.
   */
  async probabilities(
    { batch: B, window: T, length, targets }: TextBatch,
    hidden: Float32Array,
  ): Promise<Float32Array> {
    const E = hidden.length / (T * B);
    const program = await this.programs.get(`${B}x${T}x${E}`, () =>
      compile(this.spec(T, B, E), { ...this.options, state: this.state }),
    );
    const { probabilities } = await program.run({ hidden, targets });
    const found = probabilities as Float32Array;
    if (this.position === 0) for (let at = 0; at < found.length; at += T) found[at] = Number.NaN;
    this.position += length;
    return found;
  }

  private spec(T: number, B: number, E: number): ProgramSpec {
    const W = Math.max(...this.lookups.map(({ window }) => window));
    const keys = state("keys", [B, W, E]);
    // Word numbers plus 1; 0 where there is nothing yet.
    const next = state("next", [B, W]);
    const h = transpose(input("hidden", [T, B, E]), [1, 0, 2]); // [B, T, E]
    const targets = add(cast(transpose(input("targets", [T, B], "i32")), "f32"), 1); // [B, T]
    const allKeys = concat([keys, h], 1); // [B, W + T, E]
    const allNext = concat([next, targets], 1); // [B, W + T]
    const similarity = matmul(h, allKeys, { transB: true }); // [B, T, W + T]
    const isTarget = equal(unsqueeze(allNext, 1), unsqueeze(targets, 2));
    const isThere = greater(unsqueeze(allNext, 1), 0.5); // [B, 1, W + T]
    const lookUp = ({ theta, window }: Lookup): Tensor => {
      const seen = and(isThere, lastOnes(T, W, window));
      const share = softmax(where(seen, mul(similarity, theta), hiddenScore));
      return sum(mul(share, cast(and(isTarget, seen), "f32")), { axes: -1 }); // [B, T]
    };
    return {
      name: "cache",
      outputs: { probabilities: stack(this.lookups.map(lookUp)) },
      updates: [
        [keys, slice(allKeys, 1, T)],
        [next, slice(allNext, 1, T)],
      ],
    };
  }

  /** Frees all compiled programs. */
  async release(): Promise<void> {
    await this.programs.release();
  }
}

/** A score that no softmax gives any weight. */
const hiddenScore = -1e30;

/** Where token t of a window looks among W tokens before it and the window itself: the last `window` of t's past, [1, T, W + T]. */
function lastOnes(T: number, W: number, window: number): Tensor {
  const seen = new Float32Array(T * (W + T));
  for (let t = 0; t < T; t++) seen.fill(1, t * (W + T) + W + t - window, t * (W + T) + W + t);
  return greater(reshape(constant(seen, [T, W + T]), [1, T, W + T]), 0.5);
}

/** Loss of a word that a model gives a loss and a cache a probability. */
export function mixedLoss(loss: number, probability: number, lambda: number): number {
  if (Number.isNaN(probability)) return loss;
  return -Math.log((1 - lambda) * Math.exp(-loss) + lambda * probability);
}

/** How a split is read with a cache. */
export interface CacheOptions extends Omit<ReadOptions, "hidden"> {
  readonly compile: Omit<CompileOptions, "state">;
  readonly onWindow?: (() => void) | undefined;
}

/** Scores of a split in one pass: by the model alone, and with caches in the order of their settings. */
export async function scoreCaches(
  evaluator: SequenceEvaluator,
  stream: TokenStream,
  settings: readonly CacheSettings[],
  { compile: how, onWindow, ...read }: CacheOptions,
): Promise<{ plain: Score; cached: Score[] }> {
  const lookups = new Map(settings.map(({ theta, window }) => [`${theta} ${window}`, { theta, window }]));
  const place = new Map([...lookups.keys()].map((key, k) => [key, k]));
  const cache = new NeuralCache([...lookups.values()], how);
  const plain = new Total();
  const totals = settings.map(() => new Total());
  try {
    for await (const { cut, losses, hidden } of readText(evaluator, stream, { ...read, hidden: true })) {
      const { batch: B, window: T } = cut;
      plain.add(cut, losses);
      const found = await cache.probabilities(cut, hidden);
      const mixed = new Float64Array(T * B);
      for (const [i, { lambda, theta, window }] of settings.entries()) {
        const k = place.get(`${theta} ${window}`)!;
        for (let at = 0; at < T * B; at++) {
          const [t, b] = [Math.floor(at / B), at % B];
          mixed[at] = mixedLoss(losses[at]!, found[(k * B + b) * T + t]!, lambda);
        }
        totals[i]!.add(cut, mixed);
      }
      onWindow?.();
    }
  } finally {
    await cache.release();
  }
  return { plain: plain.score(), cached: totals.map((total) => total.score()) };
}

/** All settings of the grid. */
export function cacheCandidates(): CacheSettings[] {
  const { lambda: lambdas, theta: thetas, window: windows } = cacheGrid;
  return windows.flatMap((window) =>
    thetas.flatMap((theta) => lambdas.map((lambda) => ({ lambda, theta, window }))),
  );
}
