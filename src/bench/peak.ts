/** The machine's matmul rate: the best of several shapes and repeats, measured around what is compared with it. */
import { input, matmul } from "../graph/index.ts";
import { nodeRuntime } from "../runtime/node.ts";
import { compile, type Program } from "../runtime/program.ts";
import { elapsed, filled, summary } from "./measure.ts";

/** Products [m, k] · [k, n]: a large square one, and tall ones such as windows of tokens have. */
const shapes = [
  [1024, 1024, 1024],
  [2048, 1024, 512],
  [6400, 256, 1024],
  [12800, 512, 512],
] as const;

/** Products to be timed; `best` is the highest rate seen so far, in GFLOPS. */
class MatmulPeak {
  best = 0;

  private constructor(
    private readonly products: readonly {
      readonly program: Program;
      readonly feeds: Record<string, Float32Array>;
      readonly flops: number;
    }[],
  ) {}

  /** Compiles the products. */
  static async open(threads: { readonly threads?: number }): Promise<MatmulPeak> {
    const products = [];
    for (const [m, k, n] of shapes) {
      const program = await compile(
        { outputs: { y: matmul(input("a", [m, k]), input("b", [k, n])) } },
        { runtime: nodeRuntime, ...threads },
      );
      products.push({ program, feeds: { a: filled(m * k), b: filled(k * n, 0.1, 2) }, flops: 2 * m * k * n });
    }
    return new MatmulPeak(products);
  }

  /** Times every product once more. */
  async measure(): Promise<void> {
    for (const { program, feeds, flops } of this.products) {
      const ms = await elapsed(() => program.run(feeds));
      this.best = Math.max(this.best, flops / ms / 1e6);
    }
  }

  /** Frees the compiled products. */
  async release(): Promise<void> {
    for (const { program } of this.products) await program.release();
  }
}

/** Times every product is measured before, and again after, the steps. */
const repeats = 5;

/** Times steps with the peak measured before, between and after them; what they need is then a share of it. */
export async function timedBesidePeak(
  run: (step: number) => Promise<unknown>,
  steps: number,
  threads: { readonly threads?: number },
) {
  const peak = await MatmulPeak.open(threads);
  for (let i = 0; i < repeats; i++) await peak.measure();
  const times: number[] = [];
  for (let step = 0; step < steps; step++) {
    times.push(await elapsed(() => run(step)));
    await peak.measure();
  }
  for (let i = 0; i < repeats; i++) await peak.measure();
  await peak.release();
  const { median, least, most } = summary(times);
  return {
    stepMs: median,
    /** The row's rates when a step needs so many operations and is so much work. */
    rates(flops: number, work: number) {
      const share = (ms: number): number => flops / ms / 1e6 / peak.best;
      return {
        perSecond: (1000 * work) / median,
        stepMs: median,
        leastMs: least,
        peakMemoryMB: process.resourceUsage().maxRSS / 1024,
        gflops: flops / median / 1e6,
        shareOfPeak: { median: share(median), least: share(most), most: share(least) },
      };
    },
  };
}
