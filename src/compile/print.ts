/**
 * A graph as text: what tests of the passes compare, and what one reads to see what will run.
 *
 *   input x : f32[2, 3]
 *   state W : f32[3, 4]
 *   %0 = matmul(x, W) : f32[2, 4]
 *   %1, %2 = split(%0) axis=1 sizes=[1, 3] : f32[2, 1], f32[2, 3]
 *   return %1, %2
 *
 * Sources come first and keep their names; everything else is numbered in the order in which it is computed.
 * Scalar constants stand where they are used. A loop shows what it carries and what it cuts into slices; its
 * body is indented and sees the names outside. `# lstm` is the scope a node was built under.
 */

import { type ScanAttrs, scanAttrs } from "../graph/ops/scan.ts";
import { constantValue, type MaskAttrs, type SourceAttrs } from "../graph/ops/source.ts";
import { type Node, showType, type Tensor, topological } from "../graph/tensor.ts";

/** The graph behind `outputs`, one line per node; `names` are shown beside the outputs they belong to. */
export function printGraph(outputs: readonly Tensor[], names: readonly string[] = []): string {
  const printer = new Printer();
  printer.sources(outputs);
  printer.nodes(outputs);
  const results = outputs.map((output, i) => (names[i] ? `${names[i]}: ` : "") + printer.nameOf(output));
  printer.line(`return ${results.join(", ")}`);
  return printer.lines.join("\n");
}

const sourceWords: Readonly<Record<string, string>> = { input: "input", state: "state", randomMask: "mask" };

/** Constants with more values than this show only the first few. */
const mostValues = 8;

class Printer {
  readonly lines: string[] = [];
  private readonly names = new Map<Tensor, string>();
  private readonly taken = new Set<string>();
  private count = 0;
  private indent = "";

  line(text: string): void {
    this.lines.push(this.indent + text);
  }

  nameOf(tensor: Tensor): string {
    const known = this.names.get(tensor);
    if (known) return known;
    const constant = constantValue(tensor);
    if (constant?.shape.length === 0) return String(constant.data[0]);
    const name = `%${this.count++}`;
    this.names.set(tensor, name);
    return name;
  }

  /** Inputs, states and masks; in a loop's body there are none, for they are captured from outside. */
  sources(outputs: readonly Tensor[]): void {
    const nodes = topological(outputs);
    for (const op of Object.keys(sourceWords)) {
      for (const node of nodes) if (node.op.name === op) this.source(node);
    }
  }

  private source(node: Node): void {
    const tensor = node.outputs[0]!;
    const { name } = node.attrs as SourceAttrs;
    // Two sources of one name are refused when a program is compiled; here they have to be told apart.
    const shown = this.taken.has(name) ? `${name}#${node.id}` : name;
    this.taken.add(shown);
    this.names.set(tensor, shown);
    const keep = node.op.name === "randomMask" ? ` keep=${(node.attrs as MaskAttrs).keep}` : "";
    this.line(`${sourceWords[node.op.name]} ${shown}${keep} : ${showType(tensor)}`);
  }

  nodes(outputs: readonly Tensor[]): void {
    for (const node of topological(outputs)) {
      if (!node.outputs.every((output) => this.names.has(output))) this.node(node);
    }
  }

  private node(node: Node): void {
    const constant = constantValue(node.outputs[0]!);
    if (constant?.shape.length === 0) return;
    const scan = scanAttrs(node);
    const operands = node.inputs.map((input) => this.nameOf(input));
    const results = node.outputs.map((output) => this.nameOf(output)).join(", ");
    const types = node.outputs.map(showType).join(", ");
    const scope = node.scope ? `  # ${node.scope}` : "";
    const call = constant
      ? `constant ${showValues(constant.data)}`
      : scan
        ? `scan ${scan.length} steps${scan.reverse ? " in reverse" : ""}`
        : `${node.op.name}(${operands.join(", ")})${showAttrs(node.attrs)}`;
    this.line(`${results} = ${call} : ${types}${scope}`);
    if (scan) this.body(scan, operands);
  }

  private body({ body, carries, xs }: ScanAttrs, operands: readonly string[]): void {
    const outside = this.indent;
    this.indent += "  ";
    body.params.forEach((param, i) => {
      if (i >= carries + xs) {
        this.names.set(param, operands[i]!);
        return;
      }
      const word = i < carries ? "carry" : "slice";
      const from = i < carries ? "from" : "of";
      this.line(`${word} ${this.nameOf(param)} ${from} ${operands[i]} : ${showType(param)}`);
    });
    this.nodes(body.results);
    const shown = body.results.map((result) => this.nameOf(result));
    if (carries > 0) this.line(`next ${shown.slice(0, carries).join(", ")}`);
    if (shown.length > carries) this.line(`stack ${shown.slice(carries).join(", ")}`);
    this.indent = outside;
  }
}

function showValues(data: ArrayLike<number>): string {
  const values = Array.from(data);
  if (values.length > 1 && values.every((value) => value === values[0])) return `all ${values[0]}`;
  const shown = values.slice(0, mostValues).join(", ");
  return values.length > mostValues ? `[${shown}, …]` : `[${shown}]`;
}

/** ` axis=1 sizes=[1, 3]`: settings that are true show their name, those that are false nothing. */
function showAttrs(attrs: unknown): string {
  if (attrs === null || attrs === undefined) return "";
  if (Array.isArray(attrs)) return ` [${attrs.join(", ")}]`;
  if (typeof attrs !== "object") return ` ${String(attrs)}`;
  return Object.entries(attrs)
    .filter(([, value]) => value !== false)
    .map(([key, value]) => (value === true ? ` ${key}` : ` ${key}=${showValue(value)}`))
    .join("");
}

function showValue(value: unknown): string {
  return Array.isArray(value) ? `[${value.join(", ")}]` : String(value);
}
