/** Einstein summation, composed of transposes, reshapes and one matrix product per pair of operands. */
import { ShapeError } from "../errors.ts";
import { mul } from "./ops/elementwise.ts";
import { matmul } from "./ops/matmul.ts";
import { sum } from "./ops/reduce.ts";
import { reshape, transpose } from "./ops/shape.ts";
import { currentScope, showType, sizeOf, type Tensor } from "./tensor.ts";

/** `einsum("bi,bj,bijk->bk", a, b, F)`: operands are joined from left to right; letters name axes. */
export function einsum(formula: string, ...operands: readonly Tensor[]): Tensor {
  const [left, right] = formula.replaceAll(" ", "").split("->");
  const terms = left?.split(",") ?? [];
  if (right === undefined || terms.length !== operands.length)
    fail(formula, operands, "one term per operand");
  for (const term of [...terms, right!])
    if (new Set(term).size !== term.length) fail(formula, operands, `term ${term} names an axis twice`);
  const sizes = new Map<string, number>();
  terms.forEach((term, i) => {
    const { shape } = operands[i]!;
    if (term.length !== shape.length) fail(formula, operands, `term ${term} needs ${term.length} axes`);
    [...term].forEach((letter, axis) => {
      const known = sizes.get(letter) ?? shape[axis]!;
      if (known !== shape[axis])
        fail(formula, operands, `axis ${letter} is both ${known} and ${shape[axis]}`);
      sizes.set(letter, known);
    });
  });
  for (const letter of right!)
    if (!sizes.has(letter)) fail(formula, operands, `axis ${letter} is not in any term`);

  let [term, value] = [terms[0]!, operands[0]!];
  for (let i = 1; i < operands.length; i++) {
    // Letters that nothing later needs are summed as early as possible.
    const later = right! + terms.slice(i + 1).join("");
    [term, value] = joined(term, value, terms[i]!, operands[i]!, later, sizes);
  }
  const gone = [...term].flatMap((letter, axis) => (right!.includes(letter) ? [] : [axis]));
  const kept = [...term].filter((letter) => right!.includes(letter));
  return transpose(
    gone.length > 0 ? sum(value, { axes: gone }) : value,
    [...right!].map((letter) => kept.indexOf(letter)),
  );
}

function fail(formula: string, operands: readonly Tensor[], what: string): never {
  throw new ShapeError(`einsum: ${what}`, {
    formula,
    operands: operands.map(showType),
    scope: currentScope(),
  });
}

/** The product of two terms with the letters that are in both and needed no more summed away. */
function joined(
  termA: string,
  a: Tensor,
  termB: string,
  b: Tensor,
  later: string,
  sizes: ReadonlyMap<string, number>,
): [string, Tensor] {
  const inBoth = [...termA].filter((letter) => termB.includes(letter));
  const batch = inBoth.filter((letter) => later.includes(letter));
  const inner = inBoth.filter((letter) => !later.includes(letter));
  const onlyA = [...termA].filter((letter) => !termB.includes(letter));
  const onlyB = [...termB].filter((letter) => !termA.includes(letter));
  const size = (letters: readonly string[]): number => sizeOf(letters.map((letter) => sizes.get(letter)!));
  const arranged = (term: string, x: Tensor, ...groups: readonly string[][]): Tensor =>
    reshape(
      transpose(
        x,
        groups.flat().map((letter) => term.indexOf(letter)),
      ),
      [...batch.map((letter) => sizes.get(letter)!), ...groups.slice(1).map(size)],
    );
  const term = [...batch, ...onlyA, ...onlyB];
  const shape = term.map((letter) => sizes.get(letter)!);
  const left = arranged(termA, a, batch, onlyA, inner);
  const right = arranged(termB, b, batch, inner, onlyB);
  // Without a letter to sum over, the product is element by element.
  return [term.join(""), reshape(inner.length > 0 ? matmul(left, right) : mul(left, right), shape)];
}
