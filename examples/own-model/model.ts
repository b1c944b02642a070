/**
 * A system of one's own, made of the library's layers: an LSTM drives a Fast Weight Memory, and a gate decides how much
 * of what was read is added to the LSTM's output.
 *
 *   h_t = LSTM(Emb(x_t))    m_t = FWM(h_t)    logits_t = W_o (h_t + sigmoid(W_g h_t) m_t)
 *
 *   T time, B batch, E embedding, H hidden, V vocabulary
 */
import { add, gatherRows, mul, reshape, sigmoid, state, type Tensor } from "fwm/engine";
import {
  embeddedLstm,
  fastWeightShape,
  fwmStep,
  fwmVariants,
  fwmWeights,
  fwmWindow,
  linear,
  linearWeights,
  lstmStep,
  lstmWeights,
  type System,
  size,
  tokenSizes,
} from "fwm/model";
import { z } from "zod";

const schema = z.strictObject({
  name: z.literal("gated-fwm"),
  ...tokenSizes,
  hidden: size,
  memory: size,
  reads: z.int().min(1).max(8),
});

/** Settings of the system. */
export type GatedFwmSettings = z.infer<typeof schema>;

/** The system: its settings, how it is built, what it costs. */
export const gatedFwm: System<GatedFwmSettings> = {
  schema,
  build(settings) {
    const { vocabulary: V, embedding: E, hidden: H } = settings;
    const table = state("embedding", [V, E], { kind: "normal", mean: 0, std: 1 });
    const controller = lstmWeights("lstm", { in: E, hidden: H }, "forgetBias1");
    const memory = fwmWeights("fwm", settings, fwmVariants.releasedCatbabi);
    const gate = linearWeights("gate", { in: H, out: H });
    const output = linearWeights("output", { in: H, out: V });
    const maps = [memory.write, memory.read, memory.out, gate, output];
    /** [..., H] and [..., H] → [..., V] */
    const logits = (h: Tensor, read: Tensor): Tensor =>
      linear(output, add(h, mul(sigmoid(linear(gate, h)), read)));
    return {
      parameters: [
        table,
        ...[controller.Wx, controller.Wh, ...controller.biases],
        ...maps.flatMap(({ W, b }) => (b ? [W, b] : [W])),
      ],
      recurrent: [
        { name: "h", shape: (B) => [B, H] },
        { name: "c", shape: (B) => [B, H] },
        { name: "F", shape: (B) => fastWeightShape(memory, B) },
      ],
      window({ tokens, state: [h, c, F], mask, positions }) {
        const [T, B] = tokens.shape as [number, number];
        const at = mask ? { mask } : {};
        const run = embeddedLstm(controller, table, tokens, { h: h!, c: c! }, at);
        const read = fwmWindow(memory, run.h, F!, { ...at, ...(positions ? { positions } : {}) });
        // The memory is read at the wanted positions only; the LSTM's output is picked there too.
        const seen = positions ? gatherRows(reshape(run.h, [T * B, H]), positions) : run.h;
        return { logits: logits(seen, read.y), state: [run.state.h, run.state.c, read.F] };
      },
      step(tokens, [h, c, F]) {
        const next = lstmStep(controller, gatherRows(table, tokens), { h: h!, c: c! });
        const { y, F: after } = fwmStep(memory, next.h, F!);
        return { logits: logits(next.h, y), state: [next.h, next.c, after], trace: {} };
      },
    };
  },
  flops: ({ embedding: E, hidden: H, memory: D, reads, vocabulary: V }, { tokens, positions }) =>
    2 * (4 * H * (E + H) + H * (3 * D + 1) + 2 * D ** 3) * tokens +
    2 * (H * (1 + reads) * D + reads * D ** 3 + D * H + H * H + H * V) * positions,
};
