/**
 * The words of the bAbI tasks by what they mean: 178 word types, answers such as `n,w` included.
 *
 * The reader looks words up here to understand a sentence, the generator picks words from here to write
 * one. The order inside a list has no meaning.
 */

/** People who walk about and carry things (tasks 1 to 3 and 5 to 14). */
export const people = ["mary", "john", "daniel", "sandra", "fred", "bill", "jeff", "julie"] as const;
/** People with moods (task 20). */
export const moodyPeople = ["sumit", "yann", "jason", "antoine"] as const;
/** Animals with names (tasks 15 and 16). */
const animals = [
  "gertrude",
  "winona",
  "emily",
  "jessica",
  "lily",
  "bernhard",
  "greg",
  "brian",
  "julius",
] as const;
/** Everyone who has a name of their own. */
export const names: readonly string[] = [...people, ...moodyPeople, ...animals];

/** Whom "he" and "she" can stand for (task 11). */
export const pronouns: Readonly<Record<string, readonly string[]>> = {
  he: ["john", "daniel"],
  she: ["mary", "sandra"],
};

/** Rooms and other places. */
export const places: readonly string[] = [
  "bathroom",
  "bedroom",
  "cinema",
  "garden",
  "hallway",
  "kitchen",
  "office",
  "park",
  "school",
];
/** Things that can be carried: three in the files of tasks 2 to 8, pajamas in task 20, a chocolate in harder stories. */
export const things: readonly string[] = ["apple", "football", "milk", "pajamas", "chocolate"];

/** Ways of saying that somebody went somewhere, as word sequences before "to the". */
export const moveVerbs: readonly string[] = ["went", "went back", "moved", "travelled", "journeyed"];
/** Ways of saying that somebody picked a thing up. */
export const takeVerbs: readonly string[] = ["got", "took", "grabbed", "picked up"];
/** Ways of saying that somebody put a thing down. */
export const dropVerbs: readonly string[] = ["dropped", "left", "discarded", "put down"];
/** Ways of saying that somebody gave a thing to another. */
export const giveVerbs: readonly string[] = ["gave", "passed", "handed"];
/** Openings of a sentence about what the same people did next. */
export const sequels: readonly string[] = ["then", "afterwards", "after that", "following that"];

/** Times of the day, earliest first. */
export const times: readonly string[] = ["yesterday", "this morning", "this afternoon", "this evening"];

/** Directions, each with the letter that stands for it in a path and its opposite. */
export const directions: Readonly<Record<string, { letter: string; opposite: string }>> = {
  north: { letter: "n", opposite: "south" },
  south: { letter: "s", opposite: "north" },
  east: { letter: "e", opposite: "west" },
  west: { letter: "w", opposite: "east" },
};

/** Kinds of animal of task 15, singular to plural. */
export const plurals: Readonly<Record<string, string>> = {
  cat: "cats",
  mouse: "mice",
  sheep: "sheep",
  wolf: "wolves",
};
/** Kinds of animal: those of task 15, then those of task 16. */
export const kinds: readonly string[] = [...Object.keys(plurals), "frog", "lion", "rhino", "swan"];
/** Colours an animal can have (task 16). */
export const colours: readonly string[] = ["gray", "green", "white", "yellow"];

/** Coloured shapes (task 17). */
export const shapes: readonly string[] = [
  "blue square",
  "pink rectangle",
  "red sphere",
  "red square",
  "triangle",
  "yellow square",
];
/** Where one shape can be from another: the step east and the step north. */
export const relations: Readonly<Record<string, readonly [east: number, north: number]>> = {
  above: [0, 1],
  below: [0, -1],
  "to the left of": [-1, 0],
  "to the right of": [1, 0],
};

/** Things with a size (task 18). */
export const sized: readonly string[] = [
  "box",
  "box of chocolates",
  "chest",
  "chocolate",
  "container",
  "suitcase",
];

/** What each mood makes a person want: where they go and what they get there (task 20). */
export const wants: Readonly<Record<string, { place: string; thing: string }>> = {
  bored: { place: "garden", thing: "football" },
  hungry: { place: "kitchen", thing: "apple" },
  thirsty: { place: "kitchen", thing: "milk" },
  tired: { place: "bedroom", thing: "pajamas" },
};

/** Numbers of carried objects in words (task 7). */
export const numerals: readonly string[] = ["none", "one", "two", "three"];
