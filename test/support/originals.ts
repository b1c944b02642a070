/** Checks of a system against an original program: with the original's dropout masks, in the oracle and on ONNX Runtime. */
import { cast, input, scan, type Tensor, topological } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import type { MaskAttrs } from "../../src/graph/ops/source.ts";
import { rewrite } from "../../src/graph/rewrite.ts";
import type { SequenceModel } from "../../src/model/sequence.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, runOrtWithState, type Tolerance } from "./check.ts";

/** The oracle works in float64 as the originals did. */
export const exact: Tolerance = { rtol: 1e-9, atol: 1e-11 };

/**
 * In float32 an entry that is small by cancellation carries the rounding of the large ones it came from, so the error
 * is measured against the largest entry of its tensor.
 */
export const single = (want: Float64Array): Tolerance => ({
  rtol: 0,
  atol: 1e-4 * want.reduce((largest, x) => Math.max(largest, Math.abs(x)), 1e-3),
});

/** Checks tensors in the oracle and on ONNX Runtime. */
export async function checkTensors(
  want: Iterable<readonly [name: string, { readonly tensor: Tensor; readonly value: Value }]>,
  given: ReadonlyMap<Tensor, Value>,
): Promise<void> {
  const wanted = [...want];
  const tensors = wanted.map(([, { tensor }]) => tensor);
  const inOracle = interpret(tensors, given);
  const onOrt = await runOrtWithState(tensors, given);
  wanted.forEach(([name, { value }], i) => {
    const { data } = value;
    expectClose(inOracle[i]!.data, data, { ...exact, label: `${name} in the oracle` });
    expectClose(onOrt[i]! as Float32Array, data, { ...single(data), label: `${name} on ONNX Runtime` });
  });
}

/** The graph with its random masks given instead of drawn; every mask must be named, and every name used. */
export function withMasks(
  tensors: readonly Tensor[],
  masks: ReadonlyMap<string, Value>,
): { tensors: Tensor[]; given: Map<Tensor, Value> } {
  const replaced = new Map<Tensor, Tensor>();
  const given = new Map<Tensor, Value>();
  for (const node of topological(tensors)) {
    if (node.op.name !== "randomMask") continue;
    const { name, shape } = node.attrs as MaskAttrs;
    const value = masks.get(name);
    if (!value || value.shape.join() !== shape.join()) {
      throw new Error(`mask ${name} [${shape.join()}] is not given: [${value?.shape.join() ?? "missing"}]`);
    }
    const source = input(`mask.${name}`, shape);
    replaced.set(node.outputs[0]!, cast(source, "bool"));
    given.set(source, value);
  }
  const unused = [...masks.keys()].filter(
    (name) => ![...given.keys()].some((t) => nameOf(t) === `mask.${name}`),
  );
  if (unused.length > 0) throw new Error(`masks that nothing uses: ${unused.join(", ")}`);
  return { tensors: rewrite(tensors, replaced), given };
}

function nameOf(tensor: Tensor): string {
  return (tensor.node.attrs as { name: string }).name;
}

/** The model token by token, by its plain step. */
export function stepwise(model: SequenceModel, tokens: Tensor, before: readonly Tensor[]) {
  const { carry, ys } = scan({ carry: before, xs: [tokens] }, (state, [token]) => {
    const step = model.step(token!, state);
    return { carry: step.state, ys: [step.logits] };
  });
  return { logits: ys[0]!, state: carry };
}
