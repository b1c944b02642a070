/**
 * Tensors as nodes of a graph: a type (shape and dtype), the op that makes it, and the tensors it is made from.
 *
 * Nothing is computed here. A graph is whatever can be reached backwards from the tensors one asks for.
 */
import { ShapeError } from "../errors.ts";
import type { Op } from "./op.ts";

/** Element types. Floats are 32 bit in ONNX Runtime and 64 bit in the oracle. */
export type DType = "f32" | "i32" | "i64" | "bool";

/** Sizes of the axes, outermost first. `[]` is a scalar. */
export type Shape = readonly number[];

/** What is known of a tensor before anything runs. */
export interface TensorType {
  readonly shape: Shape;
  readonly dtype: DType;
}

/** One use of an op: its inputs, its settings and the tensors it makes. */
export class Node {
  private static count = 0;
  /** Grows with every node made, so that it orders a graph as it was written. */
  readonly id = Node.count++;
  readonly outputs: Tensor[];
  /** The path through the model, e.g. `fwm/read/1`; shown in errors and in the names of ONNX nodes. */
  readonly scope: string;

  constructor(
    readonly op: Op,
    readonly inputs: readonly Tensor[],
    readonly attrs: unknown,
    types: readonly TensorType[],
    scope = currentScope(),
  ) {
    this.scope = scope;
    this.outputs = types.map((type, index) => new Tensor(this, index, type));
  }

  /** Adds one more output; only `scan` does, when its gradient needs a value of every step. */
  addOutput(type: TensorType): Tensor {
    const output = new Tensor(this, this.outputs.length, type);
    this.outputs.push(output);
    return output;
  }
}

/** A symbolic value: output `index` of `node`. */
export class Tensor implements TensorType {
  readonly shape: Shape;
  readonly dtype: DType;

  constructor(
    readonly node: Node,
    readonly index: number,
    type: TensorType,
  ) {
    this.shape = type.shape;
    this.dtype = type.dtype;
  }

  /** Number of axes. */
  get rank(): number {
    return this.shape.length;
  }
}

/** A tensor, or a number that stands for a scalar constant of the other operand's dtype. */
export type Operand = Tensor | number;

/** Number of elements of a shape. */
export function sizeOf(shape: Shape): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Whether two shapes are the same, axis by axis. */
export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis]);
}

/** `f32[2, 3]`: a type as errors and printed programs show it. */
export function showType(type: TensorType): string {
  return `${type.dtype}[${type.shape.join(", ")}]`;
}

/** An axis counted from the front, given one that may be counted from the back (-1 is the last). */
export function axisOf(axis: number, rank: number, op: string): number {
  const fromFront = axis < 0 ? axis + rank : axis;
  if (!Number.isInteger(axis) || fromFront < 0 || fromFront >= rank) {
    throw new ShapeError(`${op}: axis ${axis} is out of range for ${rank} axes`, { scope: currentScope() });
  }
  return fromFront;
}

const scopes: string[] = [];

/** The path of the `scoped` calls we are inside of. */
export function currentScope(): string {
  return scopes.join("/");
}

/** Builds part of a model under a name, so that errors and the printed program can say where they are. */
export function scoped<T>(name: string, build: () => T): T {
  scopes.push(name);
  try {
    return build();
  } finally {
    scopes.pop();
  }
}

/** Builds in the scope that a node already has. */
export function within<T>(scope: string, build: () => T): T {
  return scope === "" ? build() : scoped(scope, build);
}

/** The nodes that `roots` depend on, each after its inputs. Iterative: an unrolled loop is thousands deep. */
export function topological(roots: readonly Tensor[]): Node[] {
  const order: Node[] = [];
  const done = new Set<Node>();
  const stack: { node: Node; next: number }[] = [];
  for (const root of roots) {
    if (!done.has(root.node)) {
      done.add(root.node);
      stack.push({ node: root.node, next: 0 });
    }
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const input = top.node.inputs[top.next++];
      if (!input) {
        order.push(top.node);
        stack.pop();
      } else if (!done.has(input.node)) {
        done.add(input.node);
        stack.push({ node: input.node, next: 0 });
      }
    }
  }
  return order;
}

/** `sources` and the nodes of `order`, each after its inputs, that depend on one of them. */
export function dependents(order: readonly Node[], sources: readonly Tensor[]): Set<Node> {
  const found = new Set(sources.map(({ node }) => node));
  for (const node of order) if (node.inputs.some((input) => found.has(input.node))) found.add(node);
  return found;
}
