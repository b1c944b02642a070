/** Run by memory.test.ts in a process of its own: runs small programs many times and tells the memory they hold. */
import { grad } from "../../src/compile/grad.ts";
import {
  input,
  matmul,
  mul,
  randomMask,
  scan,
  state,
  sum,
  tanh,
  where,
  zeros,
} from "../../src/graph/index.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { compile } from "../../src/runtime/program.ts";
import { adam } from "../../src/train/optimizers.ts";

/** A loop with dropout, its gradient and an Adam step: every kind of source, output and update. */
function training() {
  const W = state("W", [8, 8], { kind: "normal", mean: 0, std: 0.1 });
  const x = input("x", [4, 16, 8]);
  const { carry } = scan({ carry: [zeros([16, 8])], xs: [x] }, ([h], [xt]) => ({
    carry: [tanh(matmul(mul(h!, xt!), W))],
  }));
  const kept = where(randomMask("drop", [16, 8], 0.9), carry[0]!, 0);
  const loss = sum(mul(kept, kept));
  return { outputs: { loss, h: carry[0]! }, updates: adam()([W], grad(loss, [W]), input("rate", [])) };
}

/** Bytes resident after a collection; twice, for what the first one only unlinks. */
function resident(): number {
  globalThis.gc!();
  globalThis.gc!();
  return process.memoryUsage().rss;
}

async function run(times: number, program: Awaited<ReturnType<typeof compile>>): Promise<void> {
  for (let step = 0; step < times; step++) {
    // A new array each time: what a batch is.
    await program.run({ x: new Float32Array(4 * 16 * 8).fill(step % 3), rate: 0.001 }, { seed: 1, step });
  }
}

const program = await compile(training(), { runtime: nodeRuntime, threads: 1 });
await run(2000, program);
const before = resident();
await run(10_000, program);
const runs = resident() - before;
await program.release();

const compileAndRelease = async (times: number): Promise<void> => {
  for (let i = 0; i < times; i++) {
    const made = await compile(training(), { runtime: nodeRuntime, threads: 1 });
    await run(1, made);
    await made.release();
  }
};
await compileAndRelease(60);
const start = resident();
await compileAndRelease(200);
const sessions = resident() - start;

console.log(JSON.stringify({ runs, sessions }));
