/**
 * The grammar: one sentence's words become a clause with a meaning, or a message why they do not.
 *
 *   statement := subject move "to the" place [time]        question := "where is" name | "the" thing
 *              | subject take "the" thing ["there"]                  | "is" name "in the" place
 *              | …                                                   | …
 *
 * A recursive descent over phrases. Each alternative is decided by the words at hand; nothing is guessed.
 */
import {
  colours,
  directions,
  dropVerbs,
  giveVerbs,
  kinds,
  moveVerbs,
  names,
  places,
  plurals,
  pronouns,
  relations,
  sequels,
  shapes,
  sized,
  takeVerbs,
  things,
  times,
  wants,
} from "../lexicon.ts";
import { NotUnderstood, Phrases } from "./phrases.ts";

/** What a statement says. */
export type Clause =
  | {
      readonly type: "move";
      readonly who: readonly string[];
      readonly place: string;
      readonly time?: string;
      /** Told as what the people of the sentence before did next. */
      readonly sequel?: true;
    }
  | { readonly type: "in"; readonly who: string; readonly places: readonly string[] }
  | { readonly type: "notIn"; readonly who: string; readonly place: string }
  | { readonly type: "take" | "drop"; readonly who: string; readonly thing: string }
  | { readonly type: "give"; readonly who: string; readonly thing: string; readonly to: string }
  | { readonly type: "direction"; readonly place: string; readonly direction: string; readonly from: string }
  | { readonly type: "kind"; readonly who: string; readonly kind: string }
  | { readonly type: "colour"; readonly who: string; readonly colour: string }
  | { readonly type: "mood"; readonly who: string; readonly mood: string }
  | { readonly type: "fear"; readonly kind: string; readonly of: string }
  | { readonly type: "position"; readonly shape: string; readonly relation: string; readonly from: string }
  | { readonly type: "size"; readonly bigger: string; readonly smaller: string };

/** What a question asks. */
export type Inquiry =
  | { readonly type: "whereIs"; readonly who: string }
  | { readonly type: "whereIsThing"; readonly thing: string }
  | { readonly type: "whereWas"; readonly who: string; readonly before: string }
  | { readonly type: "whereWasThing"; readonly thing: string; readonly before: string }
  | { readonly type: "whereWill"; readonly who: string }
  | { readonly type: "isIn"; readonly who: string; readonly place: string }
  | { readonly type: "howMany" | "carrying"; readonly who: string }
  | { readonly type: "whatGiven"; readonly who: string; readonly to: string }
  | { readonly type: "whoGave"; readonly thing: string; readonly to?: string }
  | { readonly type: "toWhom"; readonly thing: string; readonly who?: string }
  | { readonly type: "whatIsAt"; readonly direction: string; readonly from: string }
  | { readonly type: "path"; readonly from: string; readonly to: string }
  | { readonly type: "afraidOf" | "colourOf"; readonly who: string }
  | { readonly type: "isAt"; readonly shape: string; readonly relation: string; readonly from: string }
  | { readonly type: "isBigger"; readonly bigger: string; readonly smaller: string }
  | { readonly type: "whyGo"; readonly who: string; readonly place: string }
  | { readonly type: "whyGet"; readonly who: string; readonly thing: string };

/** Whom a sequel such as "Then they …" is about: `null` while nobody has been spoken of. */
export type LastSubject = readonly string[] | null;

/** The meaning of a statement's words. `last` resolves "he", "she" and "they". */
export function parseStatement(words: readonly string[], last: LastSubject): Clause {
  const at = new Phrases(words);
  const clause = at.is("the") ? ofThings(at) : at.isOneOf(names) ? ofSomebody(at) : opened(at, last);
  at.end();
  return clause;
}

// "The kitchen is west of the garden", "The triangle is above …", "The box is bigger than …"
function ofThings(at: Phrases): Clause {
  at.need("the");
  const shape = at.take(shapes);
  if (shape !== null) {
    at.need("is");
    const relation = at.one("a relation", Object.keys(relations));
    at.need("the");
    return { type: "position", shape, relation, from: at.one("a shape", shapes) };
  }
  const thing = at.take(sized);
  if (thing !== null) {
    const inside = at.take(["fits inside the", "is bigger than the"]);
    if (inside === null) throw at.unexpected("'fits inside the' or 'is bigger than the'");
    const other = at.one("a thing with a size", sized);
    return inside.startsWith("fits")
      ? { type: "size", bigger: other, smaller: thing }
      : { type: "size", bigger: thing, smaller: other };
  }
  const place = at.one("a place, shape or thing with a size", places);
  at.need("is");
  const direction = at.one("a direction", Object.keys(directions));
  at.need("of the");
  return { type: "direction", place, direction, from: at.one("a place", places) };
}

// Everything that begins with a name.
function ofSomebody(at: Phrases): Clause {
  const who = at.one("a name", names);
  if (at.has("and")) return moved(at, [who, at.one("a name", names)]);
  if (at.has("is")) return ofState(at, who);
  const taken = at.take(takeVerbs);
  const dropped = taken === null ? at.take(dropVerbs) : null;
  if (taken !== null || dropped !== null) {
    at.need("the");
    const thing = at.one("a thing", things);
    at.has("there");
    return { type: taken !== null ? "take" : "drop", who, thing };
  }
  if (at.take(giveVerbs) !== null) {
    at.need("the");
    const thing = at.one("a thing", things);
    at.need("to");
    return { type: "give", who, thing, to: at.one("a name", names) };
  }
  const clause = moved(at, [who]);
  const time = at.take(times);
  return time === null ? clause : { ...clause, time };
}

// "is in the …", "is either in the … or the …", "is no longer in the …", "is a lion", "is tired"
function ofState(at: Phrases, who: string): Clause {
  if (at.has("a")) return { type: "kind", who, kind: at.one("a kind of animal", kinds) };
  if (at.has("in the")) return { type: "in", who, places: [at.one("a place", places)] };
  if (at.take(["not in the", "no longer in the"]) !== null) {
    return { type: "notIn", who, place: at.one("a place", places) };
  }
  if (at.has("either in the")) {
    const first = at.one("a place", places);
    at.need("or the");
    return { type: "in", who, places: [first, at.one("a place", places)] };
  }
  const colour = at.take(colours);
  if (colour !== null) return { type: "colour", who, colour };
  return { type: "mood", who, mood: at.one("a place, kind, colour or mood", Object.keys(wants)) };
}

// "Yesterday Julie went …", "Then she went …", "Mice are afraid of …"
function opened(at: Phrases, last: LastSubject): Clause {
  const time = at.take(times);
  if (time !== null) return { ...moved(at, [at.one("a name", names)]), time };
  if (at.take(sequels) !== null) {
    return { ...moved(at, resolve(at.one("a pronoun", ["he", "she", "they"]), last)), sequel: true };
  }
  const kind = at.one("a name, time, sequel, plural or 'the'", Object.values(plurals));
  at.need("are afraid of");
  return { type: "fear", kind: singular(kind), of: singular(at.one("a plural", Object.values(plurals))) };
}

function moved(at: Phrases, who: readonly string[]): Extract<Clause, { type: "move" }> {
  at.one("a verb", moveVerbs);
  at.need("to the");
  return { type: "move", who, place: at.one("a place", places) };
}

function resolve(pronoun: string, last: LastSubject): readonly string[] {
  const fits =
    last !== null &&
    (pronoun === "they" ? last.length > 1 : last.length === 1 && pronouns[pronoun]!.includes(last[0]!));
  if (!fits) throw new NotUnderstood(`nobody spoken of before whom '${pronoun}' could mean`);
  return last;
}

function singular(plural: string): string {
  return Object.keys(plurals).find((kind) => plurals[kind] === plural)!;
}

/** The meaning of a question's words. */
export function parseQuestion(words: readonly string[]): Inquiry {
  const at = new Phrases(words);
  const inquiry = asked(at);
  at.end();
  return inquiry;
}

function asked(at: Phrases): Inquiry {
  const opening = at.one("a question", Object.keys(questions));
  return questions[opening]!(at);
}

const name = (at: Phrases) => at.one("a name", names);
const place = (at: Phrases) => at.one("a place", places);
const thing = (at: Phrases) => at.one("a thing", things);
const direction = (at: Phrases) => at.one("a direction", Object.keys(directions));
const relation = (at: Phrases) => at.one("a relation", Object.keys(relations));

/** Question forms by their opening words; what follows the opening decides the rest. */
const questions: Readonly<Record<string, (at: Phrases) => Inquiry>> = {
  "where is": (at) =>
    at.has("the") ? { type: "whereIsThing", thing: thing(at) } : { type: "whereIs", who: name(at) },
  "where was": (at) => {
    const carried = at.has("the") ? thing(at) : null;
    const who = carried === null ? name(at) : "";
    at.need("before the");
    const before = place(at);
    return carried === null
      ? { type: "whereWas", who, before }
      : { type: "whereWasThing", thing: carried, before };
  },
  "where will": (at) => {
    const who = name(at);
    at.need("go");
    return { type: "whereWill", who };
  },
  "how many objects is": (at) => carrying(at, "howMany"),
  "what is": (at) => {
    if (at.isOneOf(Object.keys(directions))) {
      const from = { type: "whatIsAt", direction: direction(at) } as const;
      at.need("of the");
      return { ...from, from: place(at) };
    }
    if (at.has("the")) {
      // "What is the hallway east of?" asks for what lies west of the hallway.
      const from = place(at);
      const opposite = directions[direction(at)]!.opposite;
      at.need("of");
      return { type: "whatIsAt", direction: opposite, from };
    }
    if (at.followed("afraid of")) {
      const who = name(at);
      at.need("afraid of");
      return { type: "afraidOf", who };
    }
    return carrying(at, "carrying");
  },
  "what did": (at) => {
    const who = name(at);
    at.need("give to");
    return { type: "whatGiven", who, to: name(at) };
  },
  "what color is": (at) => ({ type: "colourOf", who: name(at) }),
  "who gave the": (at) => {
    const given = thing(at);
    return at.has("to") ? { type: "whoGave", thing: given, to: name(at) } : { type: "whoGave", thing: given };
  },
  "who received the": (at) => ({ type: "toWhom", thing: thing(at) }),
  "who did": (at) => {
    const who = name(at);
    at.need("give the");
    const given = thing(at);
    at.need("to");
    return { type: "toWhom", thing: given, who };
  },
  "how do you go from the": (at) => {
    const from = place(at);
    at.need("to the");
    return { type: "path", from, to: place(at) };
  },
  "why did": (at) => {
    const who = name(at);
    if (at.has("go to the")) return { type: "whyGo", who, place: place(at) };
    at.need("get the");
    return { type: "whyGet", who, thing: thing(at) };
  },
  "does the": (at) => {
    const smaller = at.one("a thing with a size", sized);
    at.need("fit in the");
    return { type: "isBigger", bigger: at.one("a thing with a size", sized), smaller };
  },
  is: (at) => {
    if (!at.has("the")) {
      const who = name(at);
      at.need("in the");
      return { type: "isIn", who, place: place(at) };
    }
    const bigger = at.take(sized);
    if (bigger !== null) {
      at.need("bigger than the");
      return { type: "isBigger", bigger, smaller: at.one("a thing with a size", sized) };
    }
    const shape = at.one("a shape or a thing with a size", shapes);
    const how = relation(at);
    at.need("the");
    return { type: "isAt", shape, relation: how, from: at.one("a shape", shapes) };
  },
};

function carrying(at: Phrases, type: "howMany" | "carrying"): Inquiry {
  const who = name(at);
  at.need("carrying");
  return { type, who };
}
