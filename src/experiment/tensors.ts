/** Tensors between the disk and the programs. */
import { DataError, UsageError } from "../errors.ts";
import { sameShape, showType, stateAttrs, type Tensor } from "../graph/index.ts";
import type { HostTensor } from "../runtime/host.ts";
import type { LoadedModel } from "../store/modelFolder.ts";
import type { TensorData, Tensors } from "../store/safetensors.ts";

/** Saved tensors as a program's state takes them. */
export function toHost(tensors: Tensors): Map<string, HostTensor> {
  return new Map(
    Object.entries(tensors).map(([name, { dtype, shape, data }]) => {
      if (dtype !== "f32" && dtype !== "i32") {
        throw new DataError(`tensor ${name}: ${dtype} is not a type of weights`);
      }
      return [name, { dtype, shape, data } as HostTensor];
    }),
  );
}

/** A state's tensors as a file takes them. */
export function toTensors(values: ReadonlyMap<string, HostTensor>): Record<string, TensorData> {
  return Object.fromEntries(
    [...values].map(([name, { dtype, shape, data }]) => {
      if (dtype !== "f32") throw new Error(`internal: state ${name} of dtype ${dtype} cannot be saved`);
      return [name, { dtype, shape, data: data as Float32Array }];
    }),
  );
}

/** Refuses a saved model of another system, by name: that says more than the first tensor that does not fit. */
export function checkSystem({ path, config }: Pick<LoadedModel, "path" | "config">, system: string): void {
  const { settings } = config as { settings?: { system?: { name?: string } } };
  const saved = settings?.system?.name;
  if (saved === undefined || saved === system) return;
  throw new UsageError(`${path}: a model of the system ${saved}, not of ${system}`, {
    hint: "start with a model of the experiment's own system",
  });
}

/** The weights of a saved model, if they fit the parameters of a system. */
export function fittingWeights(
  { path, model }: Pick<LoadedModel, "path" | "model">,
  parameters: readonly Tensor[],
): Map<string, HostTensor> {
  const wanted = new Map(parameters.map((parameter) => [stateAttrs(parameter)!.name, parameter]));
  for (const name of new Set([...wanted.keys(), ...Object.keys(model)])) {
    const [here, there] = [wanted.get(name), model[name]];
    if (here && there && sameShape(here.shape, there.shape)) continue;
    throw new UsageError(`${path}: its weights do not fit the experiment's system`, {
      tensor: name,
      expected: here ? showType(here) : "none",
      found: there ? `${there.dtype} [${there.shape.join(", ")}]` : "none",
      hint: "start with a model of the same sizes; --print-config shows the experiment's",
    });
  }
  return toHost(model);
}
