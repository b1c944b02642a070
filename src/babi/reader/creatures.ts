/**
 * Creatures: kinds, what kinds fear (deduction, task 15) and what colour an animal must have (induction, task 16).
 */
import type { Answer } from "./answer.ts";
import { NotUnderstood } from "./phrases.ts";

interface Said {
  readonly value: string;
  readonly id: number;
}

/** What is known of named animals and of kinds. */
export class Creatures {
  private readonly kinds = new Map<string, Said>();
  private readonly colours = new Map<string, Said>();
  private readonly fears = new Map<string, Said>();

  kind(who: string, kind: string, id: number): void {
    once(this.kinds, who, { value: kind, id });
  }

  colour(who: string, colour: string, id: number): void {
    once(this.colours, who, { value: colour, id });
  }

  fear(kind: string, of: string, id: number): void {
    once(this.fears, kind, { value: of, id });
  }

  /** What is `who` afraid of? What its kind is afraid of. */
  afraidOf(who: string): Answer {
    const kind = this.kinds.get(who);
    const fear = kind === undefined ? undefined : this.fears.get(kind.value);
    if (kind === undefined || fear === undefined) {
      throw new NotUnderstood(`the story does not say what ${who} is afraid of`);
    }
    return { answer: fear.value, supports: [kind.id, fear.id] };
  }

  /** What colour is `who`? */
  colourOf(who: string): Answer {
    const known = this.colours.get(who);
    if (known !== undefined) return { answer: known.value, supports: [known.id] };
    const kind = this.kinds.get(who);
    if (kind === undefined) throw new NotUnderstood(`the story does not say what ${who} is`);
    const alike = [...this.kinds].filter(
      ([name, { value }]) => value === kind.value && this.colours.has(name),
    );
    const [name, said] = alike.at(-1) ?? [];
    if (name === undefined || said === undefined)
      throw new NotUnderstood(`no other ${kind.value} has a colour`);
    const colour = this.colours.get(name)!;
    return { answer: colour.value, supports: [kind.id, said.id, colour.id] };
  }
}

function once(table: Map<string, Said>, key: string, said: Said): void {
  const before = table.get(key);
  if (before !== undefined && before.value !== said.value) {
    throw new NotUnderstood(`${key}: said to be or fear ${before.value} before, ${said.value} now`);
  }
  table.set(key, before ?? said);
}
