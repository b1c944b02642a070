/** Chunks of a stream: several tokens per row in one program, for systems with a window to do it and for all others. */
import { gatherRows, greater, reshape, scan, scoped, type Tensor, where } from "../graph/index.ts";
import type { ChunkInput, ChunkOutput, SequenceModel } from "./sequence.ts";

/** A system that reads chunks as windows and has nothing to trace. */
export function withChunks(model: Omit<SequenceModel, "chunk" | "tracer">): SequenceModel {
  return {
    ...model,
    chunk(input) {
      const { logits, state } = model.window({ ...input, training: false, exact: true });
      return { logits, state, trace: {} };
    },
  };
}

/** A chunk by the system's own form, or else as a loop of its steps. */
export function chunkOf(model: SequenceModel, input: ChunkInput): ChunkOutput {
  return model.chunk ? model.chunk(input) : loopOfSteps(model, input);
}

function loopOfSteps(model: SequenceModel, { tokens, state, mask, positions }: ChunkInput): ChunkOutput {
  const [T, B] = tokens.shape as [number, number];
  const names: string[] = [];
  const { carry, ys } = scoped("chunk", () =>
    scan({ carry: state, xs: [tokens, greater(mask, 0)] }, (before, [token, alive]) => {
      const made = model.step(token!, before);
      if (names.length === 0) names.push(...Object.keys(made.trace));
      const after = made.state.map((next, i) => where(overRest(alive!, next), next, before[i]!));
      return { carry: after, ys: [made.logits, ...names.map((name) => made.trace[name]!)] };
    }),
  );
  const at = (x: Tensor): Tensor => gatherRows(reshape(x, [T * B, ...x.shape.slice(2)]), positions);
  const [logits, ...vectors] = ys as [Tensor, ...Tensor[]];
  const trace = names.map((name, i) => {
    const vector = vectors[i]!;
    return [name, model.tracer?.keep.includes(name) ? vector : at(vector)] as const;
  });
  return { logits: at(logits), state: carry, trace: Object.fromEntries(trace) };
}

/** [B] → [B, 1, …] beside a tensor [B, …]. */
function overRest(rows: Tensor, beside: Tensor): Tensor {
  return reshape(rows, [rows.shape[0]!, ...new Array<number>(beside.rank - 1).fill(1)]);
}
