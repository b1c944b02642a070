/** Several threads: nothing is lost between them, and the same program gives the same bits every time. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import {
  crossEntropy,
  input,
  scatterAddRows,
  stateAttrs,
  type Tensor,
  zeros,
} from "../../src/graph/index.ts";
import { fwmModel } from "../../src/model/fwmModel.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { compile } from "../../src/runtime/program.ts";

const options = { runtime: nodeRuntime, threads: 2 };

function bits({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}

describe("two threads", () => {
  test.each([
    ["groups", 3, 6400],
    ["groups", 40, 6400],
    ["one-hot rows", 250, 3000],
    ["elements", 300, 6400],
  ])("rows added up by repeated ids are all counted: %s (%i rows, %i ids)", async (_, rows, count) => {
    const width = 64;
    const added = scatterAddRows(input("ids", [count], "i32"), input("updates", [count, width]), rows);
    const program = await compile({ outputs: { added } }, options);
    const feeds = {
      ids: Int32Array.from({ length: count }, (__, i) => (i * 7919) % rows),
      updates: new Float32Array(count * width).fill(1),
    };
    const expected = new Float32Array(rows * width);
    feeds.ids.forEach((id) => {
      for (let j = 0; j < width; j++) expected[id * width + j]!++;
    });
    for (let run = 0; run < 100; run++) {
      const out = await program.run(feeds);
      expect(bits(out.added!).equals(bits(expected))).toBe(true);
    }
    await program.release();
  });

  test("the gradients of a model repeat bit for bit", async () => {
    const [T, B, V] = [50, 32, 60];
    const model = fwmModel({ vocabulary: V, embedding: 64, hidden: 64, memory: 16, reads: 3 });
    const recurrent: Tensor[] = model.recurrent.map(({ shape }) => zeros(shape(B)));
    const { logits } = model.window({
      training: true,
      tokens: input("tokens", [T, B], "i32"),
      state: recurrent,
      positions: input("queries", [B, 16], "i32"),
    });
    const loss = crossEntropy(logits, input("targets", [B, 16], "i32"));
    const outputs = Object.fromEntries(
      grad(loss, model.parameters).map((g, i) => [`d ${stateAttrs(model.parameters[i]!)!.name}`, g]),
    );
    const program = await compile({ outputs }, options);
    const feeds = {
      tokens: Int32Array.from({ length: T * B }, (_, i) => (i * 31) % 7),
      queries: Int32Array.from({ length: B * 16 }, (_, i) => (i % 5) * B + Math.floor(i / 16)),
      targets: Int32Array.from({ length: B * 16 }, (_, i) => i % V),
    };
    const first = structuredClone(await program.run(feeds));
    for (let run = 0; run < 20; run++) {
      const again = await program.run(feeds);
      const changed = Object.keys(outputs).filter((name) => !bits(again[name]!).equals(bits(first[name]!)));
      expect(changed).toEqual([]);
    }
    await program.release();
  });
});
