/**
 * A saved model as an `.onnx` file: one step of a stream, or a whole window of tokens, with the weights inside.
 *
 *   name                  type             meaning
 *   tokens                i32 [B], [T, B]  numbers of the words, one per row; T of them in the window form
 *   h, c, F               f32 [B, …]       recurrent state before, as far as the system has it; zeros at the start
 *   logits                f32 [B, V]       for the next token of each row; [T, B, V] in the window form
 *   next_h, next_c, …     f32 [B, …]       recurrent state after
 */
import { type ExportSpec, exportOnnx, nextName } from "../compile/export.ts";
import { input, state, type TensorType } from "../graph/index.ts";
import type { SequenceModel } from "../model/sequence.ts";
import type { Tensors } from "../store/safetensors.ts";
import { buildModel, tokenModelConfig } from "./model.ts";

/** What is exported. */
export interface ExportForm {
  /** Rows: streams that are stepped together. */
  readonly batch: number;
  /** Tokens of the window form; absent: the step form. */
  readonly window?: number;
}

/** One input or output of an exported model. */
export interface ModelEnd extends TensorType {
  readonly name: string;
  readonly doc: string;
}

/** A model file and what goes in and comes out. */
export interface ExportedModel {
  readonly bytes: Uint8Array;
  readonly inputs: readonly ModelEnd[];
  readonly outputs: readonly ModelEnd[];
  /** Number of weights inside. */
  readonly weights: number;
}

/** The files of a model folder that an export is made of. */
export interface ExportSource {
  readonly path: string;
  readonly step?: number | undefined;
  /** Content of `config.json`. */
  readonly config: unknown;
  /** Content of `model.safetensors`. */
  readonly model: Tensors;
  /** `vocab.json` is stored in the file's metadata if it is there. */
  readonly files: Readonly<Record<string, Uint8Array>>;
}

/** The model of a folder as an `.onnx` file. */
export function exportModel(folder: ExportSource, form: ExportForm, producerVersion: string): ExportedModel {
  const config = tokenModelConfig(folder.config, `${folder.path}/config.json`);
  const { system, weights } = buildModel(config.system, folder.model, `${folder.path}/model.safetensors`);
  const { spec, inputs, outputs } = describe(system, form);
  const words = folder.files["vocab.json"];
  const bytes = exportOnnx(spec, weights, {
    producerVersion,
    doc: docOf(config.system.name, form),
    docs: Object.fromEntries([...inputs, ...outputs].map(({ name, doc }) => [name, doc])),
    metadata: {
      "fwm.form": form.window === undefined ? "step" : "window",
      "fwm.config": JSON.stringify(folder.config),
      ...(folder.step === undefined ? {} : { "fwm.step": String(folder.step) }),
      ...(words ? { "fwm.vocabulary": new TextDecoder().decode(words) } : {}),
    },
  });
  const count = [...weights.values()].reduce((total, { length }) => total + length, 0);
  return { bytes, inputs, outputs, weights: count };
}

function docOf(system: string, { batch, window }: ExportForm): string {
  const what = window === undefined ? "one step of a stream" : `a window of ${window} tokens`;
  return (
    `${system}: ${what}, ${batch} at once. Begin with a recurrent state of zeros; give each next_ output back ` +
    "as the input it is named after."
  );
}

/** The program, and its ends in the order in which people should see them. */
function describe(system: SequenceModel, { batch: B, window: T }: ExportForm) {
  const shape = T === undefined ? [B] : [T, B];
  const tokens = input("tokens", shape, "i32");
  const before = system.recurrent.map((part) => state(part.name, part.shape(B)));
  const made =
    T === undefined ? system.step(tokens, before) : system.window({ tokens, state: before, training: false });
  const spec: ExportSpec = {
    name: T === undefined ? "step" : "window",
    outputs: { logits: made.logits },
    updates: before.map((tensor, i) => [tensor, made.state[i]!] as const),
  };
  const end = (name: string, { shape: of, dtype }: TensorType, doc: string): ModelEnd => ({
    name,
    shape: of,
    dtype,
    doc,
  });
  const parts = system.recurrent.map(({ name }, i) => ({ name, tensor: before[i]! }));
  return {
    spec,
    inputs: [
      end("tokens", tokens, `numbers of the words, ${T === undefined ? "one per row" : "time first"}`),
      ...parts.map(({ name, tensor }) =>
        end(name, tensor, `recurrent state ${name} before; zeros at the start`),
      ),
    ],
    outputs: [
      end("logits", made.logits, "unnormalised log probabilities of the next word"),
      ...parts.map(({ name, tensor }) => end(nextName(name), tensor, `recurrent state ${name} after`)),
    ],
  };
}
