/** The file format: lines become stories and the same lines again; malformed lines are named. */
import { describe, expect, test } from "vitest";
import { formatStories, parseStories, storyTokens } from "../../src/babi/format.ts";
import { DataError } from "../../src/errors.ts";

const parse = (text: string, task = 1) => parseStories(text, { file: "qa.txt", task });

const two = [
  "1 Mary moved to the bathroom.",
  "2 Where is Mary? \tbathroom\t1",
  "1 Bill gave the milk to Fred.",
  "2 Who received the milk? \tFred\t1",
  "",
].join("\n");

describe("reading", () => {
  test("a story begins wherever the ID is 1, and the last one is kept", () => {
    const stories = parse(two, 5);
    expect(stories.map((story) => story.lines.length)).toEqual([2, 2]);
    expect(stories[1]!.source).toEqual({ file: "qa.txt", line: 3 });
    expect(stories[1]!.lines[1]).toEqual({
      kind: "question",
      id: 2,
      words: ["who", "received", "the", "milk"],
      answer: "fred",
      supports: [1],
    });
  });

  test("Windows line ends and an absent last line end make no difference", () => {
    expect(parse(two.replaceAll("\n", "\r\n").trimEnd(), 5)).toEqual(parse(two, 5));
    expect(parse("")).toEqual([]);
  });

  test.each([
    ["no ID", "Mary moved to the bathroom.", 1],
    ["a gap in the IDs", "1 Mary moved to the bathroom.\n3 Mary went to the office.", 2],
    ["a file that does not begin with 1", "2 Mary moved to the bathroom.", 1],
    ["a blank line", "1 Mary moved to the bathroom.\n\n2 Mary went to the office.", 2],
    ["a statement without a full stop", "1 Mary moved to the bathroom", 1],
    ["a question without supports", "1 Mary moved to the office.\n2 Where is Mary?\toffice", 2],
    ["a question without a mark", "1 Mary moved to the office.\n2 Where is Mary\toffice\t1", 2],
    ["an answer of two words", "1 Mary moved to the office.\n2 Where is Mary?\tthe office\t1", 2],
    ["a support that comes later", "1 Mary moved to the office.\n2 Where is Mary?\toffice\t2", 2],
    ["a support that is no number", "1 Mary moved to the office.\n2 Where is Mary?\toffice\tone", 2],
    ["two blanks", "1 Mary  moved to the bathroom.", 1],
    ["a digit in a word", "1 M4ry moved to the bathroom.", 1],
  ])("%s is a DataError that names file and line", (_, text, line) => {
    expect(() => parse(text)).toThrow(DataError);
    expect(() => parse(text)).toThrow(`qa.txt:${line}: `);
  });
});

describe("writing", () => {
  test("names, first words, blanks and tabs stand as in the files", () => {
    expect(formatStories(parse(two, 5))).toBe(two);
    const fear =
      "1 Mice are afraid of wolves.\n2 Gertrude is a mouse.\n3 What is gertrude afraid of?\twolf\t2 1\n";
    expect(formatStories(parse(fear, 15))).toBe(fear);
    expect(formatStories([])).toBe("");
  });
});

test("a model reads words, marks and each answer as one token", () => {
  const [story] = parse("1 Mary got the milk there.\n2 What is Mary carrying? \tapple,milk\t1\n", 8);
  const { tokens, answers, facts } = storyTokens(story!);
  expect(tokens.join(" ")).toBe("mary got the milk there . what is mary carrying ? apple,milk");
  expect(answers.map((is, index) => (is ? tokens[index] : "")).filter(Boolean)).toEqual(["apple,milk"]);
  expect(facts).toEqual([{ answer: 11, from: 0, to: 6 }]);
});
