/**
 * Passes that make a graph smaller without changing what it computes: values that are known are not computed, dead
 * loop outputs are dropped, neutral operations removed, transposes folded into products, equal subexpressions and
 * constants shared.
 */
import { broadcastShapes } from "../graph/broadcast.ts";
import type { GraphFunction } from "../graph/op.ts";
import { add, neg, sub } from "../graph/ops/elementwise.ts";
import { type MatmulAttrs, matmul } from "../graph/ops/matmul.ts";
import { applied } from "../graph/ops/recompute.ts";
import { remakeScan, type ScanAttrs, scanAttrs } from "../graph/ops/scan.ts";
import { concat, lastTwoExchanged, reshape, transpose } from "../graph/ops/shape.ts";
import { constantValue } from "../graph/ops/source.ts";
import { remake, rewrite } from "../graph/rewrite.ts";
import {
  type Node,
  type Shape,
  sameShape,
  showType,
  sizeOf,
  type Tensor,
  topological,
  within,
} from "../graph/tensor.ts";
import { constantKey } from "./constantKey.ts";

/** The outputs of an equivalent, smaller graph. */
export function simplify(outputs: readonly Tensor[]): Tensor[] {
  return joinProducts(shareEqual(pruneLoops(shareEqual(pruneLoops(takeKnown(inlined(outputs)))))));
}

/** What is to be computed again for a gradient stands there twice by now, and needs its frame no more. */
function inlined(outputs: readonly Tensor[]): Tensor[] {
  return inBodies(outputs, inlined, (node, inputs) =>
    node.op.name === "recompute" ? inlined(applied(node.attrs as GraphFunction, inputs)) : undefined,
  );
}

/** Applies a pass to the bodies of loops, and a rule to all other nodes. */
function inBodies(
  outputs: readonly Tensor[],
  pass: (results: readonly Tensor[]) => Tensor[],
  rule?: (node: Node, inputs: readonly Tensor[]) => readonly Tensor[] | undefined,
): Tensor[] {
  return rewrite(outputs, new Map(), (node, inputs) => {
    const attrs = scanAttrs(node);
    if (!attrs) return rule?.(node, inputs);
    const results = pass(attrs.body.results);
    if (results.every((result, i) => result === attrs.body.results[i])) return undefined;
    const body = { params: attrs.body.params, results };
    return remakeScan(node, inputs, { ...attrs, body }, [...node.outputs.keys()]);
  });
}

/** Wherever a tensor is used whose value is known, gradients included, the value is used instead. */
function takeKnown(outputs: readonly Tensor[]): Tensor[] {
  let now = inBodies(outputs, takeKnown);
  for (;;) {
    const node = topological(now).find(({ op }) => op.name === "withValue");
    if (!node) return now;
    const [x, value] = node.inputs as [Tensor, Tensor];
    now = rewrite(now, new Map([x, node.outputs[0]!].map((known) => [known, value])));
  }
}

/** One sweep of local rules and common subexpressions, bodies of loops first. */
function shareEqual(outputs: readonly Tensor[]): Tensor[] {
  const known = new Map<string, readonly Tensor[]>();
  return rewrite(outputs, new Map(), (node, inputs) => {
    const simpler = within(node.scope, () => localRule(node, inputs));
    if (simpler) return [simpler];
    const scan = scanAttrs(node);
    if (scan) {
      const body = { params: scan.body.params, results: shareEqual(scan.body.results) };
      return remakeScan(node, inputs, { ...scan, body }, [...node.outputs.keys()]);
    }
    const key = keyOf(node, inputs);
    const before = known.get(key);
    if (before) return before;
    const made = inputs.some((input, i) => input !== node.inputs[i]) ? remake(node, inputs) : node.outputs;
    known.set(key, made);
    return made;
  });
}

const dataIds = new WeakMap<object, number>();
let dataCount = 0;

function keyOf(node: Node, inputs: readonly Tensor[]): string {
  const names = inputs.map((input) => `${input.node.id}.${input.index}`).join(",");
  if (node.inputs.length === 0 && node.op.name !== "constant") return `${node.op.name}#${node.id}`;
  const constant = node.op.name === "constant" ? constantValue(node.outputs[0]!) : undefined;
  if (constant) {
    const key = constantKey(constant.data, constant.shape, constant.dtype);
    if (key) return `constant ${key}`;
    const data = constant.data as object;
    if (!dataIds.has(data)) dataIds.set(data, dataCount++);
    return `constant ${showType(constant)} @${dataIds.get(data)}`;
  }
  return `${node.op.name}(${names}) ${JSON.stringify(node.attrs)}`;
}

/** Whether a tensor is a constant whose every element is `value`. */
function isAll(tensor: Tensor, value: number): boolean {
  const data = constantValue(tensor)?.data;
  if (!data || data.length === 0) return false;
  for (let i = 0; i < data.length; i++) if (data[i] !== value) return false;
  return true;
}

const broadcasting = new Set(["add", "sub", "mul", "div", "min", "max"]);

/** A simpler tensor equal to the node's single output, or undefined. */
function localRule(node: Node, inputs: readonly Tensor[]): Tensor | undefined {
  const [output] = node.outputs as [Tensor];
  const [a, b] = inputs as [Tensor, Tensor];
  const keepsShape = (x: Tensor): boolean => sameShape(x.shape, output.shape);
  switch (node.op.name) {
    case "add":
      if (isAll(b, 0) && keepsShape(a)) return a;
      if (isAll(a, 0) && keepsShape(b)) return b;
      if (b.node.op.name === "neg") return sub(a, b.node.inputs[0]!);
      break;
    case "sub":
      if (isAll(b, 0) && keepsShape(a)) return a;
      break;
    case "mul":
      if (isAll(b, 1) && keepsShape(a)) return a;
      if (isAll(a, 1) && keepsShape(b)) return b;
      if (a.dtype === "f32" && isAll(b, -1) && keepsShape(a)) return neg(a);
      break;
    case "div":
      if (isAll(b, 1) && keepsShape(a)) return a;
      break;
    case "neg":
      if (a.node.op.name === "neg") return a.node.inputs[0]!;
      break;
    case "stopGradient":
      return a;
    case "sum":
      if (keepsShape(a)) return a;
      break;
    case "reshape":
      if (keepsShape(a)) return a;
      if (a.node.op.name === "reshape") return reshape(a.node.inputs[0]!, node.attrs as Shape);
      break;
    case "transpose":
      if (a.node.op.name === "transpose") {
        const inner = a.node.attrs as readonly number[];
        return transpose(
          a.node.inputs[0]!,
          (node.attrs as readonly number[]).map((axis) => inner[axis]!),
        );
      }
      break;
    case "concat":
      return rejoined(node, inputs);
    case "matmul":
      return foldTranspose(node.attrs as MatmulAttrs, a, b);
    default:
  }
  return broadcasting.has(node.op.name) ? withoutExpand(node, inputs) : undefined;
}

/**
 * Sums of products, Σ aᵢᵀ bᵢ, where the factors are smaller than what they make: one product of all aᵢ and all bᵢ. The
 * gradient of a matrix that several tokens were multiplied with is such a sum.
 */
function joinProducts(outputs: readonly Tensor[]): Tensor[] {
  const users = new Map<Tensor, Node[]>();
  const uses = (tensor: Tensor): Node[] => users.get(tensor) ?? [];
  for (const node of topological(outputs)) {
    for (const input of node.inputs) users.set(input, [...uses(input), node]);
  }
  const onlyFor = (tensor: Tensor): Node | undefined =>
    uses(tensor).length === 1 && !outputs.includes(tensor) ? uses(tensor)[0] : undefined;
  const isTerm = ({ outputs: [sum] }: Node): boolean => {
    const user = onlyFor(sum!);
    return user?.op.name === "add" && sameShape(user.outputs[0]!.shape, sum!.shape);
  };
  const isJoined = ({ node, shape }: Tensor): boolean => {
    const { transA, transB } = node.op.name === "matmul" ? (node.attrs as MatmulAttrs) : {};
    const [a, b] = node.inputs as [Tensor, Tensor];
    if (!transA || transB || !onlyFor(node.outputs[0]!)) return false;
    const alike = sameShape(a.shape.slice(0, -2), b.shape.slice(0, -2));
    return alike && sizeOf(a.shape) + sizeOf(b.shape) < sizeOf(shape);
  };
  const now = new Map<Tensor, Tensor>();
  return inBodies(outputs, joinProducts, (node, inputs) => {
    inputs.forEach((input, i) => {
      now.set(node.inputs[i]!, input);
    });
    if (node.op.name !== "add" || isTerm(node)) return undefined;
    const terms: Tensor[] = [];
    for (const waiting = [node.outputs[0]!]; waiting.length > 0; ) {
      const tensor = waiting.pop()!;
      const isSum = tensor.node === node || (tensor.node.op.name === "add" && isTerm(tensor.node));
      if (isSum) waiting.push(...tensor.node.inputs.toReversed());
      else terms.push(tensor);
    }
    const products = terms.filter((term) => sameShape(term.shape, node.outputs[0]!.shape) && isJoined(term));
    if (products.length < 2) return undefined;
    const factor = (i: number): Tensor =>
      concat(
        products.map((term) => now.get(term.node.inputs[i]!)!),
        -2,
      );
    const joined = within(products[0]!.node.scope, () => matmul(factor(0), factor(1), { transA: true }));
    const rest = terms.filter((term) => !products.includes(term)).map((term) => now.get(term)!);
    return [within(node.scope, () => rest.reduce((total, term) => add(total, term), joined))];
  });
}

/** All parts of a split, in order, put together again. */
function rejoined(node: Node, inputs: readonly Tensor[]): Tensor | undefined {
  const source = inputs[0]!.node;
  const whole =
    source.op.name === "split" &&
    (source.attrs as { axis: number }).axis === node.attrs &&
    inputs.length === source.outputs.length &&
    inputs.every((input, i) => input === source.outputs[i]);
  return whole ? source.inputs[0] : undefined;
}

/** A product takes a transposed operand as it is stored. */
function foldTranspose(attrs: MatmulAttrs, a: Tensor, b: Tensor): Tensor | undefined {
  const exchanged = (x: Tensor): boolean =>
    x.node.op.name === "transpose" && sameShape(x.node.attrs as Shape, lastTwoExchanged(x.rank));
  if (exchanged(a)) return matmul(a.node.inputs[0]!, b, { ...attrs, transA: !attrs.transA });
  if (exchanged(b)) return matmul(a, b.node.inputs[0]!, { ...attrs, transB: !attrs.transB });
  return undefined;
}

/** Element-wise ops broadcast by themselves: an operand need not be expanded first. */
function withoutExpand(node: Node, inputs: readonly Tensor[]): Tensor | undefined {
  const bare = inputs.map((input) => (input.node.op.name === "expand" ? input.node.inputs[0]! : input));
  for (const choice of [bare, [bare[0]!, inputs[1]!], [inputs[0]!, bare[1]!]]) {
    const changed = choice.some((x, i) => x !== inputs[i]);
    const shape = broadcastShapes(node.op.name, choice[0]!.shape, choice[1]!.shape, choice);
    if (changed && sameShape(shape, node.outputs[0]!.shape)) return remake(node, choice)[0];
  }
  return undefined;
}

/**
 * Loops without the outputs nobody uses, without the state and inputs only those needed, and without outputs
 * that are there already: a value stacked twice, or a slice of an input stacked again.
 */
function pruneLoops(outputs: readonly Tensor[]): Tensor[] {
  const used = new Set<Tensor>(outputs);
  for (const node of topological(outputs)) for (const input of node.inputs) used.add(input);
  return rewrite(outputs, new Map(), (node, inputs) => {
    const attrs = scanAttrs(node);
    return attrs ? pruneLoop(node, attrs, inputs, used) : undefined;
  });
}

function pruneLoop(
  node: Node,
  attrs: ScanAttrs,
  inputs: readonly Tensor[],
  used: ReadonlySet<Tensor>,
): readonly Tensor[] {
  const { body, carries, xs } = attrs;
  const wanted = [...node.outputs.keys()].filter((i) => used.has(node.outputs[i]!));
  const inputOf = (i: number): Tensor | undefined => {
    const param = i < carries ? -1 : body.params.indexOf(body.results[i]!, carries);
    return param >= 0 && param < carries + xs ? inputs[param] : undefined;
  };
  const twinOf = (i: number): number =>
    i < carries ? i : wanted.find((j) => j >= carries && body.results[j] === body.results[i])!;
  // A carry lives if its last value is used, or if a living result depends on it.
  const alive = new Set(wanted.filter((i) => !inputOf(i) && twinOf(i) === i));
  for (let before = -1; before !== alive.size; ) {
    before = alive.size;
    const nodes = new Set(topological([...alive].map((i) => body.results[i]!)));
    for (let i = 0; i < carries; i++) if (nodes.has(body.params[i]!.node)) alive.add(i);
  }
  const results = [...alive].sort((i, j) => i - j);
  const nodes = new Set(topological(results.map((i) => body.results[i]!)));
  const keepsParam = body.params.map((p, i) => (i < carries ? alive.has(i) : nodes.has(p.node)));
  const pruned: GraphFunction = {
    params: body.params.filter((_, i) => keepsParam[i]),
    results: pruneLoops(results.map((i) => body.results[i]!)),
  };
  const count = (from: number, to: number): number => keepsParam.slice(from, to).filter(Boolean).length;
  const next: ScanAttrs = {
    ...attrs,
    body: pruned,
    carries: count(0, carries),
    xs: count(carries, carries + xs),
  };
  const made = remakeScan(
    node,
    inputs.filter((_, i) => keepsParam[i]),
    next,
    results,
  );
  for (const i of wanted) made[i] ??= inputOf(i) ?? made[twinOf(i)]!;
  return made;
}
