/** Numbers computed by the authors' programs and by PyTorch, in float64; see test/fixtures/README.md. */
import { readFileSync } from "node:fs";
import type { Value } from "../../src/graph/op.ts";

/** A tensor as the fixture files store it. */
export interface StoredTensor {
  readonly shape: number[];
  readonly data: number[];
}

/** Reads a fixture file. */
export function fixture<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../fixtures/${name}.json`, import.meta.url), "utf8")) as T;
}

/** A stored tensor as an oracle value, under another shape if given. */
export function asValue({ shape, data }: StoredTensor, as: readonly number[] = shape): Value {
  return { shape: as, data: Float64Array.from(data) };
}

/** A matrix stored as [out, in] as the [in, out] that our weights use. */
export function transposed({ shape: [rows, columns], data }: StoredTensor): Value {
  const out = new Float64Array(data.length);
  for (let i = 0; i < rows!; i++)
    for (let j = 0; j < columns!; j++) out[j * rows! + i] = data[i * columns! + j]!;
  return { shape: [columns!, rows!], data: out };
}
