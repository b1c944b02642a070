/** Activation checkpointing: values that are computed again for the gradient instead of being kept for it. */
import { type Backward, defineOp, type GraphFunction } from "../op.ts";
import { remake, rewrite } from "../rewrite.ts";
import type { Tensor } from "../tensor.ts";
import { capturesOf, scanAttrs } from "./scan.ts";
import { param } from "./source.ts";

const recomputeOp = defineOp<GraphFunction>("recompute", {
  infer: (_, { results }) => results.map(({ shape, dtype }) => ({ shape, dtype })),
  evaluate: ({ inputs, attrs: body, run }) => run(body, inputs).map(({ data }) => data),
  grad: (args) => recomputeGradient(args),
  onnx() {
    throw new Error("internal: simplify inlines recompute");
  },
  samples: [],
});

/**
 * What `make` makes of the inputs. Of everything in between nothing is kept for the gradient, which computes it again.
 * For the step of a `scan`, whose gradient is a loop of its own; outside of a loop it saves nothing.
 */
export function recompute(
  inputs: readonly Tensor[],
  make: (inputs: readonly Tensor[]) => readonly Tensor[],
): Tensor[] {
  const params = inputs.map(({ shape, dtype }, i) => param(`in${i}`, shape, dtype));
  const results = make(params);
  const captures = capturesOf(results, params);
  const captured = captures.map(({ shape, dtype }, i) => param(`captured${i}`, shape, dtype));
  const closed = rewrite(results, new Map(captures.map((outer, i) => [outer, captured[i]!])));
  return recomputeOp.apply([...inputs, ...captures], { params: [...params, ...captured], results: closed });
}

/** The results of a body over other tensors than its params. */
export function applied({ params, results }: GraphFunction, inputs: readonly Tensor[]): Tensor[] {
  return rewrite(results, new Map(params.map((p, i) => [p, inputs[i]!])));
}

function recomputeGradient(args: Backward<GraphFunction>): (Tensor | undefined)[] {
  const { inputs, attrs, dys, needs, differentiate } = args;
  // New nodes, none of them the forward pass's: that is what makes a loop compute them again.
  const body = copied(attrs);
  const seeds = dys.map((dy, i) => dy && param(`dy${i}`, dy.shape));
  const wanted = [...body.params.keys()].filter(needs);
  const grads = differentiate(
    body.results,
    seeds,
    wanted.map((i) => body.params[i]!),
  );
  const found = [...wanted.keys()].filter((n) => grads[n]);
  const given = seeds.flatMap((seed, i) => (seed ? [[seed, dys[i]!] as const] : []));
  const made = rewrite(
    found.map((n) => grads[n]!),
    new Map([...body.params.map((p, i) => [p, inputs[i]!] as const), ...given]),
  );
  const result = new Array<Tensor | undefined>(inputs.length).fill(undefined);
  found.forEach((n, at) => {
    result[wanted[n]!] = made[at];
  });
  return result;
}

/** A body with params and nodes of its own; the gradient of a loop in it adds outputs to that loop's body. */
function copied({ params, results }: GraphFunction): GraphFunction {
  const fresh = params.map(({ shape, dtype }, i) => param(`p${i}`, shape, dtype));
  const made = rewrite(results, new Map(params.map((p, i) => [p, fresh[i]!])), (node, inputs) => {
    const attrs = scanAttrs(node);
    return attrs && remake(node, inputs, { ...attrs, body: copied(attrs.body) });
  });
  return { params: fresh, results: made };
}
