/**
 * Moods: why people go and get things, and where they will go (task 20).
 */
import { wants } from "../lexicon.ts";
import type { Answer } from "./answer.ts";
import { NotUnderstood } from "./phrases.ts";

/** Everybody's moods, latest last. */
export class Moods {
  private readonly moods = new Map<string, { mood: string; id: number }[]>();

  feel(who: string, mood: string, id: number): void {
    this.moods.set(who, [...(this.moods.get(who) ?? []), { mood, id }]);
  }

  /** Where will `who` go? Where one goes in the mood they were last said to be in. */
  whereWill(who: string): Answer {
    const last = this.moods.get(who)?.at(-1);
    if (last === undefined) throw new NotUnderstood(`the story does not say how ${who} feels`);
    return { answer: wants[last.mood]!.place, supports: [last.id] };
  }

  /** Why did `who` go to the place or get the thing? The latest mood that makes one want it. */
  why(who: string, want: { place: string } | { thing: string }): Answer {
    const reason = this.moods
      .get(who)
      ?.findLast(({ mood }) =>
        "place" in want ? wants[mood]!.place === want.place : wants[mood]!.thing === want.thing,
      );
    if (reason === undefined) throw new NotUnderstood(`the story gives no reason why ${who} did that`);
    return { answer: reason.mood, supports: [reason.id] };
  }
}
