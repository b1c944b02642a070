/**
 * Writing a story: numbered lines, and the sentence forms that several tasks share.
 */
import type { Line } from "../format.ts";
import { moveVerbs } from "../lexicon.ts";
import type { StoryRandom } from "./random.ts";

/** The six rooms of most tasks. */
export const rooms = ["bathroom", "bedroom", "garden", "hallway", "kitchen", "office"] as const;
/** The six places of tasks 10 and 14. */
export const town = ["bedroom", "cinema", "kitchen", "office", "park", "school"] as const;
/** The four people of most tasks; "he" is John or Daniel, "she" Mary or Sandra. */
export const family = ["mary", "john", "daniel", "sandra"] as const;
/** The four people of tasks 10 and 14. */
export const friends = ["bill", "fred", "julie", "mary"] as const;

/** A phrase of the lexicon as the words of a sentence. */
export const phrase = (text: string): readonly string[] => text.split(" ");

const moves = moveVerbs.map((verb) => phrase(`${verb} to the`));

/** The lines of one story. */
export class StoryWriter {
  readonly lines: Line[] = [];

  /** Appends a statement and returns its ID. */
  state(words: readonly string[]): number {
    const id = this.lines.length + 1;
    this.lines.push({ kind: "statement", id, words });
    return id;
  }

  /** Appends a question. */
  ask(words: readonly string[], answer: string, supports: readonly number[]): void {
    this.lines.push({ kind: "question", id: this.lines.length + 1, words, answer, supports });
  }
}

/** "<who> went to the <place>", with one of the five ways of going. */
export function goes(random: StoryRandom, who: readonly string[], place: string): string[] {
  return [...who, ...random.pick(moves), place];
}
