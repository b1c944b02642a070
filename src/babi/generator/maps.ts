/**
 * The worlds of tasks 4 and 19: rooms lie north, south, east and west of each other.
 *
 * A map is a tree of rooms. The story draws a room and one of its neighbours over and over until every
 * neighbourhood has been stated once, so rooms with few neighbours are more often the one that is described.
 */
import { directions, places } from "../lexicon.ts";
import type { Difficulty } from "./difficulty.ts";
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

/** States the roads; returns the statement of each and which of its ends was described: in one order, where it leads to. */
function stateRoads(
  random: StoryRandom,
  story: StoryWriter,
  roads: readonly Road[],
  orders = 2,
): { id: number; subject: string }[] {
  const placesOnMap = [...new Set(roads.flatMap(({ from, to }) => [from, to]))];
  const statements: { id: number; subject: string }[] = [];
  for (let count = 0; count < roads.length; ) {
    const subject = random.pick(placesOnMap);
    const described = roads.filter(({ from, to }) => (orders === 2 && from === subject) || to === subject);
    if (described.length === 0) continue;
    const road = random.pick(described);
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

/** A story of task 19: a way through rooms with others around it; two steps of it are asked for. */
export function pathStory(random: StoryRandom, { rooms: count, path, orders }: Difficulty): StoryWriter {
  const story = new StoryWriter();
  const order = random.shuffled(count > rooms.length ? places : rooms);
  const stops = order.slice(0, path);
  const way: string[] = [];
  for (const _ of stops.slice(1)) {
    const last = way.at(-1);
    way.push(random.pick(compass.filter((direction) => last === undefined || direction !== opposite(last))));
  }
  const roads: Road[] = way.map((direction, i) => ({ from: stops[i]!, to: stops[i + 1]!, direction }));
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
    .slice(0, count - path)
    .forEach((side, index) => {
      roads.push({ ...side, to: order[path + index]! });
    });
  const statements = stateRoads(random, story, roads, orders);
  const ask = (stop: number, back: boolean): void => {
    const legs = back ? [stop + 1, stop] : [stop, stop + 1];
    const steps = legs.map((leg) => letterOf(back ? opposite(way[leg]!) : way[leg]!));
    const [from, to] = back ? [stops[stop + 2]!, stops[stop]!] : [stops[stop]!, stops[stop + 2]!];
    story.ask(
      ["how", "do", "you", "go", "from", "the", from, "to", "the", to],
      steps.join(","),
      legs.map((leg) => statements[leg]!.id),
    );
  };
  // A longer way is asked for in legs of two steps: no answer has more.
  const legs = stops.slice(2).map((_, stop) => stop);
  if (legs.length === 1) ask(0, false);
  else for (const stop of random.shuffled(legs)) ask(stop, orders === 2 && random.coin());
  return story;
}
