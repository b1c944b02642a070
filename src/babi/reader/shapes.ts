/**
 * Shapes on a page: each statement places one shape straight above, below, left or right of another (task 17).
 *
 * Shapes get coordinates relative to each other; "left of" then compares columns and "above" compares rows.
 */
import { relations } from "../lexicon.ts";
import type { Answer } from "./answer.ts";
import { NotUnderstood } from "./phrases.ts";

interface Offset {
  readonly to: string;
  readonly east: number;
  readonly north: number;
  readonly id: number;
}

/** Shapes and the stated offsets between them. */
export class Shapes {
  private readonly offsets = new Map<string, Offset[]>();

  /** `shape` is `relation` `from`. */
  place(shape: string, relation: string, from: string, id: number): void {
    if (shape === from) throw new NotUnderstood(`the ${shape} cannot be ${relation} itself`);
    const [east, north] = relations[relation]!;
    this.offset(from, { to: shape, east, north, id });
    this.offset(shape, { to: from, east: -east, north: -north, id });
  }

  private offset(from: string, offset: Offset): void {
    this.offsets.set(from, [...(this.offsets.get(from) ?? []), offset]);
  }

  /** Is `shape` `relation` `from`? */
  isAt(shape: string, relation: string, from: string): Answer {
    const seen = new Map<string, { east: number; north: number; ids: number[] }>();
    seen.set(shape, { east: 0, north: 0, ids: [] });
    const front = [shape];
    for (let next = front.shift(); next !== undefined; next = front.shift()) {
      const at = seen.get(next)!;
      for (const { to, east, north, id } of this.offsets.get(next) ?? []) {
        if (seen.has(to)) continue;
        seen.set(to, { east: at.east + east, north: at.north + north, ids: [...at.ids, id] });
        front.push(to);
      }
    }
    const end = seen.get(from);
    if (end === undefined) throw new NotUnderstood(`the story does not connect the ${shape} and the ${from}`);
    const [east, north] = relations[relation]!;
    // From `from` to `shape` is the way back.
    const along = -(end.east * east + end.north * north);
    return { answer: along > 0 ? "yes" : "no", supports: end.ids };
  }
}
