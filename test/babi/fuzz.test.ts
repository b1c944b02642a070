/**
 * The reader on damaged stories: either a `DataError` that names the file and a line, or answers that a plain
 * retelling of the damaged text agrees with; never another error, a hang or a guess.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatStories, parseStories, type Story } from "../../src/babi/format.ts";
import { generateStory, tasks } from "../../src/babi/generator/generate.ts";
import { DataError } from "../../src/errors.ts";
import { answerStory } from "./answerStory.ts";
import { vocabulary } from "./vocabulary.ts";

const words = [...vocabulary].filter((word) => /^[a-z]+$/.test(word));
const anyStory = fc.record({
  task: fc.constantFrom(...tasks),
  seed: fc.integer({ min: 0, max: 2 ** 31 }),
  index: fc.integer({ min: 0, max: 1000 }),
});

/** Reads and answers a text; the message of the `DataError` when there is one. */
function outcome(text: string, task: number): { answers: string[]; stories: Story[] } | { error: string } {
  try {
    const stories = parseStories(text, { file: "damaged.txt", task });
    return { stories, answers: stories.flatMap((story) => answerStory(story).map(({ answer }) => answer)) };
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    return { error: error.message };
  }
}

function expectLocated(error: string, lines: number): void {
  const line = Number(/^damaged\.txt:(\d+): /.exec(error)?.[1]);
  expect(line, error).toBeGreaterThan(0);
  expect(line, error).toBeLessThanOrEqual(lines);
}

test("any bytes in any place", () => {
  fc.assert(
    fc.property(anyStory, fc.nat(), fc.nat(12), fc.string({ maxLength: 12 }), (which, at, cut, put) => {
      const text = formatStories([generateStory(which)]);
      const place = at % text.length;
      const damaged = text.slice(0, place) + put + text.slice(place + cut);
      const result = outcome(damaged, which.task);
      if ("error" in result) expectLocated(result.error, damaged.split("\n").length);
    }),
    { numRuns: 1500 },
  );
});

describe("a statement with one word", () => {
  type Damage = (sentence: string[], at: number, word: string) => string[];
  const damages: Record<string, Damage> = {
    replaced: (sentence, at, word) => sentence.with(at, word),
    removed: (sentence, at) => sentence.toSpliced(at, 1),
    inserted: (sentence, at, word) => sentence.toSpliced(at, 0, word),
    doubled: (sentence, at) => sentence.toSpliced(at, 0, sentence[at]!),
  };

  test.each(Object.entries(damages))("%s is an error or one of the known sentences", (_, damage) => {
    fc.assert(
      fc.property(anyStory, fc.nat(), fc.nat(), fc.constantFrom(...words), (which, pick, at, word) => {
        const story = generateStory(which);
        const statements = story.lines.filter((line) => line.kind === "statement");
        const hit = statements[pick % statements.length]!;
        const damaged = damage([...hit.words], at % hit.words.length, word);
        if (damaged.length === 0) return;
        const lines = story.lines.map((line) => (line === hit ? { ...line, words: damaged } : line));
        const result = outcome(formatStories([{ ...story, lines }]), which.task);
        if ("error" in result) expectLocated(result.error, lines.length);
        else
          expect(
            skeletons.some((form) => form.test(damaged.join(" "))),
            damaged.join(" "),
          ).toBe(true);
      }),
      { numRuns: 1500 },
    );
  });

  test("outside the vocabulary is an error at that very line", () => {
    fc.assert(
      fc.property(anyStory, fc.nat(), fc.nat(), (which, pick, at) => {
        const story = generateStory(which);
        const hit = story.lines[pick % story.lines.length]!;
        const damaged = hit.words.with(at % hit.words.length, "xyzzy");
        const lines = story.lines.map((line) => (line === hit ? { ...line, words: damaged } : line));
        const result = outcome(formatStories([{ ...story, lines }]), which.task);
        expect(result).toHaveProperty("error");
        if ("error" in result) expect(result.error).toContain(`damaged.txt:${hit.id}: `);
      }),
      { numRuns: 600 },
    );
  });
});

test("lines removed, doubled or swapped: the answers follow the text as it stands (tasks 1 and 12)", () => {
  fc.assert(
    fc.property(
      fc.record({ task: fc.constantFrom(1, 12), seed: fc.nat(), index: fc.nat(1000) }),
      fc.constantFrom("remove", "double", "swap"),
      fc.nat(),
      (which, how, at) => {
        const lines = [...generateStory(which).lines];
        const place = at % (lines.length - 1);
        if (how === "remove") lines.splice(place, 1);
        else if (how === "double") lines.splice(place, 0, lines[place]!);
        else lines.splice(place, 2, lines[place + 1]!, lines[place]!);
        // New IDs; the supports no longer matter to the reader, but must stay behind their question.
        const renumbered = lines.map((line, index) =>
          line.kind === "statement"
            ? { ...line, id: index + 1 }
            : { ...line, id: index + 1, supports: [Math.max(1, index)] },
        );
        if (renumbered[0]!.kind === "question") return;
        const result = outcome(formatStories([{ task: which.task, lines: renumbered }]), which.task);
        const expected = lastPlaces(renumbered.map((line) => line.words));
        if ("error" in result) expect(expected).toContain(undefined);
        else expect(result.answers).toEqual(expected);
      },
    ),
    { numRuns: 800 },
  );
});

/** Where each asked person was last said to have gone. */
function lastPlaces(sentences: readonly (readonly string[])[]): (string | undefined)[] {
  const places = new Map<string, string>();
  const answers: (string | undefined)[] = [];
  for (const sentence of sentences) {
    if (sentence[0] === "where") answers.push(places.get(sentence[2]!));
    else
      for (const name of sentence.join(" ").match(/mary|john|daniel|sandra/g)!)
        places.set(name, sentence.at(-1)!);
  }
  return answers;
}

/** Every statement form of the twenty tasks, written down from the files; a chocolate is carried in harder stories. */
const skeletons = (() => {
  const name =
    "(?:mary|john|daniel|sandra|fred|bill|jeff|julie|sumit|yann|jason|antoine|gertrude|winona|emily|jessica|lily|bernhard|greg|brian|julius)";
  const place = "(?:bathroom|bedroom|cinema|garden|hallway|kitchen|office|park|school)";
  const thing = "(?:apple|football|milk|pajamas|chocolate)";
  const go = `(?:went|went back|moved|travelled|journeyed) to the ${place}`;
  const time = "(?:yesterday|this morning|this afternoon|this evening)";
  const shape = "(?:triangle|pink rectangle|red sphere|(?:red|blue|yellow) square)";
  const size = "(?:box|box of chocolates|chest|chocolate|container|suitcase)";
  return [
    `${name} (?:and ${name} )?${go}`,
    `${time} ${name} ${go}`,
    `${name} ${go} ${time}`,
    `(?:then|afterwards|after that|following that) (?:he|she|they) ${go}`,
    `${name} (?:got|took|grabbed|picked up|dropped|left|discarded|put down) the ${thing}(?: there)?`,
    `${name} (?:gave|handed|passed) the ${thing} to ${name}`,
    `${name} is (?:not |no longer )?in the ${place}`,
    `${name} is either in the ${place} or the ${place}`,
    `the ${place} is (?:north|south|east|west) of the ${place}`,
    `(?:cats|mice|sheep|wolves) are afraid of (?:cats|mice|sheep|wolves)`,
    `${name} is a (?:cat|mouse|sheep|wolf|frog|lion|rhino|swan)`,
    `${name} is (?:gray|green|white|yellow|bored|hungry|thirsty|tired)`,
    `the ${shape} is (?:above|below|to the left of|to the right of) the ${shape}`,
    `the ${size} (?:fits inside|is bigger than) the ${size}`,
  ].map((form) => new RegExp(`^${form}$`));
})();
