/**
 * The worlds of tasks 4 and 19: rooms lie north, south, east and west of each other.
 *
 * A map is a tree of rooms. The story draws a room and one of its neighbours over and over until every
 * neighbourhood has been stated once, so rooms with few neighbours are more often the one that is described.
 */
import { directions } from "../lexicon.ts";
import type { StoryRandom } from "./random.ts";
import { rooms, StoryWriter } from "./writer.ts";

const compass = Object.keys(directions);
const letterOf = (direction: string) => directions[direction]!.letter;
const opposite = (direction: string) => directions[direction]!.opposite;

interface Road {
  /** `to` lies `direction` of `from`. */
  readonly from: string;
  readonly to: string;
  readonly direction: string;
}

/** States the roads; returns the statement of each and which of its ends was described. */
function stateRoads(
  random: StoryRandom,
  story: StoryWriter,
  roads: readonly Road[],
): { id: number; subject: string }[] {
  const placesOnMap = [...new Set(roads.flatMap(({ from, to }) => [from, to]))];
  const statements: { id: number; subject: string }[] = [];
  for (let count = 0; count < roads.length; ) {
    const subject = random.pick(placesOnMap);
    const road = random.pick(roads.filter(({ from, to }) => from === subject || to === subject));
    const index = roads.indexOf(road);
    if (statements[index] !== undefined) continue;
    const [direction, reference] =
      road.to === subject ? [road.direction, road.from] : [opposite(road.direction), road.to];
    const id = story.state(["the", subject, "is", direction, "of", "the", reference]);
    statements[index] = { id, subject };
    count++;
  }
  return statements;
}

/** A story of task 4: a room with two others on opposite sides, and one question. */
export function neighbourStory(random: StoryRandom): StoryWriter {
  const story = new StoryWriter();
  const [middle, one, another] = random.shuffled(rooms) as [string, string, string];
  const direction = random.pick(compass);
  const roads = [
    { from: middle, to: one, direction },
    { from: middle, to: another, direction: opposite(direction) },
  ];
  const statements = stateRoads(random, story, roads);
  const index = random.below(roads.length);
  const road = roads[index]!;
  const { id, subject } = statements[index]!;
  const [side, reference] =
    road.to === subject ? [road.direction, road.from] : [opposite(road.direction), road.to];
  const words = random.coin()
    ? ["what", "is", side, "of", "the", reference]
    : ["what", "is", "the", reference, opposite(side), "of"];
  story.ask(words, subject, [id]);
  return story;
}

/** A story of task 19: the way from one room through another to a third, with three rooms around them. */
export function pathStory(random: StoryRandom): StoryWriter {
  const story = new StoryWriter();
  const order = random.shuffled(rooms);
  const stops = order.slice(0, 3);
  const first = random.pick(compass);
  const second = random.pick(compass.filter((direction) => direction !== opposite(first)));
  const roads: Road[] = [
    { from: stops[0]!, to: stops[1]!, direction: first },
    { from: stops[1]!, to: stops[2]!, direction: second },
  ];
  const free = stops.flatMap((from) =>
    compass
      .filter(
        (direction) =>
          !roads.some(
            (road) =>
              (road.from === from && road.direction === direction) ||
              (road.to === from && opposite(road.direction) === direction),
          ),
      )
      .map((direction) => ({ from, direction })),
  );
  random
    .shuffled(free)
    .slice(0, 3)
    .forEach((side, index) => {
      roads.push({ ...side, to: order[3 + index]! });
    });
  const statements = stateRoads(random, story, roads);
  story.ask(
    ["how", "do", "you", "go", "from", "the", stops[0]!, "to", "the", stops[2]!],
    `${letterOf(first)},${letterOf(second)}`,
    [statements[0]!.id, statements[1]!.id],
  );
  return story;
}
