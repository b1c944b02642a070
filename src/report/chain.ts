/** The runs that a run's weights came from, oldest first: each started with the weights of the one before. */
import { z } from "zod";

const ancestorSchema = z.strictObject({
  /** The run folder's or the model's name. */
  name: z.string(),
  experiment: z.string(),
  /** The command that trained it, and its commit; null where that is not known. */
  command: z.string().nullable(),
  commit: z.string().nullable(),
  seed: z.int().nullable(),
  /** Steps up to the checkpoint that was used, and hours at them; null where they are not known. */
  steps: z.int().min(0),
  hours: z.number().min(0).nullable(),
  data: z.string().nullable(),
});

/** One of them. */
export type Ancestor = z.infer<typeof ancestorSchema>;

/** Name of the file in which a model folder keeps its chain, its own run last. */
export const provenanceFile = "provenance.json";

/** The chain as a text. */
export function formatChain(chain: readonly Ancestor[]): string {
  return JSON.stringify(chain);
}

/** The chain in a text; none where it is missing or of another version. */
export function parseChain(text: unknown): readonly Ancestor[] {
  if (typeof text !== "string") return [];
  try {
    return z.array(ancestorSchema).safeParse(JSON.parse(text)).data ?? [];
  } catch {
    return [];
  }
}

/** Whether a commit is the source that trained: known, and without changes. */
export function isExact(commit: string | null): boolean {
  return commit !== null && !commit.endsWith("-dirty");
}

/** Steps of a chain together, and hours as far as they are known. */
export function chainTotals(chain: readonly Ancestor[]): { steps: number; hours: number } {
  return {
    steps: chain.reduce((sum, { steps }) => sum + steps, 0),
    hours: chain.reduce((sum, { hours }) => sum + (hours ?? 0), 0),
  };
}
