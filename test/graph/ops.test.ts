/** Every op in the table: ONNX Runtime against the oracle, gradient against finite differences. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { gradients } from "../../src/compile/grad.ts";
import { ShapeError } from "../../src/errors.ts";
import { constant, type DType, type Op, opTable, type Sample, type Tensor } from "../../src/graph/index.ts";
import type { SampleInput, Value } from "../../src/graph/op.ts";
import { Node } from "../../src/graph/tensor.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import {
  centralDifferences,
  drawOperand,
  expectClose,
  inputsFor,
  normals,
  renamed,
  runOrt,
  weightedSum,
} from "../support/check.ts";

// Sources have no inputs to check at; the point of stopGradient and known is that their gradient is not the true
// one; scan and recompute have tests of their own.
const elsewhere = new Set([
  "input",
  "state",
  "param",
  "randomMask",
  "stopGradient",
  "withValue",
  "scan",
  "recompute",
]);

function applied(
  op: Op,
  sample: Sample<unknown>,
  size: (name: number) => number,
  seed: number,
  floatsAs: DType = "f32",
) {
  const { inputs: specs, attrs } = renamed(sample, size);
  const operands = specs
    .map((spec, i) => drawOperand(spec, seed * 31 + i))
    .map((operand) => (operand.type.dtype === "f32" ? converted(operand, floatsAs) : operand));
  const inputs = inputsFor(operands.map(({ type }) => type));
  const types = op.infer(inputs, attrs);
  const outputs = new Node(op, inputs, attrs, Array.isArray(types) ? types : [types]).outputs;
  const values = new Map<Tensor, Value>(inputs.map((input, i) => [input, operands[i]!.value]));
  return { inputs, outputs, values };
}

/** An operand of floats as one of another dtype: whole numbers without 0, which nothing can be divided by. */
function converted({ type, value }: ReturnType<typeof drawOperand>, dtype: DType) {
  const whole = (x: number): number =>
    dtype === "bool" ? Number(x > 0) : Math.sign(x) * Math.ceil(Math.abs(3 * x));
  const data = dtype === "f32" ? value.data : value.data.map(whole);
  return { type: { shape: type.shape, dtype }, value: { shape: type.shape, data } };
}

/** Whether an op's type rule takes another dtype where the sample has floats. */
function takes(op: Op, sample: Sample<unknown>, dtype: DType): boolean {
  if (sample.inputs.every((spec) => "below" in spec || "dtype" in spec)) return false;
  try {
    applied(op, sample, (n) => n, 1, dtype);
    return true;
  } catch (error) {
    if (error instanceof ShapeError) return false;
    throw error;
  }
}

async function checkValue(
  op: Op,
  sample: Sample<unknown>,
  size: (name: number) => number,
  seed = 1,
): Promise<void> {
  const { outputs, values } = applied(op, sample, size, seed);
  const want = interpret(outputs, values);
  const got = await runOrt(outputs, values);
  // float32 carries 7 digits; sums over a few dozen terms lose one more.
  want.forEach(({ data }, i) => {
    expectClose(got[i]!, data, { rtol: 2e-5, atol: 2e-6, label: `${op.name} output ${i}` });
  });
}

function checkGradient(op: Op, sample: Sample<unknown>, size: (name: number) => number, seed = 1): void {
  const { inputs, outputs, values } = applied(op, sample, size, seed);
  const floats = inputs.filter(({ dtype }) => dtype === "f32");
  const coefficients = outputs.map(({ shape }, i) => normals(shape, 100 + i).data);
  const seeds = outputs.map(({ shape }, i) => constant(coefficients[i]!, shape));
  const grads = gradients(outputs, seeds, floats);
  floats.forEach((input, i) => {
    const want = centralDifferences(
      (data) => weightedSum(outputs, coefficients, new Map(values).set(input, { shape: input.shape, data })),
      values.get(input)!.data,
    );
    const got = grads[i] ? interpret([grads[i]!], values)[0]!.data : new Float64Array(want.length);
    // float64: rounding 1e-16 / step 1e-5 and truncation step² both lie near 1e-10.
    expectClose(got, want, { rtol: 1e-6, atol: 1e-7, label: `${op.name} gradient of input ${i}` });
  });
}

/** The sizes of a sample's operand. */
function sizesOf(operand: SampleInput): readonly number[] {
  return "shape" in operand ? operand.shape : operand;
}

for (const op of opTable.values()) {
  if (elsewhere.has(op.name)) continue;
  describe(op.name, () => {
    test("has samples, odd sizes among them", () => {
      const sizes = op.samples.flatMap(({ inputs }) => inputs.flatMap(sizesOf));
      expect(op.samples.length).toBeGreaterThan(0);
      // A source has no operands, and so no sizes to vary.
      const isSource = op.samples.every(({ inputs }) => inputs.length === 0);
      expect(isSource || sizes.some((size) => size > 1 && size % 2 === 1)).toBe(true);
    });
    op.samples.forEach((sample, i) => {
      const shapes = JSON.stringify(sample.inputs);
      test(`value at sample ${i} ${shapes}`, () => checkValue(op, sample, (n) => n));
      if (typeof op.grad === "function") {
        test(`gradient at sample ${i} ${shapes}`, () => checkGradient(op, sample, (n) => n));
      }
    });
    for (const dtype of ["i32", "i64", "bool"] as const) {
      const accepted = op.samples.filter((sample) => takes(op, sample, dtype));
      if (accepted.length === 0) continue;
      test(`value with ${dtype} in place of floats`, async () => {
        for (const sample of accepted) {
          const { outputs, values } = applied(op, sample, (n) => n, 1, dtype);
          const want = interpret(outputs, values);
          const got = await runOrt(outputs, values);
          want.forEach(({ data }, i) => {
            expect(Array.from(got[i]!, Number), `output ${i}`).toEqual(Array.from(data));
          });
        }
      });
    }
    test("value and gradient at random shapes", async () => {
      const sizes = fc.array(fc.constantFrom(1, 3, 7, 2, 5, 4), { minLength: 8, maxLength: 8 });
      await fc.assert(
        fc.asyncProperty(fc.nat(op.samples.length - 1), sizes, fc.nat(1000), async (which, drawn, seed) => {
          // Part of a split or slice needs two elements; sums and norms need no more than one.
          const least = ["split", "slice", "layerNorm"].includes(op.name) ? 2 : 1;
          const size = (name: number): number => Math.max(least, drawn[name % drawn.length]!);
          await checkValue(op, op.samples[which]!, size, seed);
          if (typeof op.grad === "function") checkGradient(op, op.samples[which]!, size, seed);
        }),
        { numRuns: 8, seed: 7 },
      );
    });
  });
}
