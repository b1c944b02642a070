/** Rows picked by index, and their gradient: rows added up by index. */
import { ShapeError } from "../../errors.ts";
import { defineOp, type Lowering, needFloat, typeError } from "../op.ts";
import { type DType, sizeOf, type Tensor } from "../tensor.ts";
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

/** Up to so many rows of the result, adding by products is faster than adding one element at a time. */
const mostRowsByProduct = 256;

/** Updates that are added up by one small product. */
const groupSize = 16;

/** From so many updates a row on, they are put into groups first: the one-hot product is then that much smaller. */
const updatesPerRow = groupSize;

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
  onnx(lowering) {
    const { inputs, inputTypes, types, emit, constant } = lowering;
    const list = (values: readonly number[]): string => constant(values, [values.length], "i64");
    const { shape } = types[0]!;
    const sizes = { count: sizeOf(inputTypes[0]!.shape), rows: shape[0]!, width: sizeOf(shape.slice(1)) };
    const { count, rows, width } = sizes;
    const ids = emit("Reshape", [inputs[0]!, list([count])]);
    const updates = emit("Reshape", [inputs[1]!, list([count, width])]);
    const added = (): string => {
      if (rows > mostRowsByProduct) return addElements(lowering, ids, updates, sizes);
      if (count < rows * updatesPerRow) return addByProduct(lowering, ids, updates, sizes);
      return addGrouped(lowering, ids, updates, sizes);
    };
    return emit("Reshape", [added(), list(shape)]);
  },
  samples: [
    { inputs: [{ shape: [3], below: 2 }, [3, 5]], attrs: (size) => ({ rows: size(2) + 1 }) },
    { inputs: [{ shape: [2, 3], below: 2 }, [2, 3, 5]], attrs: (size) => ({ rows: size(2) }) },
    { inputs: [{ shape: [7], below: 1 }, [7]], attrs: { rows: 2 } },
    { inputs: [{ shape: [7], below: 3 }, [7, 2]], attrs: { rows: mostRowsByProduct + 1 } },
    // Groups: rows of several, rows nobody names; one group that is full.
    {
      inputs: [{ shape: [5 * updatesPerRow], below: 2 }, [5 * updatesPerRow, 3]],
      attrs: (size) => ({ rows: size(2) + 1 }),
    },
    { inputs: [{ shape: [1, updatesPerRow], below: 1 }, [1, updatesPerRow, 3]], attrs: { rows: 1 } },
  ],
});

/** Sizes of a scatter: ids, rows of the result, numbers in a row. */
interface ScatterSizes {
  readonly count: number;
  readonly rows: number;
  readonly width: number;
}

type Emit = Pick<Lowering<never>, "emit" | "emitMany" | "constant">;

/** Element by element: ids [count], updates [count, width] → [rows, width]. */
function addElements({ emit, constant }: Emit, ids: string, updates: string, sizes: ScatterSizes): string {
  const { count, rows, width } = sizes;
  const list = (values: readonly number[]): string => constant(values, [values.length], "i64");
  const empty = emit("ConstantOfShape", [list([rows, width])]);
  const index = emit("Expand", [emit("Reshape", [ids, list([count, 1])]), list([count, width])]);
  return emit("ScatterElements", [empty, index, updates], { axis: 0, reduction: "add" });
}

/** One-hot rows, transposed, times the updates. */
function addByProduct({ emit, constant }: Emit, ids: string, updates: string, sizes: ScatterSizes): string {
  const { count, rows } = sizes;
  const column = emit("Reshape", [ids, constant([count, 1], [2], "i64")]);
  const all = constant([...Array(rows).keys()], [rows], "i32");
  return emit("Gemm", [emit("Cast", [emit("Equal", [column, all])], { to: 1 }), updates], { transA: 1 });
}

/**
 * The updates sorted by id, in groups that have one id each and are filled up with weight 0: a small product adds up
 * each group, a one-hot product the groups of a row. 12,800 updates of 1,024 on 200 rows are 1,000 groups.
 */
function addGrouped(
  { emit, emitMany, constant }: Emit,
  ids: string,
  updates: string,
  sizes: ScatterSizes,
): string {
  const { count, rows } = sizes;
  const list = (values: readonly number[]): string => constant(values, [values.length], "i64");
  const i32 = (value: number): string => constant([value], [], "i32");
  const fill = (value: number, size: number, dtype: DType): string =>
    emit("Expand", [constant([value], [1], dtype), list([size])]);
  const groups = Math.ceil(count / groupSize) + rows;

  const counts = emit("ScatterElements", [fill(0, rows, "i32"), ids, fill(1, count, "i32")], {
    reduction: "add",
  });
  const groupsOf = emit("Div", [emit("Add", [counts, i32(groupSize - 1)]), i32(groupSize)]);
  const before = (x: string): string => emit("CumSum", [x, i32(0)], { exclusive: 1 });
  const firstGroup = before(groupsOf);

  // Where the updates of a row begin among the groups, less where they begin in sorted order.
  const shift = emit("Sub", [emit("Mul", [firstGroup, i32(groupSize)]), before(counts)]);
  const [sorted, order] = emitMany("TopK", [ids, list([count])], 2, { largest: 0 }) as [string, string];
  const slots = emit("Add", [
    constant([...Array(count).keys()], [count], "i32"),
    emit("Gather", [shift, sorted], { axis: 0 }),
  ]);
  const size = groups * groupSize;
  const source = emit("ScatterElements", [fill(0, size, "i64"), slots, order]);
  const weight = emit("ScatterElements", [fill(0, size, "f32"), slots, fill(1, count, "f32")]);
  const grouped = emit("Gather", [updates, emit("Reshape", [source, list([groups, groupSize])])], {
    axis: 0,
  });
  const sums = emit("MatMul", [emit("Reshape", [weight, list([groups, 1, groupSize])]), grouped]);

  const group = constant([...Array(groups).keys()], [groups], "i32");
  const column = (x: string): string => emit("Reshape", [x, list([rows, 1])]);
  const isOfRow = emit("And", [
    emit("GreaterOrEqual", [group, column(firstGroup)]),
    emit("Less", [group, column(emit("Add", [firstGroup, groupsOf]))]),
  ]);
  return emit("MatMul", [
    emit("Cast", [isOfRow], { to: 1 }),
    emit("Reshape", [sums, list([groups, sizes.width])]),
  ]);
}

/** Adds rows up by index. */
export function scatterAddRows(ids: Tensor, updates: Tensor, rows: number): Tensor {
  return scatterOp.apply([ids, updates], { rows })[0]!;
}

/** 1 where the class is, 0 elsewhere: classes i32 [...] → [..., size]. */
export function oneHot(classes: Tensor, size: number): Tensor {
  return cast(equal(unsqueeze(classes, -1), iota(size)), "f32");
}
