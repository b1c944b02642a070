/** A trained model ready to answer, made from the bytes of its files. Works in Node and in a browser. */
import { z } from "zod";
import { Vocabulary } from "../data/vocabulary.ts";
import { DataError } from "../errors.ts";
import { stateAttrs } from "../graph/index.ts";
import { buildSystem, type SystemSettings, systemSchema } from "../model/registry.ts";
import { countWeights, type SequenceModel } from "../model/sequence.ts";
import type { Program } from "../runtime/program.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { parseJson } from "../store/json.ts";
import { type ModelConfig, parseModelConfig } from "../store/modelConfig.ts";
import { decodeSafetensors, expectTensors, type TensorData, type Tensors } from "../store/safetensors.ts";
import { StepProgram } from "./stepProgram.ts";
import { Stream, type StreamOptions, type StreamSource, Streams } from "./stream.ts";

/** What is known of a model that reads tokens: `config.json`, and the system it names. */
export interface TokenModelConfig extends ModelConfig {
  readonly system: SystemSettings;
}

/** The files of a model folder, as bytes, texts or values. */
export interface ModelBytes {
  /** `config.json` */
  readonly config: Uint8Array | string | Readonly<Record<string, unknown>>;
  /** `model.safetensors` */
  readonly safetensors: Uint8Array | ArrayBuffer | Tensors;
  /** `vocab.json` */
  readonly vocab: Uint8Array | string | readonly string[];
}

/** How a model runs. */
export interface ModelOptions {
  readonly runtime: Runtime;
  /** Threads inside one operator; one is the fastest for a few streams. */
  readonly threads?: number;
  /** What the model is called in messages, such as its folder. */
  readonly name?: string;
}

/** Checks that `config.json` is of a model that reads tokens. */
export function tokenModelConfig(value: unknown, file = "config.json"): TokenModelConfig {
  const config = parseModelConfig(value, file);
  const system = config.settings.system as { vocabulary?: unknown } | undefined;
  if (system?.vocabulary === undefined) {
    throw new DataError(
      `${file}: a model of the kind ${config.kind}; it reads no words and does not answer`,
      {
        hint: "evaluate it with fwm eval, watch an agent with fwm rollout",
      },
    );
  }
  const parsed = systemSchema.safeParse(system);
  if (parsed.success) return { ...config, system: parsed.data };
  throw new DataError(`${file}: not a system this version understands`, {
    reason: z.prettifyError(parsed.error),
    hint: "the model was made by another version of fwm",
  });
}

/** The system that settings describe, and its weights checked against it. */
export function buildModel(
  settings: SystemSettings,
  tensors: Tensors,
  file = "model.safetensors",
): { system: SequenceModel; weights: Map<string, Float32Array> } {
  const system = buildSystem(settings);
  const wanted = system.parameters.map((tensor) => {
    const { name, shape } = stateAttrs(tensor)!;
    return [name, { dtype: "f32" as const, shape }] as const;
  });
  expectTensors(tensors, Object.fromEntries(wanted), { file });
  return { system, weights: new Map(wanted.map(([name]) => [name, floats(tensors[name]!)])) };
}

/** Makes a model of the files of a model folder. */
export function modelFromBytes(files: ModelBytes, options: ModelOptions): FwmModel {
  const at = (name: string) => (options.name ? `${options.name}/${name}` : name);
  const config = tokenModelConfig(jsonOf(files.config, at("config.json")), at("config.json"));
  const { safetensors } = files;
  const tensors =
    safetensors instanceof ArrayBuffer || ArrayBuffer.isView(safetensors)
      ? decodeSafetensors(safetensors, { file: at("model.safetensors"), finite: true }).tensors
      : safetensors;
  const { system, weights } = buildModel(config.system, tensors, at("model.safetensors"));
  const words = jsonOf(files.vocab, at("vocab.json"));
  const vocabulary = vocabularyOf(words, config.system.vocabulary, at("vocab.json"));
  return new FwmModel(config, vocabulary, system, weights, options);
}

/** A model that answers. Its streams share the compiled program; `release` frees it. */
export class FwmModel implements StreamSource {
  private readonly programs = new Map<number, Promise<StepProgram>>();

  /** For `modelFromBytes` and `loadModel`. */
  constructor(
    readonly config: TokenModelConfig,
    readonly vocabulary: Vocabulary,
    private readonly system: SequenceModel,
    private readonly weights: ReadonlyMap<string, Float32Array>,
    private readonly options: ModelOptions,
  ) {}

  /** Number of trained weights. */
  get weightCount(): number {
    return countWeights(this.system);
  }

  /** How an answer is traced back to earlier words; undefined for a system that has nothing to show. */
  get tracer(): StreamSource["tracer"] {
    return this.system.tracer;
  }

  /** A new stream, with an empty memory. */
  stream(options: StreamOptions = {}): Stream {
    return new Stream(this, options);
  }

  /** Streams that are stepped together: faster than as many single ones. */
  streams(count: number, options: StreamOptions = {}): Streams {
    return new Streams(this, count, options);
  }

  /** The compiled step for a number of rows over a state of its own; streams call this. */
  async program(rows: number): Promise<Program> {
    const { runtime, threads = 1 } = this.options;
    let made = this.programs.get(rows);
    if (!made) {
      made = StepProgram.compile(this.system, this.weights, rows, runtime, { threads });
      this.programs.set(rows, made);
      // One that cannot be compiled is not kept: the next call tries again.
      made.catch(() => this.programs.delete(rows));
    }
    return (await made).instance();
  }

  /** Frees the runtime's memory. The model's streams cannot read any more. */
  async release(): Promise<void> {
    const programs = [...this.programs.values()];
    this.programs.clear();
    for (const program of await Promise.allSettled(programs)) {
      if (program.status === "fulfilled") await program.value.release();
    }
  }
}

function jsonOf(value: unknown, file: string): unknown {
  if (typeof value === "string") return parseJson(value, { file });
  if (value instanceof Uint8Array) return parseJson(new TextDecoder().decode(value), { file });
  return value;
}

function vocabularyOf(words: unknown, size: number, file: string): Vocabulary {
  if (!Array.isArray(words) || !words.every((word) => typeof word === "string")) {
    throw new DataError(`${file}: expected a list of words`);
  }
  if (words.length !== size || new Set(words).size !== size) {
    throw new DataError(`${file}: the vocabulary does not fit the model`, {
      expected: `${size} different words`,
      found: `${words.length}, of which ${new Set(words).size} different`,
    });
  }
  return new Vocabulary(words);
}

/** `expectTensors` has seen to the type. */
function floats({ data }: TensorData): Float32Array {
  return data as Float32Array;
}
