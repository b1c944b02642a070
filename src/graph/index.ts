/** The graph: tensors, ops and what is composed of them. Importing it fills the op table. */
export { broadcastShapes } from "./broadcast.ts";
export { elementDropout, lockedDropout, weightDropout, wordDropout } from "./dropout.ts";
export { einsum } from "./einsum.ts";
export { type GraphFunction, type Op, opTable, type Sample, type SampleInput, type Value } from "./op.ts";
export * from "./ops/compare.ts";
export * from "./ops/elementwise.ts";
export * from "./ops/gather.ts";
export * from "./ops/matmul.ts";
export * from "./ops/normalise.ts";
export { recompute } from "./ops/recompute.ts";
export * from "./ops/reduce.ts";
export { type ScanInputs, type ScanStep, scan } from "./ops/scan.ts";
export * from "./ops/shape.ts";
export {
  constant,
  type Initial,
  input,
  iota,
  param,
  randomMask,
  scalar,
  state,
  stateAttrs,
  zeros,
} from "./ops/source.ts";
export {
  type DType,
  type Operand,
  type Shape,
  sameShape,
  scoped,
  showType,
  sizeOf,
  Tensor,
  type TensorType,
  topological,
} from "./tensor.ts";
