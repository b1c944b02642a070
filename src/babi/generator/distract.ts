/** Sentences that have nothing to do with a story, put before and between its lines; stories put end to end. */
import type { Line } from "../format.ts";
import { people, places, pronouns } from "../lexicon.ts";
import type { StoryRandom } from "./random.ts";
import { goes } from "./writer.ts";

const sequelWords: ReadonlySet<string> = new Set(["they", ...Object.keys(pronouns)]);

/**
 * The lines with `count` sentences between them about people the story does not know, who walk about: all in one place or,
 * half of the time, spread. What "he", "she" or "they" do follows the sentence that names them at once.
 */
export function distracted(random: StoryRandom, lines: readonly Line[], count: number): Line[] {
  if (count === 0) return [...lines];
  const known = new Set(lines.flatMap(({ words }) => words));
  const outsiders = people.filter((name) => !known.has(name));
  const at = outsiders.map(() => random.below(places.length));
  const gaps = lines.flatMap(({ words }, gap) => (words.some((word) => sequelWords.has(word)) ? [] : [gap]));
  const whole = random.coin() ? random.pick(gaps) : null;
  const before = lines.map(() => 0);
  for (let i = 0; i < count; i++) before[whole ?? random.pick(gaps)]!++;
  const sentences = lines.map((_, gap) =>
    Array.from({ length: before[gap]! }, (): Unnumbered => {
      const who = random.below(outsiders.length);
      at[who] = random.other(places.length, at[who]!);
      return { kind: "statement", words: goes(random, [outsiders[who]!], places[at[who]]!) };
    }),
  );
  return numbered(lines.flatMap((line, i) => [...sentences[i]!, line]));
}

/** Stories end to end as the lines of one. */
export function joined(stories: readonly (readonly Line[])[]): Line[] {
  let before = 0;
  return stories.flatMap((lines) => {
    const offset = before;
    before += lines.length;
    return lines.map((line) =>
      line.kind === "statement"
        ? { ...line, id: line.id + offset }
        : { ...line, id: line.id + offset, supports: line.supports.map((id) => id + offset) },
    );
  });
}

type Unnumbered = Pick<Extract<Line, { kind: "statement" }>, "kind" | "words">;

/** Lines with numbers in their order; supporting facts keep pointing at the lines they meant. */
function numbered(lines: readonly (Line | Unnumbered)[]): Line[] {
  const idOf = new Map<number, number>();
  lines.forEach((line, i) => {
    if ("id" in line) idOf.set(line.id, i + 1);
  });
  return lines.map((line, i) =>
    line.kind === "statement"
      ? { ...line, id: i + 1 }
      : { ...line, id: i + 1, supports: line.supports.map((id) => idOf.get(id)!) },
  );
}
