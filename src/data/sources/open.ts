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
  renamedSource,
  type StorySource,
  storiesOf,
} from "../streams.ts";
import { loadPrepared } from "./prepared.ts";

/** Which stories a stream has. */
export type StreamSpec =
  | ({ readonly kind: "generated"; readonly seed: number } & GeneratedSpec)
  | ({
      readonly kind: "prepared";
      /** All that were prepared unless given. */
      readonly tasks?: readonly number[];
    } & PreparedSpec)
  | ({
      readonly kind: "mixed";
      /** The fraction of all stories that are generated: at least 0, below 1. */
      readonly generatedFraction: number;
    } & PreparedSpec &
      GeneratedSpec);

/** Which stories are real. */
interface PreparedSpec {
  readonly folder: string;
  readonly split: SplitName;
  readonly seed: number;
  /** Whether they come under other names each time. */
  readonly rename?: boolean;
}

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
  const chosen = spec.kind === "prepared" && spec.tasks ? storiesOf(split, spec.tasks) : split;
  const ordered = preparedSource(chosen, spec.seed);
  const real = spec.rename ? renamedSource(ordered, spec.seed) : ordered;
  return spec.kind === "prepared"
    ? real
    : mixedSource(real, generatedSource(spec.seed, spec.tasks, spec), spec.generatedFraction);
}
