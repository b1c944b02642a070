/** A search space as a file: what `fwm sweep` takes on its line, written down once (`experiments/searches`). */
import { z } from "zod";
import type { Axis } from "./members.ts";

const plain = z.union([z.string(), z.number(), z.boolean(), z.record(z.string(), z.unknown())]);
const budget = z.int().min(1);
const counts = z.union([budget.transform((count) => [count]), z.array(budget).min(1)]);

const spaceSchema = z.strictObject({
  /** Settings of all members. */
  set: z.record(z.string(), plain).default({}),
  vary: z.record(z.string(), z.array(plain).min(1)).default({}),
  each: z.record(z.string(), z.array(plain).min(1)).default({}),
  seeds: z.array(z.int().min(0)).default([]),
  /** Steps at the end of each round. */
  rounds: z.array(budget).min(2).optional(),
  keep: counts.optional(),
  asha: z.int().min(2).optional(),
});

/** A search space, its settings as texts. */
export interface SearchSpace {
  readonly set: readonly string[];
  readonly vary: readonly Axis[];
  readonly each: readonly Axis[];
  readonly seeds: readonly number[];
  readonly rounds: readonly number[] | undefined;
  readonly keep: readonly number[] | undefined;
  readonly asha: number | undefined;
}

/** The space that a file's content describes; `fail` makes the error of one that is none. */
export function parseSpace(content: unknown, fail: (reason: string) => Error): SearchSpace {
  const parsed = spaceSchema.safeParse(content);
  if (!parsed.success) throw fail(z.prettifyError(parsed.error));
  const { set, vary, each, seeds, rounds, keep, asha } = parsed.data;
  const axes = (given: Readonly<Record<string, readonly unknown[]>>): Axis[] =>
    Object.entries(given).map(([key, values]) => ({ key, values: values.map(textOf) }));
  return {
    set: Object.entries(set).map(([key, value]) => `${key}=${textOf(value)}`),
    vary: axes(vary),
    each: axes(each),
    seeds,
    ...{ rounds, keep, asha },
  };
}

/** A value as an option gives it; a text in quotation marks, so that it stays one. */
function textOf(value: unknown): string {
  return typeof value === "number" || typeof value === "boolean" ? String(value) : JSON.stringify(value);
}
