/**
 * Inference without the file system: everything here can be imported in a browser. Node's `loadModel`
 * is in `load.ts`.
 */
export type { TraceRow } from "../model/sequence.ts";
export type { GeneratedWord, GenerateOptions } from "./generate.ts";
export { AssociativeMemory, type MemoryDocument, type MemoryOptions, type Vector } from "./memory.ts";
export {
  FwmModel,
  type ModelBytes,
  type ModelOptions,
  modelFromBytes,
  type TokenModelConfig,
} from "./model.ts";
export { longestPassage, type PassageWord, passageBits } from "./passage.ts";
export { type Retrieval, StoryMemory } from "./storyMemory.ts";
export {
  longestStory,
  type ReadRow,
  type StoryQuestion,
  type StoryToken,
  type StoryTrace,
  type StoryWrites,
  traceStory,
} from "./storyTrace.ts";
export {
  type Answer,
  type AskOptions,
  type Readable,
  type Reply,
  Stream,
  type StreamOptions,
  type StreamSnapshot,
  Streams,
  type Trace,
} from "./stream.ts";
export { encodeText, UnknownWordError, wordsOf } from "./text.ts";
