/** A trained model ready to answer, made from the bytes of its files. Works in Node and in a browser. */
import { z } from "zod";
import { Vocabulary } from "../data/vocabulary.ts";
import { DataError, UsageError } from "../errors.ts";
import { input, state, stateAttrs } from "../graph/index.ts";
import { sizeOf } from "../graph/tensor.ts";
import { buildSystem, type SystemSettings, systemSchema } from "../model/registry.ts";
import { countWeights, type SequenceModel } from "../model/sequence.ts";
import type { Program } from "../runtime/program.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { State } from "../runtime/state.ts";
import { widenWeights } from "../store/float16.ts";
import { decodeUtf8, parseJson } from "../store/json.ts";
import { type ModelConfig, parseModelConfig } from "../store/modelConfig.ts";
import { decodeSafetensors, expectTensors, type TensorData, type Tensors } from "../store/safetensors.ts";
import { type GeneratedWord, type GenerateOptions, generateText } from "./generate.ts";
import { StepProgram, StepPrograms } from "./stepProgram.ts";
import { Stream, type StreamOptions, type StreamSource, Streams } from "./stream.ts";

/** What is known of a model that reads tokens: `config.json`, and the system it names. */
export interface TokenModelConfig extends ModelConfig {
  readonly system: SystemSettings;
}

/** The files of a model folder, as bytes (`Response.arrayBuffer()` gives them), texts or values. */
export interface ModelBytes {
  /** `config.json` */
  readonly config: Uint8Array | ArrayBuffer | string | Readonly<Record<string, unknown>>;
  /** `model.safetensors` */
  readonly safetensors: Uint8Array | ArrayBuffer | Tensors;
  /** `vocab.json` */
  readonly vocab: Uint8Array | ArrayBuffer | string | readonly string[];
}

/** How a model runs. */
export interface ModelOptions {
  readonly runtime: Runtime;
  /** Threads inside one operator; one is the fastest for a few streams. */
  readonly threads?: number;
  /** What the model is called in messages, such as its folder. */
  readonly name?: string;
  /** Whether the files were compared with a manifest. */
  readonly verified?: boolean;
}

/** Most bytes that the state of one stream may take: fast weights of 322 × 322 × 322. */
const largestState = 2 ** 27;
/** Most bytes that the state of streams stepped together may take, and most of them. */
const largestStates = 2 ** 30;
const mostRows = 2 ** 16;

/** What models of the kinds of this package do; those of other kinds may be used either way. */
const uses = {
  catbabi: { does: "answers questions about a story", by: "fwm ask, model.stream()" },
  text: { does: "continues text", by: "fwm generate, model.generate()" },
} as const;

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
  refuseOversized(settings, tensors, file);
  const system = buildSystem(settings);
  const bytes = stateBytes(system);
  if (bytes > largestState) {
    throw new DataError(`${file}: the state of one stream of this model takes ${bytes} bytes`, {
      most: largestState,
      system: settings,
    });
  }
  const wanted = system.parameters.map((tensor) => {
    const { name, shape } = stateAttrs(tensor)!;
    return [name, { dtype: "f32" as const, shape }] as const;
  });
  expectTensors(tensors, Object.fromEntries(wanted), { file });
  return { system, weights: new Map(wanted.map(([name]) => [name, floats(tensors[name]!)])) };
}

/** A size that is larger than all weights together belongs to no model of these weights. */
function refuseOversized(settings: SystemSettings, tensors: Tensors, file: string): void {
  const weights = Object.values(tensors).reduce((total, { data }) => total + data.length, 0);
  for (const [name, value] of Object.entries(settings)) {
    if (typeof value !== "number" || value <= weights) continue;
    throw new DataError(`${file}: ${weights} weights are too few for a model with ${name} ${value}`, {
      hint: "config.json belongs to another model",
    });
  }
}

/** Bytes of the recurrent state of one stream. */
function stateBytes({ recurrent }: SequenceModel): number {
  return recurrent.reduce((total, { shape }) => total + 4 * sizeOf(shape(1)), 0);
}

/** Makes a model of the files of a model folder. */
export function modelFromBytes(files: ModelBytes, options: ModelOptions): FwmModel {
  const at = (name: string) => (options.name ? `${options.name}/${name}` : name);
  const config = tokenModelConfig(jsonOf(files.config, at("config.json")), at("config.json"));
  const { safetensors } = files;
  const tensors = isBytes(safetensors)
    ? decodeSafetensors(safetensors, { file: at("model.safetensors"), finite: true }).tensors
    : safetensors;
  const { system, weights } = buildModel(config.system, widenWeights(tensors), at("model.safetensors"));
  const words = jsonOf(files.vocab, at("vocab.json"));
  const vocabulary = vocabularyOf(words, config, at("vocab.json"));
  return new FwmModel(config, vocabulary, system, weights, options);
}

/** A model that answers, or continues text. Its streams share the compiled program; `release` frees it. */
export class FwmModel implements StreamSource {
  private readonly programs: StepPrograms;
  private readonly name: string;
  /** Sizes of the vectors that a step can be traced by. */
  readonly traceSizes: ReadonlyMap<string, number>;
  /** Whether its files were compared with a manifest; without one, damage may go unseen. */
  readonly verified: boolean;

  /** For `modelFromBytes` and `loadModel`. */
  constructor(
    readonly config: TokenModelConfig,
    readonly vocabulary: Vocabulary,
    private readonly system: SequenceModel,
    weights: ReadonlyMap<string, Float32Array>,
    { runtime, threads = 1, name = "the model", verified = false }: ModelOptions,
  ) {
    this.name = name;
    this.verified = verified;
    this.traceSizes = traceSizes(system);
    this.programs = new StepPrograms((shape) =>
      StepProgram.compile(system, weights, shape, runtime, { threads }),
    );
  }

  /** Number of trained weights. */
  get weightCount(): number {
    return countWeights(this.system);
  }

  /** How an answer is traced back to earlier words; undefined for a system that has nothing to show. */
  get tracer(): StreamSource["tracer"] {
    return this.system.tracer;
  }

  /** Recurrent state of a stream. */
  get recurrent(): StreamSource["recurrent"] {
    return this.system.recurrent;
  }

  /** A new stream, with an empty memory. A model of text has none: a `UsageError`. */
  stream(options: StreamOptions = {}): Stream {
    this.refuse("text", "catbabi");
    return new Stream(this, options);
  }

  /** Streams that are stepped together: faster than as many single ones. */
  streams(count: number, options: StreamOptions = {}): Streams {
    this.refuse("text", "catbabi");
    return new Streams(this, count, options);
  }

  /** Continues text word by word, from an empty memory; a model of stories does not: a `UsageError`. */
  generate(options: GenerateOptions = {}): AsyncGenerator<GeneratedWord, void, undefined> {
    this.refuse("catbabi", "text");
    return generateText(this, options);
  }

  private refuse(kind: keyof typeof uses, wanted: keyof typeof uses): void {
    if (this.config.kind !== kind) return;
    throw new UsageError(`${this.name}: a model of the kind ${kind}: it ${uses[kind].does}`, {
      hint: `use it with ${uses[kind].by}; a model of the kind ${wanted} ${uses[wanted].does}`,
    });
  }

  /** How many streams can be stepped together. */
  get mostRows(): number {
    return Math.min(mostRows, Math.floor(largestStates / stateBytes(this.system)));
  }

  /** The compiled step, or chunk of `tokens` steps, for a number of rows, over a state of its own unless one is given. */
  program(rows: number, tokens = 1, own?: State): Promise<Program> {
    return this.programs.instance({ rows, tokens }, own);
  }

  /** Frees the runtime's memory. The model's streams cannot read any more. */
  async release(): Promise<void> {
    await this.programs.release();
  }
}

function traceSizes(system: SequenceModel): Map<string, number> {
  const before = system.recurrent.map(({ name, shape }) => state(name, shape(1)));
  const { trace } = system.step(input("tokens", [1], "i32"), before);
  return new Map(Object.entries(trace).map(([name, { shape }]) => [name, sizeOf(shape)]));
}

function isBytes(value: unknown): value is Uint8Array | ArrayBuffer {
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value);
}

function jsonOf(value: unknown, file: string): unknown {
  if (typeof value === "string") return parseJson(value, { file });
  if (isBytes(value)) return parseJson(decodeUtf8(new Uint8Array(value), file), { file });
  return value;
}

function vocabularyOf(words: unknown, { kind, system }: TokenModelConfig, file: string): Vocabulary {
  const size = system.vocabulary;
  if (!Array.isArray(words) || !words.every((word) => typeof word === "string")) {
    throw new DataError(`${file}: expected a list of words`);
  }
  const different = new Set(words).size;
  // A text may have fewer words than the model has rows for.
  const fits = kind === "text" ? words.length <= size && words.length > 0 : words.length === size;
  if (!fits || different !== words.length) {
    throw new DataError(`${file}: the vocabulary does not fit the model`, {
      expected: `${kind === "text" ? "at most " : ""}${size} different words`,
      found: `${words.length}, of which ${different} different`,
    });
  }
  return new Vocabulary(words);
}

/** `expectTensors` has seen to the type. */
function floats({ data }: TensorData): Float32Array {
  return data as Float32Array;
}
