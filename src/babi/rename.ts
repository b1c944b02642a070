/**
 * A story under other names: words that bAbI's worlds treat alike are exchanged throughout, so that questions, answers and
 * facts stay true to each other. Mary becomes Sandra, the kitchen the garden, north east.
 *
 * Which words can stand for each other goes by the task, because worlds differ: in task 20 the kitchen is where the hungry
 * go. What has several words ("red square", "box of chocolates") or one form for two ("sheep") keeps its name.
 */
import { integer, keyOf, permutation } from "../random.ts";
import { givers } from "./generator/carrying.ts";
import { coloured, colourKinds, fearful } from "./generator/creatures.ts";
import { family, friends, rooms, town } from "./generator/writer.ts";
import { colours, directions, moodyPeople, pronouns, things } from "./lexicon.ts";

const carried = things.slice(0, 3);

/** Words of each task that can stand for each other. */
const alike: Readonly<Record<number, readonly (readonly string[])[]>> = {
  ...Object.fromEntries([1, 9, 12, 13].map((task) => [task, [family, rooms]])),
  ...Object.fromEntries([2, 3, 6, 7, 8].map((task) => [task, [family, rooms, carried]])),
  ...Object.fromEntries([10, 14].map((task) => [task, [friends, town]])),
  ...Object.fromEntries([4, 19].map((task) => [task, [rooms]])),
  5: [givers, rooms, carried],
  11: [...Object.values(pronouns), rooms],
  15: [fearful, ["cat", "mouse", "wolf"]],
  16: [coloured, colourKinds, colours],
  17: [],
  18: [["chest", "container", "suitcase"]],
  20: [moodyPeople],
};

/** Plurals that follow their singular. */
const forms: Readonly<Record<string, string>> = { cat: "cats", mouse: "mice", wolf: "wolves" };

/** The eight ways to turn and mirror a map: where north and east go. */
const turns: readonly (readonly [north: string, east: string])[] = [
  ["north", "east"],
  ["north", "west"],
  ["south", "east"],
  ["south", "west"],
  ["east", "north"],
  ["east", "south"],
  ["west", "north"],
  ["west", "south"],
];

const opposite = (direction: string): string => directions[direction]!.opposite;

/** A turn or mirror image of the map; a path's letters follow. */
function turned(draw: number): [from: string, to: string][] {
  const [north, east] = turns[draw]!;
  const words: [string, string][] = [
    ["north", north],
    ["south", opposite(north)],
    ["east", east],
    ["west", opposite(east)],
  ];
  const letters = words.map(([from, to]): [string, string] => [
    directions[from]!.letter,
    directions[to]!.letter,
  ]);
  return [...words, ...letters];
}

/** Mirror images of a page: left and right, above and below. */
function mirrored(draw: number): [from: string, to: string][] {
  const swap = (a: string, b: string): [string, string][] => [
    [a, b],
    [b, a],
  ];
  return [...(draw & 1 ? swap("left", "right") : []), ...(draw & 2 ? swap("above", "below") : [])];
}

/** New names for the words of a task's stories, drawn by `key`: every word that changes, with what it becomes. */
export function drawRenaming(task: number, seed: number, ...key: readonly number[]): Map<string, string> {
  return drawNames(task, () => true, seed, key);
}

/**
 * New names of which there are few: the words of a story become the first ones of their kind, in any order. So stories with
 * three animals are all about the same three.
 */
export function drawFewNames(
  { task, words }: { readonly task: number; readonly words: ReadonlySet<string> },
  seed: number,
  ...key: readonly number[]
): Map<string, string> {
  return drawNames(task, (word) => words.has(word) || words.has(forms[word] ?? word), seed, key);
}

/** New names for the words that stories have: they change places among the first ones of their kind. */
function drawNames(
  task: number,
  isPresent: (word: string) => boolean,
  seed: number,
  key: readonly number[],
): Map<string, string> {
  const drawn = keyOf(seed, "renaming", ...key);
  const pairs = (alike[task] ?? []).flatMap((words, i) => {
    const present = words.filter(isPresent);
    const order = permutation(keyOf(seed, "renaming of a class", i, ...key), present.length);
    return present.flatMap((word, at): [string, string][] => {
      const other = words[order[at]!]!;
      return word in forms
        ? [
            [word, other],
            [forms[word]!, forms[other]!],
          ]
        : [[word, other]];
    });
  });
  if (task === 4 || task === 19) pairs.push(...turned(integer(drawn, 0, turns.length)));
  if (task === 17) pairs.push(...mirrored(integer(drawn, 0, 4)));
  return new Map(pairs.filter(([from, to]) => from !== to));
}

/** A token under new names; an answer of several words joined by commas keeps their order. */
export function renameToken(token: string, names: ReadonlyMap<string, string>): string {
  if (!token.includes(",")) return names.get(token) ?? token;
  return token
    .split(",")
    .map((word) => names.get(word) ?? word)
    .join(",");
}
