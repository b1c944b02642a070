/** What runs inside the browser: the shared cases on `onnxruntime-web`, called from the test by name. */
import * as ort from "onnxruntime-web/wasm";
import { modelFromBytes, type Reply } from "../../src/inference/index.ts";
import { availableThreads, setWasmPaths, webRuntime } from "../../src/runtime/web.ts";
import { type CaseValues, cases, runCase } from "../support/cases.ts";

// `?paths=wasm` leaves out what threads need.
const folder = "/node_modules/onnxruntime-web/dist/";
const partly = new URLSearchParams(location.search).get("paths") === "wasm";
setWasmPaths(partly ? { wasm: `${folder}ort-wasm-simd-threaded.wasm` } : folder);

/** What the test may call. */
export interface CasePage {
  readonly names: readonly string[];
  readonly availableThreads: number;
  run(name: string, threads: number): Promise<CaseValues>;
  /** Runs a model file with ONNX Runtime alone: `feeds` by name, each a typed array and a shape. */
  runModel(url: string, feeds: readonly PlainTensor[]): Promise<Record<string, number[]>>;
  /** Reads a text with the model in a folder of the server, and answers the question after it. */
  ask(model: string, text: string, question: string): Promise<Reply["answers"]>;
}

/** A tensor as it passes between the test and the page. */
export interface PlainTensor {
  readonly name: string;
  readonly type: "int32" | "float32";
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

const casePage: CasePage = {
  names: cases.map(({ name }) => name),
  availableThreads: availableThreads(),
  run: (name, threads) => runCase(cases.find((each) => each.name === name)!, webRuntime, { threads }),
  async runModel(url, feeds) {
    const session = await ort.InferenceSession.create(url);
    const given = feeds.map(({ name, type, shape, data }) => [name, new ort.Tensor(type, data, shape)]);
    const results = await session.run(Object.fromEntries(given) as Record<string, ort.Tensor>);
    await session.release();
    return Object.fromEntries(
      Object.entries(results).map(([name, tensor]) => [name, Array.from(tensor.data as Float32Array)]),
    );
  },
  async ask(model, text, question) {
    const bytes = async (name: string) =>
      new Uint8Array(await (await fetch(`${model}/${name}`)).arrayBuffer());
    const [config, safetensors, vocab] = await Promise.all(
      ["config.json", "model.safetensors", "vocab.json"].map(bytes),
    );
    const files = { config: config!, safetensors: safetensors!, vocab: vocab! };
    const loaded = modelFromBytes(files, { runtime: webRuntime });
    const stream = loaded.stream();
    await stream.read(text);
    const { answers } = await stream.ask(question);
    await loaded.release();
    return answers;
  },
};

Object.assign(globalThis, { casePage });
