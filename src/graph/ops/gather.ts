/** Rows picked by index, and their gradient: rows added up by index. */
import { ShapeError } from "../../errors.ts";
import { defineOp, type Lowering, needFloat, typeError } from "../op.ts";
import { sizeOf, type Tensor } from "../tensor.ts";
import { cast, equal } from "./compare.ts";
import { unsqueeze } from "./shape.ts";
import { iota } from "./source.ts";

/**
 * y[...] = table[ids[...]]
 *
 *   table [V, ...]   ids i32 [...]   →   y [ids..., ...]
 */
const gatherOp = defineOp<null>("gatherRows", {
  infer(inputs) {
    const [table, ids] = inputs;
    if (ids!.dtype !== "i32" || table!.shape.length < 1) {
      throw typeError("gatherRows", "needs a table and i32 ids", inputs, "use cast(ids, 'i32')");
    }
    return { shape: [...ids!.shape, ...table!.shape.slice(1)], dtype: table!.dtype };
  },
  evaluate({ inputs: [table, ids], types }) {
    const width = sizeOf(table!.shape.slice(1));
    const out = new Float64Array(sizeOf(types[0]!.shape));
    ids!.data.forEach((id, i) => {
      requireBelow("gatherRows", id, table!.shape[0]!);
      out.set(table!.data.subarray(id * width, (id + 1) * width), i * width);
    });
    return out;
  },
  grad: ({ inputs: [table, ids], dy }) => [scatterAddRows(ids!, dy, table!.shape[0]!), undefined],
  onnx: (l) =>
    l.emit("Gather", [l.inputs[0]!, fromZero(l, l.inputs[1]!, l.inputTypes[0]!.shape[0]!)], { axis: 0 }),
  samples: [
    { inputs: [[5], { shape: [3], below: 5 }] },
    { inputs: [[3, 5], { shape: [2], below: 3 }] },
    { inputs: [[7, 3], { shape: [2, 5], below: 7 }] },
    { inputs: [[1, 3], { shape: [2], below: 1 }] },
  ],
});

/** An id that names no row is a mistake. */
export function requireBelow(op: string, id: number, size: number): void {
  if (id < 0 || id >= size) throw new ShapeError(`${op}: there is no row ${id}`, { rows: size });
}

/** Ids as ONNX is to take them: it would count negative ones from the end; so they become one that is refused. */
export function fromZero(
  { emit, constant }: Pick<Lowering<never>, "emit" | "constant">,
  ids: string,
  size: number,
): string {
  const isNegative = emit("Less", [ids, constant([0], [], "i32")]);
  return emit("Where", [isNegative, constant([size], [], "i32"), ids]);
}

/** Rows of a table by index: embeddings, or chosen positions of a sequence. */
export function gatherRows(table: Tensor, ids: Tensor): Tensor {
  return gatherOp.apply([table, ids], null)[0]!;
}

/** Up to so many rows, adding by a product with one-hot rows is faster than adding one element at a time. */
const mostRowsByProduct = 256;

/**
 * y[r] = sum of the updates whose id is r; rows nobody names are 0.
 *
 *   ids i32 [...]   updates [ids..., ...]   →   y [rows, ...]
 */
const scatterOp = defineOp<{ readonly rows: number }>("scatterAddRows", {
  infer(inputs, { rows }) {
    const [ids, updates] = inputs;
    needFloat("scatterAddRows", [updates!]);
    const fits = ids!.dtype === "i32" && ids!.shape.every((size, i) => size === updates!.shape[i]);
    if (!fits) throw typeError("scatterAddRows", "needs i32 ids [...] and updates [ids..., ...]", inputs);
    return { shape: [rows, ...updates!.shape.slice(ids!.shape.length)], dtype: "f32" };
  },
  evaluate({ inputs: [ids, updates], types }) {
    const out = new Float64Array(sizeOf(types[0]!.shape));
    const width = out.length / types[0]!.shape[0]!;
    ids!.data.forEach((id, i) => {
      requireBelow("scatterAddRows", id, types[0]!.shape[0]!);
      for (let j = 0; j < width; j++) out[id * width + j]! += updates!.data[i * width + j]!;
    });
    return out;
  },
  grad: ({ inputs: [ids], dy }) => [undefined, gatherRows(dy, ids!)],
  // Not ScatterND: with several threads ONNX Runtime loses updates there when an id repeats.
  onnx({ inputs: [ids, updates], inputTypes, types, emit, constant }) {
    const list = (values: readonly number[]): string => constant(values, [values.length], "i64");
    const count = sizeOf(inputTypes[0]!.shape);
    const { shape } = types[0]!;
    const [rows, width] = [shape[0]!, sizeOf(shape.slice(1))];
    const column = emit("Reshape", [ids!, list([count, 1])]);
    const each = emit("Reshape", [updates!, list([count, width])]);
    const added = (): string => {
      if (rows > mostRowsByProduct) {
        const empty = emit("ConstantOfShape", [list([rows, width])]);
        const index = emit("Expand", [column, list([count, width])]);
        return emit("ScatterElements", [empty, index, each], { axis: 0, reduction: "add" });
      }
      const all = constant(
        Array.from({ length: rows }, (_, row) => row),
        [rows],
        "i32",
      );
      const chosen = emit("Cast", [emit("Equal", [column, all])], { to: 1 });
      return emit("Gemm", [chosen, each], { transA: 1 });
    };
    return emit("Reshape", [added(), list(shape)]);
  },
  samples: [
    { inputs: [{ shape: [3], below: 2 }, [3, 5]], attrs: (size) => ({ rows: size(2) + 1 }) },
    { inputs: [{ shape: [2, 3], below: 2 }, [2, 3, 5]], attrs: (size) => ({ rows: size(2) }) },
    { inputs: [{ shape: [7], below: 1 }, [7]], attrs: { rows: 2 } },
    { inputs: [{ shape: [7], below: 3 }, [7, 2]], attrs: { rows: mostRowsByProduct + 1 } },
  ],
});

/** Adds rows up by index. */
export function scatterAddRows(ids: Tensor, updates: Tensor, rows: number): Tensor {
  return scatterOp.apply([ids, updates], { rows })[0]!;
}

/** 1 where the class is, 0 elsewhere: classes i32 [...] → [..., size]. */
export function oneHot(classes: Tensor, size: number): Tensor {
  return cast(equal(unsqueeze(classes, -1), iota(size)), "f32");
}
