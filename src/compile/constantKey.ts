/** When two constants are the same: by type and values, without looking at every value of a large one twice. */
import type { DType, Shape } from "../graph/tensor.ts";

/** Constants with more values than this are compared only when all their values are equal. */
const mostValues = 4096;

/** A key that equal constants share, or undefined for a large one with many different values. */
export function constantKey(data: ArrayLike<number>, shape: Shape, dtype: DType): string | undefined {
  const type = `${dtype}[${shape.join(",")}]`;
  const values = Array.from(data);
  if (values.length > 1 && values.every((value) => Object.is(value, values[0]))) {
    return `${type} all ${show(values[0]!)}`;
  }
  return values.length <= mostValues ? `${type} ${values.map(show).join(",")}` : undefined;
}

/** 0 and -0 print alike, and dividing by them does not give the same. */
function show(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}
