/** Lessons: what they show is true of the graph, what they ask follows from it and from nothing less than two edges. */
import { describe, expect, test } from "vitest";
import { GraphEnvironment, Lessons, sampleGraphSets } from "../../src/environment/index.ts";

const { train: graphs } = sampleGraphSets(5, 300, 1);
const [seed, episode] = [3, 7];

interface Step {
  readonly at: number;
  readonly goal: number;
  readonly action: number;
  readonly isOwn: boolean;
  /** Writes that an answer follows from: the first edge of the way, the second. */
  readonly facts: readonly (readonly number[])[];
  readonly reward: number;
}

/** One episode of lessons: the steps of every agent; `act` chooses for those that are not led. */
function teach(
  settings: { extra: number; joined: number },
  act: (agent: number, steps: readonly Step[], at: number, goal: number) => number,
  { first = 0, agents = graphs.count }: { first?: number; agents?: number } = {},
) {
  const next = graphs.next.slice(first * 15, (first + agents) * 15);
  const environment = new GraphEnvironment({
    graphs: { count: agents, states: 5, next },
    seed,
    split: "train",
    rules: "released",
    firstAgent: first,
  });
  const lessons = new Lessons(environment, seed, first);
  const taken: Step[][] = Array.from({ length: agents }, () => []);
  environment.reset(episode);
  lessons.begin(settings);
  while (!environment.done) {
    const [at, goal] = [environment.agentAt.slice(), environment.rewardAt.slice()];
    const actions = Int32Array.from(taken, (steps, agent) => act(agent, steps, at[agent]!, goal[agent]!));
    const own = new Float32Array(agents).fill(1);
    const facts = new Float32Array(agents * 2 * environment.steps);
    lessons.facts(facts);
    lessons.guide(actions, own);
    const rewards = environment.step(actions);
    lessons.follow();
    taken.forEach((steps, agent) => {
      const isOwn = own[agent] === 1;
      steps.push({
        at: at[agent]!,
        goal: goal[agent]!,
        action: actions[agent]!,
        isOwn,
        facts: [0, 1].map((which) => {
          const { steps: T } = environment;
          const row = [...facts.subarray((agent * 2 + which) * T, (agent * 2 + which + 1) * T)];
          return row.flatMap((is, write) => (is === 1 ? [write] : []));
        }),
        reward: rewards[agent]!,
      });
    });
  }
  return { taken, answers: lessons.answers() };
}

const toOf = (agent: number, from: number, action: number): number =>
  graphs.next[(agent * 5 + from) * 3 + action]!;

/** Edges that an agent was led along: [from, action, to]. */
const shown = (agent: number, steps: readonly Step[]): number[][] =>
  steps.filter(({ isOwn }) => !isOwn).map(({ at, action }) => [at, action, toOf(agent, at, action)]);

/** Actions that begin a way of two shown edges to the goal. */
function waysOfTwo(edges: readonly number[][], at: number, goal: number): number[] {
  return edges
    .filter(([from, , mid]) => from === at && edges.some(([f, , t]) => f === mid && t === goal))
    .map(([, action]) => action!);
}

describe.each([
  { extra: 0, joined: 0 },
  { extra: 4, joined: 0 },
  { extra: 6, joined: 0.5 },
  { extra: 6, joined: 1 },
])("lessons with %o", (settings) => {
  const random = (agent: number, steps: readonly Step[]): number => (agent * 7 + steps.length * 5) % 3;
  const { taken } = teach(settings, random);
  const taught = taken.map((steps, agent) => ({ agent, steps })).filter(({ steps }) => !steps[0]!.isOwn);

  test("nearly all graphs have a fork; without one the episode is an ordinary one", () => {
    expect(taught.length / graphs.count).toBeGreaterThan(0.85);
    const environment = new GraphEnvironment({ graphs, seed, split: "train", rules: "released" });
    environment.reset(episode);
    for (const [agent, steps] of taken.entries()) {
      if (!steps[0]!.isOwn) continue;
      expect(steps.every(({ isOwn }) => isOwn)).toBe(true);
      expect([steps[0]!.at, steps[0]!.goal]).toEqual([
        environment.agentAt[agent],
        environment.rewardAt[agent],
      ]);
    }
  });

  test("agents are led along edges of their graph, four and up to so many more, and no further", () => {
    const counts = new Set<number>();
    for (const { agent, steps } of taught) {
      const guided = steps.findIndex(({ isOwn }) => isOwn);
      expect(steps.slice(guided).every(({ isOwn }) => isOwn)).toBe(true);
      counts.add(guided);
      for (const { at, action, goal, reward } of steps.slice(0, guided)) {
        const to = toOf(agent, at, action);
        expect(to).not.toBe(-1);
        expect(reward).toBe(to === goal ? 10 : 0);
      }
      // The last walk ends at its reward like every other, and a question follows.
      expect(steps[guided - 1]!.reward).toBe(10);
    }
    const want = Array.from({ length: settings.extra + 1 }, (_, i) => 4 + i);
    expect([...counts].sort((a, b) => a - b)).toEqual(want);
  });

  test("walks are of one edge, or of two that follow each other", () => {
    const moves = taught.flatMap(({ steps }) => steps.filter(({ isOwn, reward }) => !isOwn && reward === 0));
    if (settings.joined === 0) expect(moves).toHaveLength(0);
    else expect(moves.length / taught.length).toBeGreaterThan(settings.joined / 2);
    for (const { steps } of taught) {
      steps.forEach(({ isOwn, reward }, i) => {
        if (!isOwn && reward === 0) expect(steps[i + 1]).toMatchObject({ isOwn: false, reward: 10 });
      });
    }
  });

  test("a question has one answer, two shown edges from its reward, and a wrong edge beside it", () => {
    let asked = 0;
    for (const { agent, steps } of taught) {
      const edges = shown(agent, steps);
      const { at, goal } = steps[edges.length]!;
      const right = waysOfTwo(edges, at, goal);
      // Where every way that could be asked for was walked, the episode goes on as an ordinary one.
      if (settings.joined > 0 && right.length === 0) continue;
      asked++;
      expect(new Set(right.map((action) => toOf(agent, at, action))).size).toBe(1);
      const out = edges.filter(([from]) => from === at).map(([, , to]) => to);
      expect(out).not.toContain(goal);
      expect(new Set(out).size).toBeGreaterThan(1);
    }
    expect(asked / taught.length).toBeGreaterThan(0.9);
  });

  test("the facts are the writes of both edges of the way that is asked for, and of no other", () => {
    let asked = 0;
    for (const { agent, steps } of taught) {
      const edges = shown(agent, steps);
      const asks = steps.filter(({ facts }) => facts.flat().length > 0);
      asked += asks.length;
      // No location is asked about twice.
      expect(new Set(asks.map(({ at }) => at)).size).toBe(asks.length);
      for (const { at, goal, facts, isOwn } of asks) {
        expect(isOwn).toBe(true);
        // A write comes a step after what it is about.
        const [first, second] = facts.map((writes) => writes.map((write) => edges[write - 1]!));
        expect(new Set(first!.map(([, action]) => action))).toEqual(new Set(waysOfTwo(edges, at, goal)));
        const vias = first!.map(([, , to]) => to);
        expect(second!.length).toBeGreaterThan(0);
        for (const [from, , to] of second!) expect([vias.includes(from), to]).toEqual([true, goal]);
      }
    }
    expect(asked).toBeGreaterThan(0.9 * taught.length);
  });

  test("who looks up two edges answers all; who repeats what was walked, or does the other thing, guesses", () => {
    const all = teach(settings, knowing).answers;
    expect(all.asked).toBeGreaterThan(0.9 * graphs.count);
    expect(all.correct).toBe(all.asked);
    const { correct, asked } = teach(settings, byRote).answers;
    expect(asked).toBeGreaterThan(0.9 * graphs.count);
    expect(correct / asked).toBeLessThan(0.6);
  });
});

/** The step to the reward, or the first of two, by the edges that were shown. */
function knowing(agent: number, steps: readonly Step[], at: number, goal: number): number {
  const edges = shown(agent, steps);
  const direct = edges.find(([from, , to]) => from === at && to === goal);
  return direct?.[1] ?? waysOfTwo(edges, at, goal)[0] ?? 0;
}

/**
 * What led from here to this reward before, in one walk; else a shown edge from here, the one to the reward if there is one,
 * rather one that has not led to another reward.
 */
function byRote(agent: number, steps: readonly Step[], at: number, goal: number): number {
  const led = new Map<number, number>();
  steps.forEach((step, i) => {
    const end = steps.slice(i, i + 2).findIndex(({ reward }) => reward === 10);
    if (step.at === at && end !== -1) led.set(steps[i + end]!.goal, step.action);
  });
  const edges = shown(agent, steps).filter(([from]) => from === at);
  const direct = edges.find(([, , to]) => to === goal)?.[1];
  const others = edges.map(([, action]) => action!).filter((action) => ![...led.values()].includes(action));
  return led.get(goal) ?? direct ?? others[steps.length % others.length] ?? edges[0]?.[1] ?? 0;
}

test("answers are counted: none of them right, and by chance", () => {
  const settings = { extra: 4, joined: 0.5 };
  const wrong = teach(
    settings,
    (agent, steps, at, goal) => (knowing(agent, steps, at, goal) + 1) % 3,
  ).answers;
  expect(wrong.asked).toBeGreaterThan(graphs.count / 2);
  // Two actions may lead to the same location, and both may have been shown.
  expect(wrong.correct).toBeLessThan(0.05 * wrong.asked);
  const chance = teach(settings, (agent, steps) => (agent * 7 + steps.length * 5) % 3).answers;
  expect(chance.correct / chance.asked).toBeGreaterThan(0.2);
  expect(chance.correct / chance.asked).toBeLessThan(0.5);
});

test("some of many agents have the lessons they have among all, and episodes differ", () => {
  const act = (agent: number, steps: readonly Step[]): number => (agent + steps.length) % 3;
  const settings = { extra: 4, joined: 0.5 };
  const whole = teach(settings, act).taken;
  const part = teach(settings, (agent, steps) => act(agent + 100, steps), { first: 100, agents: 50 }).taken;
  expect(part).toEqual(whole.slice(100, 150));
});
