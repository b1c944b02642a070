/**
 * Optimizers as parts of the graph, with PyTorch's update formulas. g is the gradient, p a parameter.
 *
 *   decay    g ← g + λ p                                   (coupled L2: added to the gradient, not AdamW)
 *   SGD      p ← p - η g
 *   Adam     m ← β1 m + (1-β1) g,   v ← β2 v + (1-β2) g²
 *            p ← p - η/(1-β1ᵗ) · m / (√v/√(1-β2ᵗ) + ε)
 *   ASGD     p ← p - η g,   a ← p while t ≤ 2, else a ← a + (p - a)/(t-1)     (t0 = 0, λ = 0)
 *            η is the rate given at the step before (PyTorch stores it at the end of a step)
 *   Muon     m ← μ m + (1-μ) g,   p ← p - η · 0.2 √max(rows, columns) · orthogonal((1-μ) g + μ m)
 *            for matrices; everything else by Adam       (Jordan 2024; the factor is of Liu et al. 2025)
 *   mean     a ← a + (p - a)/t                             (of any optimizer's weights, from a step on)
 *   clip     g ← g · min(1, limit / (|all g| + 1e-6))
 */
import { nearest, UsageError } from "../errors.ts";
import {
  add,
  concat,
  div,
  equal,
  matmul,
  max,
  min,
  mul,
  scalar,
  split,
  sqrt,
  state,
  stateAttrs,
  sub,
  sum,
  type Tensor,
  transpose,
  where,
} from "../graph/index.ts";

/** A state and what replaces it. */
export type Update = readonly [state: Tensor, next: Tensor];

/** An optimizer: parameters and their gradients become updates. */
export type Optimizer = (
  parameters: readonly Tensor[],
  gradients: readonly Tensor[],
  rate: Tensor,
) => Update[];

function slot(prefix: string, parameter: Tensor): Tensor {
  return state(`${prefix}.${stateAttrs(parameter)!.name}`, parameter.shape);
}

function decayed(gradient: Tensor, parameter: Tensor, decay: number): Tensor {
  return decay === 0 ? gradient : add(gradient, mul(parameter, decay));
}

/** Plain gradient descent. */
export function sgd({ weightDecay: decay = 0 } = {}): Optimizer {
  return (parameters, gradients, rate) =>
    parameters.map((p, i) => [p, sub(p, mul(rate, decayed(gradients[i]!, p, decay)))]);
}

/** Constants of Adam. */
export interface AdamSettings {
  readonly beta1?: number;
  readonly beta2?: number;
  readonly eps?: number;
  readonly weightDecay?: number;
  /** Factors on the rate of single parameters, by name. */
  readonly lrRatios?: Readonly<Record<string, number>> | undefined;
}

/** Adam. `1 - βᵗ` is carried along instead of computed from t: nothing cancels. */
export function adam({
  beta1 = 0.9,
  beta2 = 0.999,
  eps = 1e-8,
  weightDecay: decay = 0,
  lrRatios = {},
}: AdamSettings = {}): Optimizer {
  return (parameters, gradients, rate) => {
    checkNames("lrRatios", Object.keys(lrRatios), parameters);
    const towards = (before: Tensor, value: Tensor | number, beta: number): Tensor =>
      add(mul(before, beta), mul(typeof value === "number" ? scalar(value) : value, 1 - beta));
    const correction1 = state("adam.correction1", []);
    const correction2 = state("adam.correction2", []);
    const next1 = towards(correction1, 1, beta1);
    const next2 = towards(correction2, 1, beta2);
    const stepSize = div(rate, next1);
    const root2 = sqrt(next2);
    const updates: Update[] = [
      [correction1, next1],
      [correction2, next2],
    ];
    parameters.forEach((p, i) => {
      const g = decayed(gradients[i]!, p, decay);
      const m = slot("adam.m", p);
      const v = slot("adam.v", p);
      const mNext = towards(m, g, beta1);
      const vNext = towards(v, mul(g, g), beta2);
      const ratio = lrRatios[stateAttrs(p)!.name];
      const size = ratio === undefined ? stepSize : mul(stepSize, ratio);
      const step = mul(size, div(mNext, add(div(sqrt(vNext), root2), eps)));
      updates.push([m, mNext], [v, vNext], [p, sub(p, step)]);
    });
    return updates;
  };
}

/** Constants of Muon, and of the Adam that trains what is not a matrix. */
export interface MuonSettings extends AdamSettings {
  readonly momentum?: number;
  /** Iterations of Newton and Schulz. */
  readonly iterations?: number;
  /** Matrices that Adam trains nevertheless: tables of rows, such as an embedding. */
  readonly byAdam?: readonly string[];
  /** Matrices that are several side by side, such as the gates of an LSTM: into how many the columns are divided. */
  readonly blocks?: Readonly<Record<string, number>>;
}

/** Muon: the direction of a matrix's momentum, with all its singular values near one. */
export function muon({
  momentum = 0.95,
  iterations = 5,
  byAdam = [],
  blocks = {},
  lrRatios = {},
  ...rest
}: MuonSettings = {}): Optimizer {
  return (parameters, gradients, rate) => {
    checkNames("byAdam", byAdam, parameters);
    checkNames("blocks", Object.keys(blocks), parameters);
    checkNames("lrRatios", Object.keys(lrRatios), parameters);
    const isMatrix = (p: Tensor): boolean => p.rank === 2 && !byAdam.includes(stateAttrs(p)!.name);
    const others = parameters.flatMap((p, i) => (isMatrix(p) ? [] : [i]));
    const ratioOf = (p: Tensor): number | undefined => lrRatios[stateAttrs(p)!.name];
    const ratios = others.flatMap((i) => {
      const ratio = ratioOf(parameters[i]!);
      return ratio === undefined ? [] : [[stateAttrs(parameters[i]!)!.name, ratio] as const];
    });
    const updates = adam({ ...rest, lrRatios: Object.fromEntries(ratios) })(
      others.map((i) => parameters[i]!),
      others.map((i) => gradients[i]!),
      rate,
    );
    parameters.forEach((p, i) => {
      if (!isMatrix(p)) return;
      const m = slot("muon.m", p);
      const towards = (to: Tensor): Tensor => add(mul(m, momentum), mul(to, 1 - momentum));
      const next = towards(gradients[i]!);
      const direction = add(mul(gradients[i]!, 1 - momentum), mul(next, momentum));
      const parts = split(direction, blocks[stateAttrs(p)!.name] ?? 1);
      const step = concat(
        parts.map((part) =>
          mul(orthogonal(part, iterations), (ratioOf(p) ?? 1) * 0.2 * Math.sqrt(Math.max(...part.shape))),
        ),
      );
      updates.push([m, next], [p, sub(p, mul(rate, step))]);
    });
    return updates;
  };
}

/** Nearly the closest matrix with orthonormal rows or columns, by Newton and Schulz: singular values come to 0.7 - 1.2. */
function orthogonal(x: Tensor, iterations: number): Tensor {
  const [rows, columns] = x.shape as readonly [number, number];
  let X = rows > columns ? transpose(x) : x;
  X = div(X, add(sqrt(sum(mul(X, X))), 1e-7));
  for (let i = 0; i < iterations; i++) {
    const A = matmul(X, X, { transB: true });
    const B = add(mul(A, -4.775), mul(matmul(A, A), 2.0315));
    X = add(mul(X, 3.4445), matmul(B, X));
  }
  return rows > columns ? transpose(X) : X;
}

function checkNames(setting: string, given: readonly string[], parameters: readonly Tensor[]): void {
  const names = parameters.map((p) => stateAttrs(p)!.name);
  const unknown = given.find((name) => !names.includes(name));
  if (unknown === undefined) return;
  throw new UsageError(`${setting}: the system has no parameter ${unknown}`, {
    "did you mean": nearest(unknown, names).join(", "),
  });
}

/** Averaged SGD with a constant rate: the average is kept under `asgd.average.<name>`. */
export function asgd({ weightDecay: decay = 0 } = {}): Optimizer {
  return (parameters, gradients, rate) => {
    const steps = state("asgd.steps", []);
    const before = state("asgd.rate", []);
    const t = add(steps, 1);
    const used = where(equal(steps, 0), rate, before);
    const updates: Update[] = [
      [steps, t],
      [before, rate],
    ];
    parameters.forEach((p, i) => {
      const average = slot("asgd.average", p);
      const next = sub(p, mul(used, decayed(gradients[i]!, p, decay)));
      const share = div(1, max(sub(t, 1), 1));
      updates.push([p, next], [average, add(average, mul(sub(next, average), share))]);
    });
    return updates;
  };
}

/** Any optimizer, with the uniform mean of the weights from its first step here on, kept where ASGD keeps its own. */
export function averaged(optimizer: Optimizer): Optimizer {
  return (parameters, gradients, rate) => {
    const updates = optimizer(parameters, gradients, rate);
    const nextOf = new Map(updates);
    const steps = state("asgd.steps", []);
    const t = add(steps, 1);
    const averages = parameters.map((p): Update => {
      const average = slot("asgd.average", p);
      return [average, add(average, div(sub(nextOf.get(p)!, average), t))];
    });
    return [...updates, [steps, t], ...averages];
  };
}

/** √ Σ |g|² over all gradients. */
export function globalNorm(gradients: readonly Tensor[]): Tensor {
  return sqrt(gradients.map((g) => sum(mul(g, g))).reduce((total, part) => add(total, part)));
}

/** Gradients scaled down together until their global norm is at most `limit`. */
export function clipByNorm(
  gradients: readonly Tensor[],
  limit: number,
  norm = globalNorm(gradients),
): Tensor[] {
  const factor = min(div(limit, add(norm, 1e-6)), 1);
  return gradients.map((g) => mul(g, factor));
}

/**
 * A moving average of parameters, kept under `average.<name>`: a ← d a + (1-d) p, where d = min(decay, t/(t+9))
 * at step t = 0, 1, …, so that early values are forgotten quickly and the first average is the first p.
 */
export function movingAverage(
  updates: readonly Update[],
  parameters: readonly Tensor[],
  decay: number,
): Update[] {
  const nextOf = new Map(updates);
  const steps = state("average.steps", []);
  const share = min(div(steps, add(steps, 9)), decay);
  const averages = parameters.map((p): Update => {
    const average = state(`average.${stateAttrs(p)!.name}`, p.shape);
    const next = nextOf.get(p)!;
    return [average, add(next, mul(sub(average, next), share))];
  });
  return [[steps, add(steps, 1)], ...averages];
}
