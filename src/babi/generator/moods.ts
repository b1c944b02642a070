/**
 * The world of task 20: four people get into a mood, go where one goes in it and get what one gets there.
 *
 * There is one thing for each mood, so of two hungry people only one gets the apple. The story ends when nobody
 * has anything left to do; every statement is followed by the question it answers.
 */
import { moodyPeople, takeVerbs, wants } from "../lexicon.ts";
import type { StoryRandom } from "./random.ts";
import { goes, phrase, StoryWriter } from "./writer.ts";

const moods = Object.keys(wants);
const takes = takeVerbs.map(phrase);

/** A story of task 20. */
export function moodStory(random: StoryRandom): StoryWriter {
  const story = new StoryWriter();
  const people = moodyPeople.map((name) => ({ name, mood: random.pick(moods), moodId: 0, done: 0 }));
  const gone = new Set<string>();
  for (;;) {
    const able = people.filter(({ done, mood }) => done < 2 || (done === 2 && !gone.has(mood)));
    if (able.length === 0) return story;
    const person = random.pick(able);
    const { name, mood } = person;
    const { place, thing } = wants[mood]!;
    switch (person.done++) {
      case 0:
        person.moodId = story.state([name, "is", mood]);
        story.ask(["where", "will", name, "go"], place, [person.moodId]);
        break;
      case 1:
        story.state(goes(random, [name], place));
        story.ask(["why", "did", name, "go", "to", "the", place], mood, [person.moodId]);
        break;
      default:
        gone.add(mood);
        story.state([name, ...random.pick(takes), "the", thing, "there"]);
        story.ask(["why", "did", name, "get", "the", thing], mood, [person.moodId]);
    }
  }
}
