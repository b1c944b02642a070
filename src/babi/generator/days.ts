/**
 * The world of task 14: four friends go from place to place through yesterday, the morning, the afternoon and
 * the evening, and the story states it out of order.
 *
 * Events happen in order, each friend's next visit at the next time of the day. The statements between two
 * questions are in another order than the events.
 */
import { times } from "../lexicon.ts";
import type { Difficulty } from "./difficulty.ts";
import type { StoryRandom } from "./random.ts";
import { friends, goes, phrase, StoryWriter, town } from "./writer.ts";

const questionsPerStory = 5;
const timeWords = times.map(phrase);

interface Visit {
  readonly who: number;
  readonly time: number;
  readonly place: number;
  /** The statement of it. */
  id: number;
}

/** A story of task 14. */
export function dayStory(random: StoryRandom, { lookback }: Difficulty): StoryWriter {
  const story = new StoryWriter();
  const days: Visit[][] = friends.map(() => []);
  const visits: Visit[] = [];
  for (let asked = 0; asked < questionsPerStory; asked++) {
    const latest: Visit[] = [];
    let possible: Visit[] = [];
    while (possible.length === 0) {
      for (let count = 0; count < 2; count++) latest.push(nextVisit(random, days));
      possible = [...visits, ...latest].slice(-lookback).filter((visit) => lastVisit(days, visit) > 0);
    }
    for (const visit of random.cycled(latest)) visit.id = story.state(visitWords(random, visit));
    visits.push(...latest);
    ask(story, days, random.pick(possible));
  }
  return story;
}

function nextVisit(random: StoryRandom, days: Visit[][]): Visit {
  for (;;) {
    const who = random.below(friends.length);
    const day = days[who]!;
    if (day.length === times.length) continue;
    const before = day.at(-1);
    const place = before === undefined ? random.below(town.length) : random.other(town.length, before.place);
    const visit = { who, time: day.length, place, id: 0 };
    day.push(visit);
    return visit;
  }
}

function visitWords(random: StoryRandom, { who, time, place }: Visit): string[] {
  const when = timeWords[time]!;
  return random.coin()
    ? goes(random, [...when, friends[who]!], town[place]!)
    : [...goes(random, [friends[who]!], town[place]!), ...when];
}

/** Which of the day's visits was the last to the place of `visit`; 0 leaves nothing before it to ask for. */
function lastVisit(days: Visit[][], { who, place }: Visit): number {
  return days[who]!.findLastIndex((visit) => visit.place === place);
}

function ask(story: StoryWriter, days: Visit[][], visit: Visit): void {
  const day = days[visit.who]!;
  const last = lastVisit(days, visit);
  const [before, then] = [day[last - 1]!, day[last]!];
  story.ask(["where", "was", friends[visit.who]!, "before", "the", town[then.place]!], town[before.place]!, [
    then.id,
    before.id,
  ]);
}
