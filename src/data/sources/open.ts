/**
 * Opening a stream of stories by its description, which is plain data: it goes into a run's settings and to a
 * worker thread alike.
 */
import type { Bystanders } from "../../babi/bystanders.ts";
import type { SplitName } from "../catbabi.ts";
import {
  type GeneratedOptions,
  generatedSource,
  mixedSource,
  preparedSource,
  renamedSource,
  type StorySource,
  shortenedSource,
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
  /** Whether they come under other names each time: any, or few. */
  readonly rename?: boolean | "few";
  /** How many people, animals or rooms that no answer is about stay in a story; all unless given. */
  readonly bystanders?: Bystanders;
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
  const whole = preparedSource(chosen, spec.seed);
  const ordered = spec.bystanders ? shortenedSource(whole, spec.seed, spec.bystanders) : whole;
  const real = spec.rename ? renamedSource(ordered, spec.seed, { few: spec.rename === "few" }) : ordered;
  return spec.kind === "prepared"
    ? real
    : mixedSource(real, generatedSource(spec.seed, spec.tasks, spec), spec.generatedFraction);
}
