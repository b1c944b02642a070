/** Programs: typed inputs, state that stays, updates that can be refused, and what is said when something is wrong. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { DataError, type FwmError, ShapeError, UsageError } from "../../src/errors.ts";
import {
  add,
  cast,
  input,
  matmul,
  mul,
  randomMask,
  scan,
  state,
  sum,
  type Tensor,
  where,
} from "../../src/graph/index.ts";
import { allocate, type HostTensor } from "../../src/runtime/host.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { compile, type Program, type ProgramSpec, planProgram } from "../../src/runtime/program.ts";
import type { Runtime, SessionOptions } from "../../src/runtime/runtime.ts";
import { State } from "../../src/runtime/state.ts";
import { skipUnless } from "../support/skip.ts";

const options = { runtime: nodeRuntime, threads: 1 };

/** Compiles, hands the program over and releases it whatever happens. */
async function using(
  spec: ProgramSpec,
  use: (program: Program) => Promise<void>,
  memory = new State(),
): Promise<void> {
  const program = await compile(spec, { ...options, state: memory });
  try {
    await use(program);
  } finally {
    await program.release();
  }
}

/** Adds `by` to a counter and multiplies it out. */
function counting(): ProgramSpec & { counter: Tensor } {
  const counter = state("counter", [2], { kind: "values", data: [1, 10] });
  const next = add(counter, input("by", [2]));
  return { outputs: { total: sum(next) }, updates: [[counter, next]], counter };
}

describe("inputs and outputs", () => {
  test("every dtype goes in and comes out; numbers stand for scalars, plain arrays are converted", async () => {
    const spec: ProgramSpec = {
      outputs: {
        f32: mul(input("floats", [2, 2]), input("factor", [])),
        i32: add(input("ints", [3], "i32"), 1),
        i64: add(input("longs", [2], "i64"), 1),
        bool: where(input("flags", [2], "bool"), input("yes", [2], "bool"), input("no", [2], "bool")),
      },
    };
    await using(spec, async (program) => {
      const out = await program.run({
        floats: [
          [1, 2],
          [3, 4],
        ].flat(),
        factor: 0.5,
        ints: Int32Array.of(-1, 0, 41),
        longs: BigInt64Array.of(-3n, 2n ** 40n),
        flags: [1, 0],
        yes: [1, 1],
        no: Uint8Array.of(0, 0),
      });
      expect(out).toEqual({
        f32: Float32Array.of(0.5, 1, 1.5, 2),
        i32: Int32Array.of(0, 1, 42),
        i64: BigInt64Array.of(-2n, 2n ** 40n + 1n),
        bool: Uint8Array.of(1, 0),
      });
    });
  });

  test("an output may be an input, a constant or the same tensor as another", async () => {
    const x = input("x", [2]);
    const y = mul(x, 2);
    await using(
      { outputs: { y, again: y, same: x, zero: mul(cast(randomMask("m", [2], 1), "f32"), 0) } },
      async (program) => {
        const out = await program.run({ x: [1, 2] }, { seed: 0, step: 0 });
        expect(
          [out.y, out.again, out.same, out.zero].map((data) => Array.from(data as Float32Array)),
        ).toEqual([
          [2, 4],
          [2, 4],
          [1, 2],
          [0, 0],
        ]);
      },
    );
  });

  const spec = (): ProgramSpec => ({
    outputs: { y: matmul(input("tokens", [2, 3]), input("mask", [3, 2])) },
  });
  const six = Float32Array.of(1, 2, 3, 4, 5, 6);
  const wrong: [string, Record<string, unknown>, typeof FwmError, string][] = [
    ["missing", { tokens: six }, UsageError, "run: input mask is missing\n  expected  f32[3, 2]"],
    [
      "unknown, with the nearest name",
      { tokens: six, mask: six, maks: six },
      UsageError,
      "run: the program has no input maks\n  inputs        tokens, mask\n  did you mean  mask",
    ],
    [
      "of another size",
      { tokens: six.slice(0, 4), mask: six },
      ShapeError,
      "tokens: 4 values given, 6 needed\n  expected  f32[2, 3]",
    ],
    ["a number for a matrix", { tokens: 1, mask: six }, ShapeError, "tokens: 1 values given, 6 needed"],
    [
      "of another dtype",
      { tokens: Int32Array.from(six), mask: six },
      ShapeError,
      "tokens: Int32Array given for f32[2, 3]\n  hint  use Float32Array",
    ],
  ];
  for (const [name, feeds, kind, message] of wrong) {
    test(`an input that is ${name}`, async () => {
      await using(spec(), async (program) => {
        const run = program.run(feeds as Record<string, Float32Array>);
        await expect(run).rejects.toThrow(kind);
        await expect(program.run(feeds as Record<string, Float32Array>)).rejects.toThrow(message);
        // The program is still good.
        const { y } = await program.run({ tokens: six, mask: six });
        expect(Array.from(y as Float32Array)).toEqual([22, 28, 49, 64]);
      });
    });
  }
});

test("an input that the simplifier finds useless is one all the same", async () => {
  const [x, u] = [input("x", [2]), input("u", [2])];
  const { carry } = scan({ carry: [x, u], length: 3 }, ([a, b]) => ({ carry: [add(a!, 1), mul(b!, 2)] }));
  await using({ outputs: { y: carry[0]! } }, async (program) => {
    expect([...program.plan.inputs.keys()].sort()).toEqual(["u", "x"]);
    expect((await program.run({ x: [1, 2], u: [0, 0] })).y).toEqual(Float32Array.of(4, 5));
    await expect(program.run({ x: [1, 2] })).rejects.toThrow("input u is missing");
  });
});

describe("an output in a place of one's own", () => {
  test("is written there from then on, also into a part of a larger array", async () => {
    const x = input("x", [2, 2]);
    await using({ outputs: { y: mul(x, 2), z: add(x, 1) } }, async (program) => {
      const all = new Float32Array(12).fill(-1);
      for (const step of [0, 1]) {
        const part = all.subarray(4 * step, 4 * (step + 1));
        program.bindOutput("y", part);
        const out = await program.run({ x: [1, 2, 3, 4 + step] });
        expect(out.y).toBe(part);
        expect(out.z).toEqual(Float32Array.of(2, 3, 4, 5 + step));
      }
      expect(all).toEqual(Float32Array.of(2, 4, 6, 8, 2, 4, 6, 10, -1, -1, -1, -1));
    });
  });

  test("has the output's name and type", async () => {
    await using(
      { outputs: { total: sum(input("x", [2, 2])), y: mul(input("w", [2]), 2) } },
      async (program) => {
        expect(() => program.bindOutput("totl", new Float32Array(1))).toThrow(/no output totl[\s\S]*total/);
        expect(() => program.bindOutput("y", new Float32Array(3))).toThrow("y: 3 values given, 2 needed");
        expect(() => program.bindOutput("y", new Int32Array(2))).toThrow("Int32Array given for f32[2]");
      },
    );
  });
});

describe("what cannot be compiled", () => {
  const x = input("x", [2]);
  const s = state("s", [2]);
  const refused: [string, ProgramSpec, typeof FwmError, string][] = [
    [
      "two sources with one name",
      { outputs: { y: add(x, input("x", [2])) } },
      UsageError,
      "compile: two sources are called x",
    ],
    [
      "an input and a state with one name",
      { outputs: { y: add(x, state("x", [2])) } },
      UsageError,
      "compile: two sources are called x",
    ],
    [
      "an update of something that is no state",
      { outputs: {}, updates: [[x, s]] },
      UsageError,
      "only states can be updated",
    ],
    [
      "an update of another shape",
      { outputs: {}, updates: [[s, sum(s)]] },
      ShapeError,
      "compile: the next value of state s has another type\n  state  f32[2]\n  next   f32[]",
    ],
    [
      "an update of another dtype",
      { outputs: {}, updates: [[s, input("i", [2], "i32")]] },
      ShapeError,
      "state  f32[2]\n  next   i32[2]",
    ],
    [
      "two updates of one state",
      {
        outputs: {},
        updates: [
          [s, x],
          [s, mul(s, 2)],
        ],
      },
      UsageError,
      "compile: state s is updated twice",
    ],
    [
      "an output named like what it is made from",
      { outputs: { x: mul(x, 2) } },
      UsageError,
      "compile: an output has the name of the input x\n  hint  give the output another name",
    ],
  ];
  for (const [name, spec, kind, message] of refused) {
    test(name, () => {
      expect(() => planProgram(spec)).toThrow(kind);
      expect(() => planProgram(spec)).toThrow(message);
    });
  }
});

describe("state", () => {
  test("starts as declared, stays between runs and is replaced at the end of each", async () => {
    const memory = new State();
    await using(
      counting(),
      async (program) => {
        expect(Array.from((await program.run({ by: [1, 1] })).total as Float32Array)).toEqual([13]);
        expect(Array.from((await program.run({ by: [1, 1] })).total as Float32Array)).toEqual([15]);
        expect(memory.get("counter").data).toEqual(Float32Array.of(3, 12));
      },
      memory,
    );
    // The program is gone, its state is not.
    expect(memory.get("counter").data).toEqual(Float32Array.of(3, 12));
  });

  test("every state reads the values before the run, also when states exchange theirs", async () => {
    const a = state("a", [1], { kind: "constant", value: 1 });
    const b = state("b", [1], { kind: "constant", value: 2 });
    const memory = new State();
    await using(
      {
        outputs: {},
        updates: [
          [a, b],
          [b, a],
        ],
      },
      async (program) => {
        await program.run();
        expect([memory.get("a").data[0], memory.get("b").data[0]]).toEqual([2, 1]);
        await program.run();
        expect([memory.get("a").data[0], memory.get("b").data[0]]).toEqual([1, 2]);
      },
      memory,
    );
  });

  test("an update that is not accepted leaves every state as it was, and the outputs can be read", async () => {
    const memory = new State();
    const { counter, ...spec } = counting();
    const other = state("other", [], { kind: "constant", value: 5 });
    const both = { ...spec, updates: [...spec.updates!, [other, sum(counter)] as const] };
    await using(
      both,
      async (program) => {
        const seen: number[] = [];
        const refuse = await program.run({ by: [100, 100] }, undefined, ({ total }) => {
          seen.push(Number(total![0]));
          return false;
        });
        expect([seen, Number(refuse.total![0])]).toEqual([[211], 211]);
        expect(memory.get("counter").data).toEqual(Float32Array.of(1, 10));
        expect(memory.get("other").data).toEqual(Float32Array.of(5));
        await program.run({ by: [1, 1] });
        expect(memory.get("counter").data).toEqual(Float32Array.of(2, 11));
        expect(memory.get("other").data).toEqual(Float32Array.of(11));
      },
      memory,
    );
  });

  test("a run that fails leaves every state as it was", async () => {
    const memory = new State();
    await using(
      counting(),
      async (program) => {
        await expect(program.run({ by: [1] })).rejects.toThrow(ShapeError);
        const unsure = program.run({ by: [1, 1] }, undefined, () => {
          throw new Error("not today");
        });
        await expect(unsure).rejects.toThrow("not today");
        expect(memory.get("counter").data).toEqual(Float32Array.of(1, 10));
      },
      memory,
    );
  });

  test("a run that begins before another has ended is refused, and nothing is lost", async () => {
    const n = state("n", []);
    const reader = { outputs: { twice: mul(n, 2) } };
    const shared = new State();
    const counter = await compile({ outputs: {}, updates: [[n, add(n, 1)]] }, { ...options, state: shared });
    const looking = await compile(reader, { ...options, state: shared });
    try {
      const ends = await Promise.allSettled([counter.run(), counter.run(), looking.run()]);
      expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
      expect((ends[1] as PromiseRejectedResult).reason).toMatchObject({
        name: "UsageError",
        message: expect.stringContaining("has not ended") as string,
      });
      expect([...(shared.get("n").data as Float32Array)]).toEqual([1]);
      expect((await looking.run()).twice).toEqual(Float32Array.of(2));
      await counter.run();
      expect([...(shared.get("n").data as Float32Array)]).toEqual([2]);
    } finally {
      await counter.release();
      await looking.release();
    }
  });

  test("two programs share one state: what one writes the other reads", async () => {
    const memory = new State();
    const reader: ProgramSpec = { outputs: { doubled: mul(state("counter", [2]), 2) } };
    await using(
      counting(),
      async (writer) => {
        await using(
          reader,
          async (program) => {
            await writer.run({ by: [1, 1] });
            expect((await program.run()).doubled).toEqual(Float32Array.of(4, 22));
            await writer.run({ by: [1, 1] });
            expect((await program.run()).doubled).toEqual(Float32Array.of(6, 24));
          },
          memory,
        );
      },
      memory,
    );
  });

  test("two programs that disagree about a state's type", async () => {
    const memory = new State();
    const spec = (tensor: Tensor): ProgramSpec => ({ outputs: { y: tensor } });
    const first = await compile(spec(state("s", [2])), { ...options, state: memory });
    for (const twin of [state("s", [3]), state("s", [2], { kind: "zeros" }, "i32")]) {
      const second = compile(spec(twin), { ...options, state: memory });
      await expect(second).rejects.toThrow("state s: two programs disagree about its type\n  before  f32[2]");
    }
    await first.release();
  });

  test("initial values depend on the seed and the name alone", () => {
    const draw = (seed: number, name: string): HostTensor => {
      const memory = new State(seed);
      memory.declare({
        name: "before",
        shape: [3],
        dtype: "f32",
        initial: { kind: "normal", mean: 0, std: 1 },
      });
      memory.declare({ name, shape: [500], dtype: "f32", initial: { kind: "uniform", low: -2, high: 3 } });
      return memory.get(name);
    };
    expect(draw(1, "W").data).toEqual(draw(1, "W").data);
    expect(draw(1, "W").data).not.toEqual(draw(2, "W").data);
    expect(draw(1, "W").data).not.toEqual(draw(1, "U").data);
    const values = Array.from(draw(1, "W").data as Float32Array);
    expect(Math.min(...values)).toBeGreaterThanOrEqual(-2);
    expect(Math.max(...values)).toBeLessThan(3);
    // The mean of 500 draws lies within five standard errors of 0.5.
    expect(Math.abs(values.reduce((a, b) => a + b) / 500 - 0.5)).toBeLessThan(5 * Math.sqrt(25 / 12 / 500));
  });

  test("initial values of integers and long integers", () => {
    const memory = new State();
    memory.declare({ name: "i", shape: [2], dtype: "i32", initial: { kind: "constant", value: 7 } });
    memory.declare({ name: "l", shape: [2], dtype: "i64", initial: { kind: "values", data: [3, -4] } });
    expect(memory.get("i").data).toEqual(Int32Array.of(7, 7));
    expect(memory.get("l").data).toEqual(BigInt64Array.of(3n, -4n));
    memory.set("l", [5, 6]);
    expect(memory.get("l").data).toEqual(BigInt64Array.of(5n, 6n));
  });
});

test("an input with the name of an object's own member is missing when it is not given", async () => {
  await using({ outputs: { y: add(input("constructor", [1]), 1) } }, async (program) => {
    await expect(program.run({})).rejects.toThrow("input constructor is missing");
    const inputs = JSON.parse('{"constructor":[1]}') as Record<string, number[]>;
    expect((await program.run(inputs)).y).toEqual(Float32Array.of(2));
  });
});

describe("numbers that a dtype would change silently", () => {
  const cases = [
    ["i32", 1.7],
    ["i32", 2 ** 31],
    ["i32", Number.NaN],
    ["i64", 0.5],
    ["i64", 2 ** 53],
    ["bool", 2],
    ["bool", 0.5],
  ] as const;

  test.each(cases)("%s refuses %d, in an array, in a Float64Array and in a state", async (dtype, value) => {
    const x = input("x", [2], dtype);
    await using({ outputs: { y: cast(x, "f32") } }, async (program) => {
      const message = `x[1]: ${value} given for ${dtype}`;
      await expect(program.run({ x: [1, value] })).rejects.toThrow(message);
      await expect(program.run({ x: Float64Array.of(1, value) })).rejects.toThrow(message);
      expect((await program.run({ x: [1, 0] })).y).toEqual(Float32Array.of(1, 0));
    });
    const memory = new State();
    memory.declare({ name: "s", shape: [1], dtype, initial: { kind: "zeros" } });
    expect(() => memory.set("s", [value])).toThrow(ShapeError);
    expect(Number(memory.get("s").data[0])).toBe(0);
  });
});

describe("saving and loading", () => {
  function weights(): State {
    const memory = new State(3);
    const normal = { kind: "normal", mean: 0, std: 1 } as const;
    memory.declare({ name: "W", shape: [2, 2], dtype: "f32", initial: normal });
    memory.declare({ name: "steps", shape: [], dtype: "i32", initial: { kind: "zeros" } });
    return memory;
  }
  const tensor = (data: Float32Array, shape: number[]): HostTensor => ({ shape, dtype: "f32", data });

  test("a snapshot is a copy, and loading it brings the values back", () => {
    const memory = weights();
    const saved = memory.snapshot();
    const before = memory.get("W").data.slice();
    memory.set("W", [1, 2, 3, 4]);
    expect(saved.get("W")!.data).toEqual(before);
    memory.load(saved);
    expect(memory.get("W").data).toEqual(before);
    expect([...memory.snapshot((name) => name === "steps").keys()]).toEqual(["steps"]);
  });

  const steps = allocate([], "i32");
  const good = tensor(Float32Array.of(1, 2, 3, 4), [2, 2]);
  const bad: [string, [string, HostTensor][], string][] = [
    [
      "NaN",
      [["W", tensor(Float32Array.of(1, Number.NaN, 3, 4), [2, 2])]],
      "model.safetensors: tensor W holds NaN at position 1\n  hint  the run that wrote it had diverged; use an earlier checkpoint",
    ],
    [
      "an infinity",
      [["W", tensor(Float32Array.of(1, 2, 3, -1 / 0), [2, 2])]],
      "tensor W holds -Infinity at position 3",
    ],
    [
      "another shape",
      [["W", tensor(Float32Array.of(1, 2, 3, 4), [4])]],
      "model.safetensors: tensor W has another type\n  expected  f32[2, 2]\n  found     f32[4]",
    ],
    [
      "another dtype",
      [["W", { shape: [2, 2], dtype: "i32", data: new Int32Array(4) }]],
      "found     i32[2, 2]",
    ],
    ["a missing tensor", [], "model.safetensors: tensor W is missing\n  expected  f32[2, 2]"],
    [
      "a tensor too many",
      [
        ["W", good],
        ["V", good],
      ],
      "model.safetensors: tensor V is not part of this model\n  did you mean  W",
    ],
  ];
  for (const [name, entries, message] of bad) {
    test(`${name}: nothing is loaded`, () => {
      const memory = weights();
      memory.set("steps", [9]);
      const before = memory.snapshot();
      const values = new Map<string, HostTensor>([["steps", steps], ...entries]);
      const load = (): void => memory.load(values, { source: "model.safetensors" });
      expect(load).toThrow(DataError);
      expect(load).toThrow(message);
      expect(memory.snapshot()).toEqual(before);
    });
  }

  test("unknown names, with the nearest", () => {
    const memory = weights();
    expect(() => memory.get("step")).toThrow(UsageError);
    expect(() => memory.get("step")).toThrow("state step does not exist\n  did you mean  steps");
    expect(() => memory.set("X", [1])).toThrow("state X does not exist");
    expect(() => memory.set("W", [1])).toThrow("state W: 1 values given\n  expected  f32[2, 2]");
  });
});

describe("sessions", () => {
  test("a released program cannot run; releasing twice is harmless", async () => {
    const program = await compile({ outputs: { y: mul(input("x", [1]), 2) } }, options);
    await program.run({ x: [1] });
    await program.release();
    await program.release();
    await expect(program.run({ x: [1] })).rejects.toThrow(UsageError);
    await expect(program.run({ x: [1] })).rejects.toThrow("run: this program was released");
  });

  test("threads and device reach the runtime, and any number of threads gives the same result", async () => {
    const seen: (SessionOptions | undefined)[] = [];
    const spy: Runtime = {
      name: "spy",
      createSession: (model, settings) => {
        seen.push(settings);
        return nodeRuntime.createSession(model, settings);
      },
    };
    const spec = (): ProgramSpec => ({ outputs: { y: matmul(input("a", [33, 65]), input("b", [65, 17])) } });
    const ramp = (size: number): Float32Array => Float32Array.from({ length: size }, (_, i) => (i % 7) - 3);
    const results: unknown[] = [];
    for (const threads of [1, 2]) {
      const program = await compile(spec(), { runtime: spy, threads, device: "cpu" });
      results.push((await program.run({ a: ramp(33 * 65), b: ramp(65 * 17) })).y!.slice());
      await program.release();
    }
    expect(seen.map((settings) => [settings?.threads, settings?.device])).toEqual([
      [1, "cpu"],
      [2, "cpu"],
    ]);
    expect(results[1]).toEqual(results[0]);
  });

  const cudaLibrary = join(
    dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json")),
    "bin/napi-v6/linux/x64/libonnxruntime_providers_cuda.so",
  );
  test(
    "device cuda without its library says how to opt in",
    skipUnless(!existsSync(cudaLibrary), "the CUDA library is installed"),
    async () => {
      const make = () => compile({ outputs: { y: mul(input("x", [1]), 2) } }, { ...options, device: "cuda" });
      await expect(make()).rejects.toThrow(UsageError);
      await expect(make()).rejects.toThrow("npm rebuild onnxruntime-node --ignore-scripts=false");
    },
  );

  test("device wasm belongs to a browser", async () => {
    const make = compile({ outputs: { y: mul(input("x", [1]), 2) } }, { ...options, device: "wasm" });
    await expect(make).rejects.toThrow("device wasm runs in a browser; use cpu or cuda in Node");
  });

  test("a model that is none says so, with the runtime's name", async () => {
    const make = nodeRuntime.createSession(Uint8Array.of(1, 2, 3));
    await expect(make).rejects.toThrow(/^onnxruntime-node: cannot load the program: /);
  });
});

test("outputs are typed by name", async () => {
  const x = input("x", [2]);
  const program = await compile({ outputs: { twice: mul(x, 2) } }, { runtime: nodeRuntime, threads: 1 });
  const out = await program.run({ x: [1, 2] });
  // Without an assertion: the name is known. One that is not is an error of the compiler.
  expect([...out.twice]).toEqual([2, 4]);
  // @ts-expect-error there is no such output
  expect(out.thrice).toBeUndefined();
  await program.release();
});
