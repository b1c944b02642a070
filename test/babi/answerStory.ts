/** A whole story through the reader. */
import type { Story } from "../../src/babi/format.ts";
import type { Answer } from "../../src/babi/reader/answer.ts";
import { StoryReader } from "../../src/babi/reader/reader.ts";

/** The reader's answers to the questions of a story, in order. */
export function answerStory(story: Story): Answer[] {
  const reader = new StoryReader(story.source);
  return story.lines.map((line) => reader.read(line)).filter((answer) => answer !== null);
}
