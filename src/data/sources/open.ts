/**
 * Opening a stream of stories by its description, which is plain data: it goes into a run's settings and to a
 * worker thread alike.
 */
import type { SplitName } from "../catbabi.ts";
import {
  type GeneratedOptions,
  generatedSource,
  mixedSource,
  preparedSource,
  type StorySource,
  storiesOf,
} from "../streams.ts";
import { loadPrepared } from "./prepared.ts";

/** Which stories a stream has. */
export type StreamSpec =
  | ({ readonly kind: "generated"; readonly seed: number } & GeneratedSpec)
  | {
      readonly kind: "prepared";
      readonly folder: string;
      readonly split: SplitName;
      readonly seed: number;
      /** All that were prepared unless given. */
      readonly tasks?: readonly number[];
    }
  | ({
      readonly kind: "mixed";
      readonly folder: string;
      readonly split: SplitName;
      readonly seed: number;
      /** The fraction of all stories that are generated: at least 0, below 1. */
      readonly generatedFraction: number;
    } & GeneratedSpec);

/** Which stories are generated. */
interface GeneratedSpec extends GeneratedOptions {
  /** All tasks unless given. */
  readonly tasks?: readonly number[];
}

/** The source of stories that `spec` describes; prepared data is read and checked. */
export async function openStream(spec: StreamSpec): Promise<StorySource> {
  if (spec.kind === "generated") return generatedSource(spec.seed, spec.tasks, spec);
  const { splits } = await loadPrepared(spec.folder);
  const split = splits[spec.split];
  if (spec.kind === "prepared") {
    return preparedSource(spec.tasks ? storiesOf(split, spec.tasks) : split, spec.seed);
  }
  const generated = generatedSource(spec.seed, spec.tasks, spec);
  return mixedSource(preparedSource(split, spec.seed), generated, spec.generatedFraction);
}
