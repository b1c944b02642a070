/** The machine's matmul rate, measured beside what is compared with it. */
import { input, matmul } from "../graph/index.ts";
import { nodeRuntime } from "../runtime/node.ts";
import { compile } from "../runtime/program.ts";
import { filled } from "./measure.ts";

/** Rows and columns of the product. */
const n = 1024;

/** Floating-point operations of one product. */
export const peakFlops = 2 * n ** 3;

/** One large product, compiled and ready to be timed. */
export async function matmulPeak(threads: { readonly threads?: number }) {
  const program = await compile(
    { outputs: { y: matmul(input("a", [n, n]), input("b", [n, n])) } },
    { runtime: nodeRuntime, ...threads },
  );
  const feeds = { a: filled(n * n), b: filled(n * n, 0.1, 2) };
  return { run: () => program.run(feeds), release: () => program.release() };
}
