/**
 * The engine's speed: an LSTM layer, forward and backward, as autodiff makes it, beside ONNX Runtime's own fused
 * LSTM operator (forward only), a TensorFlow.js user's version, and the matmul peak of the same minute.
 */
import { create, toBinary } from "@bufbuild/protobuf";
import { ModelProtoSchema } from "onnx-buf";
import * as ort from "onnxruntime-node";
import { elapsed, filled, interleaved, summary } from "../src/bench/measure.ts";
import { grad } from "../src/compile/grad.ts";
import { input, matmul, mul, sum, type Tensor } from "../src/graph/index.ts";
import { type LstmWeights, lstm } from "../src/model/lstm.ts";
import { defaultThreads, nodeRuntime } from "../src/runtime/node.ts";
import { compile } from "../src/runtime/program.ts";
import { lstmByRecomputation } from "./lstmForms.ts";

/** Sizes of the LSTM that is measured: the paper's controller. */
export const lstmSizes = { time: 200, batch: 64, input: 256, hidden: 256 } as const;

/** What `npm run bench -- engine --json` prints. */
export interface EngineReport {
  readonly lstm: {
    readonly forwardBackwardMs: number;
    readonly ortOpForwardMs: number;
    readonly ratio: number;
    readonly gflops: number;
    /** The same with the steps written out, and with gates made again in one product after the loop. */
    readonly unrolledMs: number;
    readonly recomputedMs: number;
  };
  readonly matmulPeakGflops: number;
  /** `ratio` is the library's own LSTM cell and gradients; `tunedRatio` a version with hand-written gradients. */
  readonly tfjs: {
    readonly ms: number;
    readonly ratio: number;
    readonly tunedMs: number;
    readonly tunedRatio: number;
    readonly backend: string;
  };
  readonly compileMs: number;
  readonly dropout: { readonly ms: number; readonly shareOfStep: number };
  readonly threads: number;
}

interface Case {
  run(): Promise<unknown>;
  release(): Promise<void>;
}

/** Measures everything in one run, interleaved. */
export async function benchEngine({ repeats = 9, tfjsRepeats = 3 } = {}): Promise<EngineReport> {
  const compileTimes: number[] = [];
  for (let i = 0; i < 3; i++) {
    let made: Case | undefined;
    compileTimes.push(
      await elapsed(async () => {
        made = await ourLstm("scan");
      }),
    );
    await made!.release();
  }
  const cases = {
    ours: await ourLstm("scan"),
    ortOp: await ortLstm(),
    matmul: await squareMatmul(1024),
  };
  const times = await interleaved(runs(cases), { repeats });
  for (const one of Object.values(cases)) await one.release();
  const forms = {
    scan: await ourLstm("scan"),
    unrolled: await ourLstm("unrolled"),
    recomputed: await ourLstm("recomputed"),
  };
  const formTimes = await interleaved(runs(forms), { repeats });
  for (const one of Object.values(forms)) await one.release();

  const { tfjsLstm } = await import("./peers/tfjsLstm.ts");
  const { tfjsLstmPlain } = await import("./peers/tfjsLstmPlain.ts");
  const { time: steps, batch, input: inputs, hidden: units } = lstmSizes;
  const again = await ourLstm("scan");
  const tuned = await tfjsLstm({ steps, batch, inputs, units });
  const plain = await tfjsLstmPlain({ steps, batch, inputs, units });
  const beside = await interleaved(
    { plain: () => plain.run(), tuned: () => tuned.run(), rest: again.run, ours: again.run },
    { repeats: tfjsRepeats, warmup: 1 },
  );
  plain.dispose();
  tuned.dispose();
  await again.release();

  const ours = times.ours.median;
  const masks = dropoutMasks();
  const dropoutMs = summary(await repeated(masks, repeats)).median;
  return {
    lstm: {
      forwardBackwardMs: ours,
      ortOpForwardMs: times.ortOp.median,
      ratio: ours / times.ortOp.median,
      gflops: lstmFlops() / ours / 1e6,
      unrolledMs: (formTimes.unrolled.median / formTimes.scan.median) * ours,
      recomputedMs: (formTimes.recomputed.median / formTimes.scan.median) * ours,
    },
    matmulPeakGflops: (2 * 1024 ** 3) / times.matmul.least / 1e6,
    tfjs: {
      ms: beside.plain.median,
      ratio: beside.plain.median / beside.ours.median,
      tunedMs: beside.tuned.median,
      tunedRatio: beside.tuned.median / beside.ours.median,
      backend: plain.backend,
    },
    compileMs: summary(compileTimes).median,
    dropout: { ms: dropoutMs, shareOfStep: dropoutMs / ours },
    threads: defaultThreads,
  };
}

function runs<Name extends string>(cases: Record<Name, Case>): Record<Name, () => Promise<unknown>> {
  return Object.fromEntries(
    Object.entries<Case>(cases).map(([name, one]) => [name, () => one.run()]),
  ) as Record<Name, () => Promise<unknown>>;
}

async function repeated(run: () => Promise<unknown>, times: number): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < times; i++) all.push(await elapsed(run));
  return all;
}

/** Five products: two forward; the weights' two and the recurrent state's one backward. */
function lstmFlops(): number {
  const { time, batch, input: E, hidden: H } = lstmSizes;
  return 2 * time * batch * 4 * H * (2 * E + 3 * H);
}

/** Builds, differentiates and compiles the layer: gradients of all weights. */
async function ourLstm(form: "scan" | "unrolled" | "recomputed"): Promise<Case> {
  const { time: T, batch: B, input: E, hidden: H } = lstmSizes;
  const w: LstmWeights = {
    cell: "pytorch",
    Wx: input("Wx", [E, 4 * H]),
    Wh: input("Wh", [H, 4 * H]),
    biases: [input("b", [4 * H])],
  };
  const x = input("x", [T, B, E]);
  const [h, c] = [input("h", [B, H]), input("c", [B, H])];
  const coefficients = input("coefficients", [T, B, H]);
  const { loss, gradients: wanted } =
    form === "recomputed"
      ? lstmByRecomputation(w, x, h, c, coefficients)
      : differentiated(w, sum(mul(lstm(w, x, { h, c }, { unroll: form === "unrolled" }).h, coefficients)));
  const gradients = Object.fromEntries(wanted.map((g, i) => [`d${i}`, g]));
  const program = await compile({ outputs: { loss, ...gradients } }, { runtime: nodeRuntime });
  const feeds = {
    Wx: filled(E * 4 * H),
    Wh: filled(H * 4 * H),
    b: filled(4 * H),
    x: filled(T * B * E, 2),
    h: filled(B * H),
    c: filled(B * H),
    coefficients: filled(T * B * H),
  };
  return { run: () => program.run(feeds), release: () => program.release() };
}

function differentiated(w: LstmWeights, loss: Tensor): { loss: Tensor; gradients: Tensor[] } {
  return { loss, gradients: grad(loss, [w.Wx, w.Wh, w.biases[0]!]) };
}

async function squareMatmul(n: number): Promise<Case> {
  const program = await compile(
    { outputs: { y: matmul(input("a", [n, n]), input("b", [n, n])) } },
    { runtime: nodeRuntime },
  );
  const feeds = { a: filled(n * n), b: filled(n * n, 0.1, 2) };
  return { run: () => program.run(feeds), release: () => program.release() };
}

/** ONNX Runtime's own operator with constant weights, which it may prepare in advance. */
async function ortLstm(): Promise<Case> {
  const { time: T, batch: B, input: E, hidden: H } = lstmSizes;
  const info = (name: string, shape: readonly number[]) => ({
    name,
    type: {
      value: {
        case: "tensorType" as const,
        value: {
          elemType: 1,
          shape: { dim: shape.map((n) => ({ value: { case: "dimValue" as const, value: BigInt(n) } })) },
        },
      },
    },
  });
  const weight = (name: string, dims: readonly number[]) => ({
    name,
    dataType: 1,
    dims: dims.map(BigInt),
    rawData: new Uint8Array(filled(dims.reduce((a, b) => a * b)).buffer as ArrayBuffer),
  });
  const model = create(ModelProtoSchema, {
    irVersion: 9n,
    opsetImport: [{ domain: "", version: 20n }],
    graph: {
      name: "lstm",
      node: [
        {
          opType: "LSTM",
          name: "lstm",
          input: ["x", "w", "r", "b"],
          output: ["y"],
          attribute: [{ name: "hidden_size", type: 2, i: BigInt(H) }],
        },
      ],
      input: [info("x", [T, B, E])],
      output: [info("y", [T, 1, B, H])],
      initializer: [weight("w", [1, 4 * H, E]), weight("r", [1, 4 * H, H]), weight("b", [1, 8 * H])],
    },
  });
  const session = await ort.InferenceSession.create(toBinary(ModelProtoSchema, model), {
    intraOpNumThreads: defaultThreads,
  });
  const x = new ort.Tensor("float32", filled(T * B * E, 2), [T, B, E]);
  return { run: () => session.run({ x }), release: () => session.release() };
}

/** The masks a regularised layer of this size draws per step: locked input and output, and its recurrent matrix. */
function dropoutMasks(): () => Promise<unknown> {
  const { batch: B, input: E, hidden: H } = lstmSizes;
  const sizes = [B * E, B * H, H * 4 * H];
  const masks = sizes.map((size) => new Uint8Array(size));
  return async () => {
    const { fillMask, keyOf } = await import("../src/random.ts");
    masks.forEach((mask, i) => {
      fillMask(mask, 0.5, keyOf(1, "bench", i));
    });
  };
}

/** The report for people. */
export function describeEngine(report: EngineReport): string {
  const { lstm: l, tfjs } = report;
  const ms = (value: number): string => `${value.toFixed(0)} ms`;
  return [
    `LSTM 256, batch 64, 200 steps, forward + backward   ${ms(l.forwardBackwardMs)}  (${l.gflops.toFixed(0)} GFLOPS)`,
    `  ONNX Runtime's LSTM operator, forward only        ${ms(l.ortOpForwardMs)}`,
    `  ratio                                             ${l.ratio.toFixed(2)}  (goal: at most 3.2)`,
    `  the same written out step by step                 ${ms(l.unrolledMs)}`,
    `  gates made again after the loop                   ${ms(l.recomputedMs)}`,
    `matmul 1024 x 1024 x 1024, best                     ${report.matmulPeakGflops.toFixed(0)} GFLOPS`,
    `${tfjs.backend}, its own LSTM cell            ${ms(tfjs.ms)}`,
    `  times ours                                        ${tfjs.ratio.toFixed(1)}  (goal: at least 10)`,
    `  with hand-written gradients                       ${ms(tfjs.tunedMs)}, ${tfjs.tunedRatio.toFixed(1)} times ours`,
    `build, differentiate and compile                    ${ms(report.compileMs)}  (goal: under 1000)`,
    `dropout masks of such a layer                       ${report.dropout.ms.toFixed(2)} ms  (${(100 * report.dropout.shareOfStep).toFixed(2)} % of the step)`,
  ].join("\n");
}
