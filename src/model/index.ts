/**
 * The layers and what systems are made of: `import { lstm, fwmWindow } from "fwm/model"`. A layer is a function that
 * declares its weights (`lstmWeights`) and functions over tensors that use them, a window at once for training
 * (`lstm`, `fwmWindow`) and a step for streaming (`lstmStep`, `fwmStep`). An embedding is a weight and `gatherRows` of
 * `fwm/engine`. Nothing here needs Node.
 */

export { withChunks } from "./chunk.ts";
export {
  type FwmSizes,
  type FwmStep,
  type FwmVariant,
  type FwmWeights,
  fastWeightShape,
  fwmStep,
  fwmVariants,
  fwmWeights,
  type KeyCombination,
  type ReadVectors,
  traceOf,
  type WriteVectors,
} from "./fwm.ts";
export { type FwmModelConfig, type FwmSettings, fwmDefaults, fwmModel } from "./fwmModel.ts";
export { fwmTracer } from "./fwmTrace.ts";
export { type FwmWindow, type FwmWindowOptions, fwmWindow } from "./fwmWindow.ts";
export { type LinearWeights, linear, linearWeights, symmetric } from "./linear.ts";
export {
  embeddedLstm,
  type LstmCell,
  type LstmGates,
  type LstmOptions,
  type LstmState,
  type LstmWeights,
  type LstmWindow,
  lstm,
  lstmStep,
  lstmWeights,
} from "./lstm.ts";
export { type LstmSettings, lstmDefaults, lstmModel } from "./lstmModel.ts";
export { type NormWeights, norm, normWeights } from "./norm.ts";
export { buildSystem, registerSystem, type SystemSettings, systemNames, systemSchema } from "./registry.ts";
export {
  blockedAttention,
  causalMask,
  joinHeads,
  type RelativeAttentionInputs,
  relativeAttention,
  sinusoid,
  splitHeads,
} from "./relativeAttention.ts";
export {
  type ChunkInput,
  type ChunkOutput,
  countWeights,
  dropoutRate,
  type NamedVectors,
  type RecurrentPart,
  type SequenceModel,
  type StepOutput,
  type System,
  size,
  type TraceRow,
  type Tracer,
  tokenSizes,
  type WindowInput,
  type WindowOutput,
  type Work,
} from "./sequence.ts";
export { meanSoftmaxLoss, type OutputLayer, softmaxLoss, softmaxLosses } from "./softmaxLoss.ts";
