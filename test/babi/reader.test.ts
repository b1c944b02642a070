/** The reader on small stories with known answers, one for each kind of knowledge, and on what cannot be. */
import { describe, expect, test } from "vitest";
import { parseStories } from "../../src/babi/format.ts";
import { StoryReader } from "../../src/babi/reader/reader.ts";
import { solveStories } from "../../src/babi/reader/solve.ts";
import { DataError } from "../../src/errors.ts";
import { answerStory } from "./answerStory.ts";

/** Tells the statements and asks the questions (those ending in "?"); returns the answers. */
function read(...sentences: string[]): string[] {
  const reader = new StoryReader({ file: "story.txt", line: 1 });
  const answers: string[] = [];
  sentences.forEach((sentence, index) => {
    const words = sentence.toLowerCase().replace(/[.?]$/, "").split(" ");
    if (sentence.endsWith("?")) answers.push(reader.ask(words, index + 1).answer);
    else reader.state(words, index + 1);
  });
  return answers;
}

test("a thing goes where its holder goes, stays where it is put, and is remembered", () => {
  const story = [
    "Mary went to the bathroom.",
    "Mary got the milk there.",
    "Mary travelled to the hallway.",
    "Mary journeyed to the office.",
    "Mary put down the milk.",
    "Mary went back to the garden.",
  ];
  expect(
    read(
      ...story,
      "Where is the milk?",
      "Where is Mary?",
      "Where was the milk before the office?",
      "Where was the milk before the hallway?",
      "How many objects is Mary carrying?",
      "What is Mary carrying?",
    ),
  ).toEqual(["office", "garden", "hallway", "bathroom", "none", "nothing"]);
});

test("whoever takes a thing is where it lies", () => {
  expect(
    read(
      "Mary went to the office.",
      "Mary got the apple.",
      "Mary left the apple.",
      "John took the apple.",
      "Where is John?",
    ),
  ).toEqual(["office"]);
});

test("several things are listed in the order their holder first had them", () => {
  expect(
    read(
      "Mary took the apple.",
      "Mary took the milk.",
      "Mary left the apple.",
      "Mary took the apple.",
      "What is Mary carrying?",
      "How many objects is Mary carrying?",
    ),
  ).toEqual(["apple,milk", "two"]);
});

test("gifts have a giver, a thing and a receiver; the last one is meant", () => {
  expect(
    read(
      "Bill took the milk there.",
      "Bill gave the milk to Fred.",
      "Fred passed the milk to Jeff.",
      "What did Bill give to Fred?",
      "Who gave the milk?",
      "Who gave the milk to Fred?",
      "Who received the milk?",
      "Who did Fred give the milk to?",
      "How many objects is Jeff carrying?",
    ),
  ).toEqual(["milk", "fred", "bill", "jeff", "jeff", "one"]);
});

test("denials and halves leave what they leave", () => {
  expect(
    read(
      "Mary is either in the park or the school.",
      "Is Mary in the park?",
      "Is Mary in the office?",
      "Mary is not in the park.",
      "Is Mary in the school?",
      "Mary is no longer in the school.",
      "Is Mary in the school?",
    ),
  ).toEqual(["maybe", "no", "yes", "no"]);
});

test("pronouns mean who was spoken of last", () => {
  expect(
    read(
      "Mary and Daniel went to the kitchen.",
      "Following that they journeyed to the hallway.",
      "Where is Daniel?",
      "John went to the office.",
      "Afterwards he moved to the garden.",
      "Where is John?",
    ),
  ).toEqual(["hallway", "garden"]);
  expect(() => read("Mary went to the kitchen.", "Then he went to the office.")).toThrow("'he'");
});

test("a day is ordered by its times, in whatever order it is stated", () => {
  expect(
    read(
      "This evening Julie went to the school.",
      "Julie went to the park yesterday.",
      "This afternoon Julie went to the cinema.",
      "Julie went to the school this morning.",
      "Where was Julie before the school?",
      "Where was Julie before the cinema?",
    ),
  ).toEqual(["cinema", "school"]);
});

test("directions go both ways, and paths follow them", () => {
  const map = ["The office is east of the hallway.", "The kitchen is north of the office."];
  expect(
    read(
      ...map,
      "What is east of the hallway?",
      "What is the hallway west of?",
      "What is the office south of?",
      "How do you go from the kitchen to the hallway?",
    ),
  ).toEqual(["office", "office", "kitchen", "s,w"]);
});

test("what holds for a kind holds for its members, and the other way round", () => {
  expect(read("Mice are afraid of wolves.", "Emily is a mouse.", "What is Emily afraid of?")).toEqual([
    "wolf",
  ]);
  expect(
    read(
      "Lily is a swan.",
      "Lily is gray.",
      "Greg is a frog.",
      "Greg is green.",
      "Brian is a swan.",
      "What color is Brian?",
    ),
  ).toEqual(["gray"]);
});

test("positions add up, sizes chain", () => {
  const page = [
    "The triangle is above the pink rectangle.",
    "The blue square is to the left of the triangle.",
  ];
  expect(
    read(
      ...page,
      "Is the pink rectangle to the right of the blue square?",
      "Is the blue square below the pink rectangle?",
      "Is the triangle above the blue square?",
    ),
  ).toEqual(["yes", "no", "no"]);
  const sizes = ["The box of chocolates fits inside the box.", "The chest is bigger than the box."];
  expect(
    read(
      ...sizes,
      "Does the box of chocolates fit in the chest?",
      "Is the box of chocolates bigger than the chest?",
    ),
  ).toEqual(["yes", "no"]);
});

test("moods explain where people go and what they get", () => {
  expect(
    read(
      "Sumit is tired.",
      "Where will Sumit go?",
      "Sumit went back to the bedroom.",
      "Why did Sumit go to the bedroom?",
      "Sumit grabbed the pajamas there.",
      "Why did Sumit get the pajamas?",
    ),
  ).toEqual(["bedroom", "tired", "tired"]);
});

describe("what cannot be is an error that names the line", () => {
  test.each([
    ["dropping what is not held", ["Mary went to the office.", "Mary dropped the milk."], 2],
    ["taking what another holds", ["Mary got the milk.", "John got the milk."], 2],
    [
      "taking what lies elsewhere",
      [
        "Mary went to the office.",
        "Mary got the milk.",
        "Mary left the milk.",
        "John went to the park.",
        "John got the milk.",
      ],
      5,
    ],
    [
      "giving across rooms",
      [
        "Mary went to the office.",
        "Mary got the milk.",
        "John went to the park.",
        "Mary gave the milk to John.",
      ],
      4,
    ],
    ["giving to oneself", ["Mary got the milk.", "Mary gave the milk to Mary."], 2],
    ["two places at one time", ["Yesterday Mary went to the park.", "Mary went to the cinema yesterday."], 2],
    ["two rooms in one spot", ["The park is north of the school.", "The office is north of the school."], 2],
    ["a place beside itself", ["The park is north of the park."], 1],
    ["sizes in a circle", ["The box is bigger than the chest.", "The box fits inside the chest."], 2],
    ["an animal of two kinds", ["Lily is a swan.", "Lily is a frog."], 2],
    ["an unknown word", ["Mary teleported to the office."], 1],
    ["a word too many", ["Mary went to the office quickly."], 1],
    ["a word too few", ["Mary went to the."], 1],
    ["nobody to stand for a pronoun", ["Then she went to the office."], 1],
    ["a question about somebody unknown", ["Where is Mary?"], 1],
    ["a question the story leaves open", ["Mary is not in the office.", "Is Mary in the park?"], 2],
    ["a thing never seen", ["Where is the milk?"], 1],
    [
      "sizes never compared",
      ["The box is bigger than the chest.", "Is the suitcase bigger than the chest?"],
      2,
    ],
    ["no way", ["The park is north of the school.", "How do you go from the park to the office?"], 2],
    [
      "two ways of the same length",
      [
        "The park is north of the school.",
        "The office is east of the park.",
        "The cinema is east of the school.",
        "The office is north of the cinema.",
        "How do you go from the school to the office?",
      ],
      5,
    ],
  ])("%s", (_, sentences, line) => {
    expect(() => read(...sentences)).toThrow(DataError);
    expect(() => read(...sentences)).toThrow(`story.txt:${line}: `);
  });
});

describe("solving", () => {
  const text = [
    "1 Mary got the milk there.",
    "2 Mary got the apple there.",
    "3 Mary gave the milk to John.",
    "4 Mary gave the apple to John.",
    "5 What did Mary give to John? \tmilk\t3",
    "6 Who received the apple? \tJohn\t4",
    "1 Mary dropped the milk.",
    "2 Where is Mary? \toffice\t1",
    "",
  ].join("\n");
  const stories = parseStories(text, { file: "qa5.txt", task: 5 });

  test("counts, and lists every question it does not answer as the file does, with the reason", () => {
    const solution = solveStories(stories);
    expect(solution).toMatchObject({
      questions: 3,
      correct: 1,
      perTask: { 5: { questions: 3, correct: 1 } },
    });
    expect(solution.exceptions).toMatchObject([
      { where: "qa5.txt:5", expected: "milk", got: "apple" },
      { where: "qa5.txt:8", expected: "office", got: null },
    ]);
    expect(solution.exceptions[0]!.reason).toContain("ambiguous: the story supports milk and apple");
    expect(solution.exceptions[1]!.reason).toContain("qa5.txt:7");
  });

  test("strict solving throws what it cannot understand", () => {
    expect(() => solveStories(stories, { strict: true })).toThrow("qa5.txt:7: mary cannot drop the milk");
  });

  test("a whole story is answered at once", () => {
    expect(answerStory(stories[0]!)).toEqual([
      { answer: "apple", supports: [4], alternatives: ["milk"] },
      { answer: "john", supports: [4] },
    ]);
  });
});
