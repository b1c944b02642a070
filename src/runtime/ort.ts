/** The part that both builds of ONNX Runtime share: their common API wrapped in our interface. */
import type {
  InferenceSession,
  InferenceSessionFactory,
  OnnxValue,
  Tensor,
  TensorConstructor,
} from "onnxruntime-common";
import { FwmError, UsageError } from "../errors.ts";
import type { DType } from "../graph/tensor.ts";
import type { HostTensor } from "./host.ts";
import type { Runtime, Session, SessionOptions } from "./runtime.ts";

/** What we use of `onnxruntime-node` and `onnxruntime-web`. */
export interface OrtModule {
  readonly InferenceSession: InferenceSessionFactory;
  readonly Tensor: TensorConstructor;
}

/** How a build differs: its session options, and whether it writes into outputs it is given. */
export interface OrtBuild {
  readonly name: string;
  readonly ort: OrtModule;
  readonly writesIntoOutputs: boolean;
  sessionOptions(options: SessionOptions): InferenceSession.SessionOptions;
}

/**
 * An addition and a layer norm stay two operators. ONNX Runtime would make one of them, SkipLayerNormalization, which
 * takes seven times as long: docs/decisions.md.
 */
export const withoutSlowFusions = { disable_specified_optimizers: "SkipLayerNormFusion" } as const;

const ortTypes = { f32: "float32", i32: "int32", i64: "int64", bool: "bool" } as const satisfies Record<
  DType,
  Tensor.Type
>;

/** A runtime over one build of ONNX Runtime. */
export function ortRuntime(build: OrtBuild): Runtime {
  const { Tensor: OrtTensor, InferenceSession: factory } = build.ort;
  // A buffer that stays resident keeps its ORT handle; the map lets both go together.
  const handles = new WeakMap<HostTensor, Tensor>();
  const handle = (host: HostTensor): Tensor => {
    let made = handles.get(host);
    if (!made) handles.set(host, (made = new OrtTensor(ortTypes[host.dtype], host.data, host.shape)));
    return made;
  };

  class OrtSession implements Session {
    private released = false;

    constructor(private readonly session: InferenceSession) {}

    async run(feeds: ReadonlyMap<string, HostTensor>, into: ReadonlyMap<string, HostTensor>): Promise<void> {
      if (this.released) throw new UsageError("run: this program was released", { hint: "compile it again" });
      const inputs = fromMap(feeds, handle);
      try {
        if (build.writesIntoOutputs) {
          await this.session.run(inputs, fromMap(into, handle));
          return;
        }
        const results = await this.session.run(inputs, [...into.keys()]);
        for (const [name, host] of into) copyInto(host, results[name]!);
      } catch (error) {
        throw new FwmError(`${build.name}: the program failed while running: ${messageOf(error)}`);
      }
    }

    async release(): Promise<void> {
      if (this.released) return;
      this.released = true;
      await this.session.release();
    }
  }

  return {
    name: build.name,
    async createSession(model, options = {}) {
      const settings = build.sessionOptions(options);
      try {
        return new OrtSession(await factory.create(model, settings));
      } catch (error) {
        throw new FwmError(`${build.name}: cannot load the program: ${messageOf(error)}`, {
          device: options.device,
        });
      }
    },
  };
}

function fromMap<V>(map: ReadonlyMap<string, HostTensor>, make: (host: HostTensor) => V): Record<string, V> {
  const record: Record<string, V> = {};
  for (const [name, host] of map) record[name] = make(host);
  return record;
}

function copyInto(host: HostTensor, result: OnnxValue): void {
  const { data } = result as Tensor;
  (host.data as { set(from: unknown): void }).set(data);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
