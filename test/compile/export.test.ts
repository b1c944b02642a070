/** Exported files: sound, of the ONNX standard alone, and right in a stock ONNX Runtime that knows nothing of us. */
import { describe, expect, test } from "vitest";
import { exportOnnx } from "../../src/compile/export.ts";
import { lower } from "../../src/compile/lower.ts";
import { ShapeError, UsageError } from "../../src/errors.ts";
import {
  add,
  input,
  matmul,
  mul,
  randomMask,
  scan,
  scoped,
  state,
  stateAttrs,
  tanh,
  topological,
} from "../../src/graph/index.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { State } from "../../src/runtime/state.ts";
import { type Case, cases, expectedOf } from "../support/cases.ts";
import { expectClose, normals } from "../support/check.ts";
import { decodeModel, type Fed, faults, nodesOf, runFile } from "./onnxFile.ts";

/** The first run of a case as a file: everything it keeps goes in and comes out. */
function asFile(each: Case) {
  const { spec, runs } = each.build();
  const initial = new State(5);
  const feeds: Record<string, Fed> = {};
  const updates = [...(spec.updates ?? [])];
  for (const { op, attrs, outputs } of topological([...Object.values(spec.outputs), ...updates.flat()])) {
    const tensor = outputs[0]!;
    const { shape, dtype } = tensor;
    const held = stateAttrs(tensor);
    if (held) {
      initial.declare(held);
      feeds[held.name] = { dtype, shape, data: initial.get(held.name).data as Float32Array };
    }
    const { name } = (attrs ?? {}) as { name: string };
    if (op.name === "input") feeds[name] = { dtype, shape, data: runs[0]![name]! };
  }
  const bytes = exportOnnx(spec, new Map());
  const want: Record<string, number[]> = {};
  const once = expectedOf({ ...each, build: () => ({ spec, runs: runs.slice(0, 1) }) });
  for (const name of Object.keys(spec.outputs)) want[name] = once[`run 0/${name}`]!;
  for (const [before] of updates) {
    const { name } = stateAttrs(before)!;
    want[`next_${name}`] = once[`state/${name}`]!;
  }
  return { bytes, feeds, want };
}

const exportable = cases.filter(({ name }) => !name.startsWith("dropout"));

describe("the shared cases as files", () => {
  test.each(exportable.map((each) => [each.name, each] as const))("%s", async (_, each) => {
    const { bytes, feeds, want } = asFile(each);
    const model = decodeModel(bytes);
    expect(faults(model)).toEqual([]);
    for (const optimized of [true, false]) {
      // Only what the graph reads may be given: a state that is replaced without being read is no input.
      const asked = model.graph!.input.map(({ name }) => name);
      const given = Object.fromEntries(asked.map((name) => [name, feeds[name]!]));
      const got = await runFile(bytes, given, { optimized });
      expect(Object.keys(got).sort()).toEqual(Object.keys(want).sort());
      for (const [name, values] of Object.entries(want)) {
        expectClose(got[name]!, values, { rtol: each.rtol, atol: each.atol, label: name });
      }
    }
  });
});

describe("a product with a transposed operand inside a loop", () => {
  // y_t = a_t · Wᵀ with a batch of matrices: ONNX Runtime's own operator outside of files, standard ones in files.
  const W = state("W", [2, 5, 3]);
  const a = input("a", [4, 2, 7, 3]);
  const { carry, ys } = scan({ carry: [input("h", [2, 7, 5])], xs: [a] }, ([h], [at]) => {
    const next = add(tanh(h!), matmul(at!, W, { transB: true }));
    return { carry: [next], ys: [matmul(next, next, { transA: true })] };
  });
  const outputs = { last: carry[0]!, squares: ys[0]! };

  test("is of the standard, and right", async () => {
    const values = { a: normals([4, 2, 7, 3], 1), h: normals([2, 7, 5], 2), W: normals([2, 5, 3], 3) };
    const bytes = exportOnnx({ outputs }, new Map([["W", values.W.data]]));
    const model = decodeModel(bytes);
    expect(faults(model)).toEqual([]);
    expect(nodesOf(model.graph!).filter(({ opType }) => opType === "Transpose")).toHaveLength(2);
    const sources = topological(Object.values(outputs)).flatMap(({ attrs, outputs: [tensor] }) => {
      const name = (attrs as { name?: keyof typeof values } | null)?.name;
      return name ? [[tensor!, values[name]] as const] : [];
    });
    const want = interpret(Object.values(outputs), new Map(sources));
    const feed = (name: "a" | "h"): Fed => ({ dtype: "f32", ...values[name] });
    const got = await runFile(bytes, { a: feed("a"), h: feed("h") });
    expectClose(got.last!, want[0]!.data, { rtol: 1e-5, atol: 1e-5, label: "last" });
    expectClose(got.squares!, want[1]!.data, { rtol: 1e-5, atol: 1e-4, label: "squares" });
  });

  test("is not of the standard in a program, which shows that the file had something to replace", () => {
    const inputs = new Map(
      topological(Object.values(outputs)).flatMap(({ attrs, outputs: [tensor], inputs: before }) => {
        const name = (attrs as { name?: string } | null)?.name;
        return before.length === 0 && name ? [[name, tensor!] as const] : [];
      }),
    );
    const model = decodeModel(lower({ name: "p", inputs, outputs: new Map(Object.entries(outputs)) }));
    expect(faults(model).join()).toContain("com.microsoft");
  });
});

describe("the check of a file's structure", () => {
  const sound = () => {
    const x = input("x", [2]);
    const doubled = mul(x, state("W", [2]));
    const { ys } = scan({ carry: [x], xs: [input("xs", [3, 2])] }, ([h], [at]) => ({
      carry: [add(h!, at!)],
      ys: [mul(h!, doubled)],
    }));
    return decodeModel(exportOnnx({ outputs: { y: ys[0]!, doubled } }, new Map([["W", [1, 2]]])));
  };
  type Graph = NonNullable<ReturnType<typeof sound>["graph"]>;

  test.each<[string, (graph: Graph) => unknown, string]>([
    ["order", (graph) => graph.node.reverse(), "before it is made"],
    ["a name that is there twice", (graph) => graph.node.push(graph.node[0]!), "is there already"],
    [
      "a name of the outer graph inside",
      (graph) => {
        const { g } = nodesOf(graph)
          .flatMap(({ attribute }) => attribute)
          .find((each) => each.g)!;
        g!.node[0]!.output[0] = "x";
      },
      "is there already",
    ],
    ["an unknown input", (graph) => (graph.node[0]!.input[0] = "nobody"), "uses nobody"],
    ["an output that nobody makes", (graph) => (graph.output[0]!.name = "nobody"), "not made"],
    ["external data", (graph) => (graph.initializer[0]!.dataLocation = 1), "outside the file"],
    ["a foreign operator", (graph) => (graph.node[0]!.domain = "com.microsoft"), "of com.microsoft"],
  ])("sees %s", (_, spoil, message) => {
    const model = sound();
    expect(faults(model)).toEqual([]);
    spoil(model.graph!);
    expect(faults(model).join("\n")).toContain(message);
  });
});

describe("what a file says", () => {
  const W = state("layer.W", [3, 2]);
  const h = state("h", [1, 2]);
  const x = input("x", [1, 3]);
  const next = scoped("layer", () => tanh(add(matmul(x, W), h)));
  const weights = new Map([["layer.W", [1, 2, 3, 4, 5, 6]]]);

  test("names, documentation and metadata are in it, and the weights", () => {
    const bytes = exportOnnx({ name: "cell", outputs: { y: mul(next, 2) }, updates: [[h, next]] }, weights, {
      doc: "a cell",
      docs: { x: "what comes in", next_h: "what is kept" },
      producerVersion: "9.8.7",
      metadata: { config: '{"a":1}' },
    });
    const model = decodeModel(bytes);
    expect(faults(model)).toEqual([]);
    expect(model).toMatchObject({
      producerName: "fwm",
      producerVersion: "9.8.7",
      docString: "a cell",
      metadataProps: [{ key: "config", value: '{"a":1}' }],
    });
    const { name, input: inputs, output: outputs, initializer, node } = model.graph!;
    expect(name).toBe("cell");
    expect(inputs.map((end) => [end.name, end.docString])).toEqual([
      ["x", "what comes in"],
      ["h", ""],
    ]);
    expect(outputs.map((end) => [end.name, end.docString])).toEqual([
      ["y", ""],
      ["next_h", "what is kept"],
    ]);
    const stored = initializer.find((tensor) => tensor.name === "layer.W")!;
    expect(new Float32Array(stored.rawData.slice().buffer)).toEqual(new Float32Array([1, 2, 3, 4, 5, 6]));
    expect(node.some((each) => each.name.startsWith("layer/matmul"))).toBe(true);
  });

  test("a file is its weights and little more", () => {
    const size = 512;
    const large = state("large", [size, size]);
    const product = matmul(input("v", [1, size]), large);
    const bytes = exportOnnx({ outputs: { product } }, new Map([["large", new Float32Array(size * size)]]));
    expect(bytes.length).toBeGreaterThan(4 * size * size);
    expect(bytes.length).toBeLessThan(4 * size * size + 1000);
  });

  test("names that look like ours do not clash with ours", async () => {
    const clashing = [0, 1, 2, 3].flatMap((n) => [input(`add_${n}`, [2]), input(`constant_${n}`, [2])]);
    const total = clashing.reduce((before, each) => add(before, mul(each, 3)));
    const bytes = exportOnnx({ outputs: { output_1: total } }, new Map());
    expect(faults(decodeModel(bytes))).toEqual([]);
    const feeds = clashing.map(
      ({ node }) =>
        [(node.attrs as { name: string }).name, { dtype: "f32", shape: [2], data: [1, 2] }] as const,
    );
    expect(await runFile(bytes, Object.fromEntries(feeds))).toEqual({ output_1: [22, 44] });
  });

  test("an output that is an input, and one that is there twice, are copied", async () => {
    const doubled = mul(x, 2);
    const bytes = exportOnnx({ outputs: { same: x, a: doubled, b: doubled } }, new Map());
    expect(faults(decodeModel(bytes))).toEqual([]);
    const got = await runFile(bytes, { x: { dtype: "f32", shape: [1, 3], data: [1, 2, 3] } });
    expect(got).toEqual({ same: [1, 2, 3], a: [2, 4, 6], b: [2, 4, 6] });
  });
});

describe("what cannot be exported is refused, with the name", () => {
  const W = state("W", [2, 2]);
  const x = input("x", [1, 2]);
  const y = matmul(x, W);
  const values = new Map([["W", [1, 2, 3, 4]]]);

  test.each<[string, () => unknown, string]>([
    ["a missing weight", () => exportOnnx({ outputs: { y } }, new Map()), "the weight W is missing"],
    [
      "a step that changes a weight",
      () => exportOnnx({ outputs: { y }, updates: [[W, mul(W, 2)]] }, values),
      "changes the weight W",
    ],
    [
      "a dropout mask",
      () => exportOnnx({ outputs: { mask: randomMask("hidden", [1, 2], 0.5) } }, values),
      "dropout mask hidden",
    ],
    ["an output named as an input", () => exportOnnx({ outputs: { x: y } }, values), "called x"],
    [
      "an output named as the next value of a state",
      () => exportOnnx({ outputs: { next_W: y }, updates: [[W, mul(W, 2)]] }, new Map()),
      "called next_W",
    ],
    [
      "two inputs of one name",
      () => exportOnnx({ outputs: { z: add(y, input("x", [1, 2])) } }, values),
      "two sources are called x",
    ],
    ["an update of an input", () => exportOnnx({ outputs: { y }, updates: [[x, y]] }, values), "only states"],
    ["a note about nothing", () => exportOnnx({ outputs: { y } }, values, { docs: { z: "" } }), "output z"],
    [
      "more than a file can hold",
      () => {
        const huge = state("huge", [2 ** 15, 2 ** 15]);
        const data = { length: 2 ** 30 };
        return exportOnnx({ outputs: { z: matmul(huge, huge) } }, new Map([["huge", data]]));
      },
      "more than a model file can hold",
    ],
  ])("%s", (_, make, message) => {
    expect(make).toThrow(UsageError);
    expect(make).toThrow(message);
  });

  test("a weight of another size", () => {
    const short = new Map([["W", [1, 2, 3]]]);
    expect(() => exportOnnx({ outputs: { y } }, short)).toThrow(ShapeError);
  });
});
