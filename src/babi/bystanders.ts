/**
 * A story with fewer bystanders: people, animals, rooms whose statements no answer follows from. Induction among five animals
 * becomes induction among three, and a map loses rooms beside the way.
 *
 * The reader says what the answers follow from, and reads the shorter story too: where it gives another answer, or none, the
 * story stays whole.
 */
import { DataError } from "../errors.ts";
import { integer, keyOf, permutation } from "../random.ts";
import type { Line, Statement, Story } from "./format.ts";
import { StoryReader } from "./reader/reader.ts";

/** The least and the most bystanders that stay. */
export type Bystanders = readonly [least: number, most: number];

/** The story with a number of its bystanders, drawn by `key`. */
export function fewerBystanders(
  story: Story,
  [least, most]: Bystanders,
  seed: number,
  ...key: readonly number[]
): Story {
  const used = supportsOf(story);
  if (!used) return story;
  const subjects = new Map<string, number[]>();
  for (const line of story.lines) {
    if (line.kind === "statement") {
      subjects.set(subjectOf(line), [...(subjects.get(subjectOf(line)) ?? []), line.id]);
    }
  }
  const bystanders = [...subjects.values()].filter((ids) => !ids.some((id) => used.has(id)));
  const stay = least + integer(keyOf(seed, "number of bystanders", ...key), 0, most - least + 1);
  const order = permutation(keyOf(seed, "which bystanders", ...key), bystanders.length);
  const left = new Set(Array.from(order.subarray(stay), (i) => bystanders[i]!).flat());
  const shorter = { ...story, lines: renumber(story.lines.filter(({ id }) => !left.has(id))) };
  return supportsOf(shorter) ? shorter : story;
}

/** Whom or what a statement is about: its first word that is no article. */
function subjectOf({ words }: Statement): string {
  return words.find((word) => word !== "the") ?? "";
}

/** The statements that the answers of a story follow from; undefined where the reader gives another answer or none. */
function supportsOf(story: Story): Set<number> | undefined {
  const reader = new StoryReader(story.source);
  const used = new Set<number>();
  try {
    for (const line of story.lines) {
      const given = reader.read(line);
      if (line.kind === "statement" || !given) continue;
      if (given.answer !== line.answer) return undefined;
      for (const id of given.supports) used.add(id);
    }
  } catch (error) {
    if (error instanceof DataError) return undefined;
    throw error;
  }
  return used;
}

/** The lines with IDs from 1 on; supporting IDs follow. */
function renumber(lines: readonly Line[]): Line[] {
  const ids = new Map(lines.map(({ id }, i) => [id, i + 1]));
  return lines.map((line, i) =>
    line.kind === "statement"
      ? { ...line, id: i + 1 }
      : { ...line, id: i + 1, supports: line.supports.flatMap((id) => ids.get(id) ?? []) },
  );
}
