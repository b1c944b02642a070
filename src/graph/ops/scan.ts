/**
 * A loop over time: state is carried from step to step, inputs are cut along their first axis, outputs stacked.
 *
 * The gradient is a loop that runs the other way. It keeps from the forward steps only the values it uses
 * (redoing what is a mere relabelling), and the gradient of a tensor that every step shares, such as a weight
 * matrix, leaves the loop whenever the sum over time is one large product or reduction.
 */
import { ShapeError } from "../../errors.ts";
import { type Backward, defineOp, type GraphFunction, type Value } from "../op.ts";
import { rewrite } from "../rewrite.ts";
import {
  currentScope,
  dependents,
  Node,
  sameShape,
  showType,
  sizeOf,
  type Tensor,
  type TensorType,
  topological,
} from "../tensor.ts";
import { add } from "./elementwise.ts";
import { reshape, split, stack } from "./shape.ts";
import { param, zeros } from "./source.ts";
import { planSum } from "./sumOverTime.ts";

/** A loop: `body` takes carries, then slices of the xs, then captured tensors; it gives carries, then ys. */
export interface ScanAttrs {
  readonly body: GraphFunction;
  readonly carries: number;
  readonly xs: number;
  readonly length: number;
  /** From the last step to the first; the stacked outputs stay in the order of time. */
  readonly reverse: boolean;
}

function outputTypes({ body, carries, length }: ScanAttrs): TensorType[] {
  return body.results.map(({ shape, dtype }, i) => ({
    shape: i < carries ? shape : [length, ...shape],
    dtype,
  }));
}

const scanOp = defineOp<ScanAttrs>("scan", {
  infer: (_, attrs) => outputTypes(attrs),
  evaluate({ inputs, attrs, types, run }) {
    const { body, carries, xs, length, reverse } = attrs;
    let carry = inputs.slice(0, carries);
    const stacked = types.slice(carries).map(({ shape }) => new Float64Array(sizeOf(shape)));
    for (let n = 0; n < length; n++) {
      const t = reverse ? length - 1 - n : n;
      const slices = inputs.slice(carries, carries + xs).map((x) => valueAt(x, t));
      const results = run(body, [...carry, ...slices, ...inputs.slice(carries + xs)]);
      carry = results.slice(0, carries);
      results.slice(carries).forEach(({ data }, i) => {
        stacked[i]!.set(data, t * data.length);
      });
    }
    return [...carry.map(({ data }) => data), ...stacked];
  },
  grad: (args) => scanGradient(args),
  onnx({ inputs, attrs, emitMany, types, constant }) {
    const { carries, reverse, length } = attrs;
    // ONNX counts the steps along the inputs it cuts into slices and wants at least one.
    const clock = attrs.xs > 0 ? [] : [constant(new Array<number>(length).fill(0), [length], "f32")];
    const xs = attrs.xs + clock.length;
    const { params, results } = attrs.body;
    const body = {
      params: [...params.slice(0, carries), ...clock.map(() => param("clock", [])), ...params.slice(carries)],
      results,
    };
    const direction = reverse ? 1 : 0;
    return emitMany("Scan", [...inputs.slice(0, carries + attrs.xs), ...clock], types.length, {
      body: {
        body,
        inputs: carries + xs,
        captures: inputs.slice(carries + attrs.xs),
        resultOrder: [...results.keys()],
      },
      num_scan_inputs: xs,
      scan_input_directions: new Array<number>(xs).fill(direction),
      scan_output_directions: new Array<number>(types.length - carries).fill(direction),
    });
  },
  samples: [],
});

function valueAt(x: Value, t: number): Value {
  const size = sizeOf(x.shape.slice(1));
  return { shape: x.shape.slice(1), data: x.data.subarray(t * size, (t + 1) * size) };
}

/** The settings of a scan node, or undefined for anything else. */
export function scanAttrs(node: Node): ScanAttrs | undefined {
  return node.op.name === "scan" ? (node.attrs as ScanAttrs) : undefined;
}

/** What a loop runs over. */
export interface ScanInputs {
  /** State before the first step. */
  readonly carry: readonly Tensor[];
  /** Tensors whose first axis is time. */
  readonly xs?: readonly Tensor[];
  /** Number of steps; needed only when there are no xs. */
  readonly length?: number;
  readonly reverse?: boolean;
  /** Write the steps out one after the other instead of a loop. */
  readonly unroll?: boolean;
}

/** What one step gives: the next state, and values to stack over time. */
export interface ScanStep {
  readonly carry: readonly Tensor[];
  readonly ys?: readonly Tensor[];
}

/** Runs `step` over time and gives the final state and the stacked ys. */
export function scan(
  { carry, xs = [], length = xs[0]?.shape[0], reverse = false, unroll = false }: ScanInputs,
  step: (carry: readonly Tensor[], xs: readonly Tensor[]) => ScanStep,
): { carry: Tensor[]; ys: Tensor[] } {
  if (length === undefined || xs.some((x) => x.shape[0] !== length)) {
    throw new ShapeError("scan: the xs need one common first axis, or a length", {
      xs: xs.map(showType),
      length,
      scope: currentScope(),
    });
  }
  if (!Number.isSafeInteger(length) || length < 1) {
    throw new ShapeError("scan: the length is a whole number, at least 1", { length, scope: currentScope() });
  }
  if (unroll) return unrolled(carry, xs, length, reverse, step);
  const params = [
    ...carry.map(({ shape, dtype }, i) => param(`carry${i}`, shape, dtype)),
    ...xs.map(({ shape, dtype }, i) => param(`x${i}`, shape.slice(1), dtype)),
  ];
  const made = step(params.slice(0, carry.length), params.slice(carry.length));
  checkCarry(carry, made.carry);
  const results = [...made.carry, ...(made.ys ?? [])];
  const captures = capturesOf(results, params);
  const captured = captures.map(({ shape, dtype }, i) => param(`captured${i}`, shape, dtype));
  const closed = rewrite(results, new Map(captures.map((outer, i) => [outer, captured[i]!])));
  const attrs: ScanAttrs = {
    body: { params: [...params, ...captured], results: closed },
    carries: carry.length,
    xs: xs.length,
    length,
    reverse,
  };
  const outputs = scanOp.apply([...carry, ...xs, ...captures], attrs);
  return { carry: outputs.slice(0, carry.length), ys: outputs.slice(carry.length) };
}

function checkCarry(before: readonly Tensor[], after: readonly Tensor[]): void {
  const fits = before.length === after.length && before.every((tensor, i) => sameType(tensor, after[i]!));
  if (!fits) {
    throw new ShapeError("scan: a step must give back state of the types it was given", {
      given: before.map(showType),
      "gave back": after.map(showType),
      scope: currentScope(),
    });
  }
}

function sameType(a: TensorType, b: TensorType): boolean {
  return a.dtype === b.dtype && sameShape(a.shape, b.shape);
}

function unrolled(
  initial: readonly Tensor[],
  xs: readonly Tensor[],
  length: number,
  reverse: boolean,
  step: (carry: readonly Tensor[], xs: readonly Tensor[]) => ScanStep,
): { carry: Tensor[]; ys: Tensor[] } {
  const slices = xs.map((x) => split(x, length, 0).map((part) => reshape(part, x.shape.slice(1))));
  const steps = new Array<ScanStep>(length);
  let carry = initial;
  for (let n = 0; n < length; n++) {
    const t = reverse ? length - 1 - n : n;
    const made = step(
      carry,
      slices.map((parts) => parts[t]!),
    );
    checkCarry(carry, made.carry);
    carry = made.carry;
    steps[t] = made;
  }
  const ys = (steps[0]?.ys ?? []).map((_, i) => stack(steps.map((made) => made.ys![i]!)));
  return { carry: [...carry], ys };
}

/** Tensors a body uses but does not depend on its params: the loop's invariants, made once outside. */
export function capturesOf(results: readonly Tensor[], params: readonly Tensor[]): Tensor[] {
  const order = topological(results);
  const inside = dependents(order, params);
  const captures = new Set<Tensor>();
  const capture = (tensor: Tensor): void => {
    if (!inside.has(tensor.node) && tensor.node.op.name !== "constant") captures.add(tensor);
  };
  for (const node of order) if (inside.has(node)) node.inputs.forEach(capture);
  results.forEach(capture);
  return [...captures];
}

/** Makes a value of every forward step available after the loop, stacked over time. */
function keep(node: Node, inner: Tensor): Tensor {
  const attrs = node.attrs as ScanAttrs;
  const { body, carries, xs, length } = attrs;
  const asParam = body.params.indexOf(inner);
  if (asParam >= carries && asParam < carries + xs) return node.inputs[asParam]!;
  const known = body.results.indexOf(inner, carries);
  if (known >= 0) return node.outputs[known]!;
  body.results.push(inner);
  return node.addOutput({ shape: [length, ...inner.shape], dtype: inner.dtype });
}

function scanGradient(args: Backward<ScanAttrs>): (Tensor | undefined)[] {
  const { node, inputs, attrs, dys, needs, differentiate } = args;
  const { body, carries, xs, length, reverse } = attrs;
  const isFloat = (i: number): boolean => body.params[i]!.dtype === "f32";
  const wanted = body.params.map((_, i) => isFloat(i) && (i < carries || needs(i)));

  // Gradients that reach the results of one step: of its ys, and of the carries that lead to the loss.
  const dYs = dys.slice(carries);
  const seeds: (Tensor | undefined)[] = [
    ...new Array<undefined>(carries).fill(undefined),
    ...dYs.map((dy, i) => dy && param(`dy${i}`, dy.shape.slice(1))),
  ];
  dys.slice(0, carries).forEach((dy, i) => {
    if (dy) seeds[i] = param(`dcarry${i}`, dy.shape);
  });
  let grads: (Tensor | undefined)[];
  for (;;) {
    grads = differentiate(
      body.results.slice(0, seeds.length),
      seeds,
      body.params.map((p, i) => (wanted[i] ? p : seedless)),
    );
    const fresh = [...Array(carries).keys()].filter((i) => grads[i] && !seeds[i]);
    if (fresh.length === 0) break;
    for (const i of fresh) seeds[i] = param(`dcarry${i}`, body.params[i]!.shape);
  }

  const forward = new Set(topological([...body.results, ...body.params]));
  const live = [...Array(carries).keys()].filter((i) => seeds[i]);
  const slices = [...Array(xs).keys()].map((i) => carries + i).filter((i) => grads[i]);
  const shared = [...Array(body.params.length).keys()].slice(carries + xs).filter((i) => grads[i]);
  const moving = dependents(topological(shared.map((i) => grads[i]!)), [
    ...body.params.slice(0, carries + xs),
    ...seeds.filter((seed) => seed !== undefined),
  ]);
  const plans = new Map(shared.map((i) => [i, planSum(grads[i]!, moving)]));
  const accumulated = shared.filter((i) => !plans.get(i));
  const leaves = [...new Set([...plans.values()].flatMap((plan) => plan?.leaves ?? []))];
  const backLeaves = leaves.filter((leaf) => !forward.has(leaf.node));

  // What one backward step computes, and the forward values it refers to.
  const roots = [
    ...live.map((i) => grads[i] ?? zeros(body.params[i]!.shape)),
    ...accumulated.map((i) => grads[i]!),
    ...slices.map((i) => grads[i]!),
    ...backLeaves,
  ];
  const kept = forwardValues(roots, forward, body.params.slice(carries + xs));
  const captured = new Map(body.params.slice(carries + xs).map((p, k) => [p, inputs[carries + xs + k]!]));
  const liveDys = [...dYs.keys()].filter((i) => dYs[i]);
  const accumulators = accumulated.map((i) => zeros(body.params[i]!.shape));

  const back = scan(
    {
      carry: [...live.map((i) => dys[i] ?? zeros(body.params[i]!.shape)), ...accumulators],
      xs: [...liveDys.map((i) => dYs[i]!), ...kept.map((inner) => keep(node, inner))],
      length,
      reverse: !reverse,
    },
    (carry, slice) => {
      const replaced = new Map<Tensor, Tensor>(captured);
      live.forEach((i, n) => {
        replaced.set(seeds[i]!, carry[n]!);
      });
      liveDys.forEach((i, n) => {
        replaced.set(seeds[carries + i]!, slice[n]!);
      });
      kept.forEach((inner, n) => {
        replaced.set(inner, slice[liveDys.length + n]!);
      });
      const made = rewrite(roots, replaced);
      const next = made.slice(0, live.length);
      const totals = accumulated.map((_, n) => add(carry[live.length + n]!, made[live.length + n]!));
      return { carry: [...next, ...totals], ys: made.slice(live.length + accumulated.length) };
    },
  );

  const result = new Array<Tensor | undefined>(inputs.length).fill(undefined);
  live.forEach((i, n) => {
    result[i] = back.carry[n];
  });
  accumulated.forEach((i, n) => {
    result[i] = back.carry[live.length + n];
  });
  slices.forEach((i, n) => {
    result[i] = back.ys[n];
  });
  const stacks = new Map(backLeaves.map((leaf, n) => [leaf, back.ys[slices.length + n]!]));
  for (const [i, plan] of plans) {
    if (plan) result[i] = plan.build((leaf) => stacks.get(leaf) ?? keep(node, leaf));
  }
  return result;
}

/** Stands for a param no gradient is wanted of. */
const seedless = param("unused", []);

/** The forward values that backward expressions need, after redoing what is cheap. */
function forwardValues(
  roots: readonly Tensor[],
  forward: ReadonlySet<Node>,
  captured: readonly Tensor[],
): Tensor[] {
  const outer = new Set(captured);
  const kept = new Set<Tensor>();
  const seen = new Set<Node>();
  const waiting = [...roots].reverse();
  for (let tensor = waiting.pop(); tensor; tensor = waiting.pop()) {
    const { node } = tensor;
    if (forward.has(node)) {
      if (node.op.name === "constant" || outer.has(tensor)) continue;
      if (!node.op.cheap) {
        kept.add(tensor);
        continue;
      }
    }
    if (seen.has(node)) continue;
    seen.add(node);
    waiting.push(...node.inputs.toReversed());
  }
  return [...kept];
}

/** A scan with other settings, given as if it still had all its outputs; used by the passes. */
export function remakeScan(
  node: Node,
  inputs: readonly Tensor[],
  attrs: ScanAttrs,
  outputs: readonly number[],
): Tensor[] {
  const made = new Node(node.op, inputs, attrs, outputTypes(attrs), node.scope).outputs;
  const all = new Array<Tensor>(node.outputs.length);
  outputs.forEach((old, i) => {
    all[old] = made[i]!;
  });
  return all;
}
