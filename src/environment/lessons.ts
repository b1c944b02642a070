/**
 * Lessons: episodes in which agents are led along a few edges first, and then asked for ways of two steps that these make.
 * What an ordinary episode asks for only now and then, and among a dozen other things to remember, a lesson asks for at
 * once: to look up which location the reward is reached from, and then how to get there.
 *
 *   fork        start → x → g and start → y → h, five different locations: what to do at the start depends on the edge
 *               after the next, and no single look-up says so
 *   shown       the four edges of a fork and up to `extra` others, in any order; each is a walk of its own that ends at the
 *               reward, or, with probability `joined`, one walk together with an edge that goes on from it
 *   asked       then, after every success: a location and a reward two shown steps apart, with another edge to choose
 *
 * What has been walked once, from a location to a reward, can be done again without looking up any edge, and what was not
 * the way to one reward must be the way to another. So no way that is asked for was shown as one walk, and no location is
 * asked about twice; when no question is left, the rest of the episode is an ordinary one.
 *
 * A lesson places agents and takes their first actions; all else goes by the rules of the environment. Everything depends
 * on (seed, episode, step, agent) alone. On a graph without a fork, one in twelve, the episode is an ordinary one.
 */
import { below, purpose } from "./draws.ts";
import { type GraphEnvironment, successReward } from "./graphEnvironment.ts";
import { actions as actionCount, type Graphs } from "./sampler.ts";

/** How lessons are made. */
export interface LessonSettings {
  /** At most so many edges are shown besides those of the fork. */
  readonly extra: number;
  /** Probability that an edge and one that goes on from it are shown as one walk. */
  readonly joined: number;
}

interface Edge {
  readonly from: number;
  readonly action: number;
  readonly to: number;
}

/** Two ways that part at their first edge: the edges of each. */
type Fork = readonly (readonly [Edge, Edge])[];

interface Place {
  readonly at: number;
  readonly goal: number;
}

interface Question extends Place {
  /** Whether an action begins the way. */
  readonly isRight: (action: number) => boolean;
}

interface Lesson {
  /** Actions that are taken for the agent, from the first step on. */
  readonly guided: readonly number[];
  /** By step: where a walk begins. */
  readonly begins: ReadonlyMap<number, Place>;
  /** The edges that these actions go along. */
  readonly shown: readonly Edge[];
  /** What may still be asked. */
  questions: readonly Question[];
}

/** The lessons of an environment's agents. */
export class Lessons {
  private readonly edges: readonly (readonly Edge[])[];
  private readonly forks: readonly (readonly Fork[])[];
  private lessons: readonly (Lesson | undefined)[] = [];
  private readonly pending: (Question | undefined)[] = [];
  private tally = { correct: 0, asked: 0 };

  constructor(
    private readonly environment: GraphEnvironment,
    private readonly seed: number,
    /** Number of the first agent, where these are some of many. */
    private readonly firstAgent: number,
  ) {
    const agents = Array.from({ length: environment.agents }, (_, agent) => agent);
    this.edges = agents.map((agent) => edgesIn(environment.graphs, agent));
    this.forks = this.edges.map(forksAmong);
  }

  /** After a reset: makes the lessons of the episode and places the agents. */
  begin(settings: LessonSettings): void {
    this.tally = { correct: 0, asked: 0 };
    this.lessons = this.edges.map((_, agent) => this.make(agent, settings));
    this.pending.fill(undefined, 0, this.lessons.length);
    this.lessons.forEach((lesson, agent) => {
      if (lesson) this.put(agent, lesson.begins.get(0)!);
    });
  }

  /** Whether the next action of an agent is not its own. */
  private isGuided(agent: number): boolean {
    const lesson = this.lessons[agent];
    return lesson !== undefined && this.environment.stepsTaken < lesson.guided.length;
  }

  /** Before a step: which writes the answers of agents that are asked now follow from, [agents, 2, steps] (see rollout.ts). */
  facts(into: Float32Array): void {
    const { steps } = this.environment;
    this.lessons.forEach((lesson, agent) => {
      const question = this.pending[agent];
      if (!lesson || !question) return;
      const first = lesson.shown.filter(
        ({ from, action }) => from === question.at && question.isRight(action),
      );
      lesson.shown.forEach(({ from, action, to }, step) => {
        // A write is of what the step before it has shown.
        const at = agent * 2 * steps + step + 1;
        if (from === question.at && question.isRight(action)) into[at] = 1;
        if (to === question.goal && first.some((edge) => edge.to === from)) into[at + steps] = 1;
      });
    });
  }

  /** Before a step: takes the actions of agents that are led, with 0 in `own`, and marks the answers of those asked. */
  guide(actions: Int32Array, own: Float32Array): void {
    const { stepsTaken, timer } = this.environment;
    this.lessons.forEach((lesson, agent) => {
      const question = this.pending[agent];
      if (question) {
        this.tally.asked++;
        if (question.isRight(actions[agent]!)) this.tally.correct++;
        this.pending[agent] = undefined;
      }
      if (!this.isGuided(agent)) return;
      actions[agent] = lesson!.guided[stepsTaken]!;
      own[agent] = 0;
      // What it is shown is no failure of the agent.
      timer[agent] = 0;
    });
  }

  /** After a step: places the agents that were successful at the beginning of the next walk, or asks them. */
  follow(): void {
    const { environment } = this;
    const { stepsTaken, rewards, episode } = environment;
    this.lessons.forEach((lesson, agent) => {
      if (!lesson || rewards[agent] !== successReward) return;
      const begin = lesson.begins.get(stepsTaken);
      if (begin) {
        this.put(agent, begin);
        return;
      }
      const { questions } = lesson;
      if (questions.length === 0) return;
      const number = below(
        questions.length,
        this.seed,
        purpose.lesson,
        episode,
        asking + stepsTaken,
        this.firstAgent + agent,
      );
      const question = questions[number]!;
      lesson.questions = questions.filter(({ at }) => at !== question.at);
      this.pending[agent] = question;
      this.put(agent, question);
    });
  }

  /** How many questions this episode has asked so far, and how many of their ways were begun. */
  answers(): { correct: number; asked: number } {
    return { ...this.tally };
  }

  private put(agent: number, { at, goal }: Place): void {
    this.environment.agentAt[agent] = at;
    this.environment.rewardAt[agent] = goal;
  }

  private make(agent: number, { extra, joined }: LessonSettings): Lesson | undefined {
    const [edges, forks] = [this.edges[agent]!, this.forks[agent]!];
    if (forks.length === 0) return undefined;
    const { episode } = this.environment;
    let draws = 0;
    const draw = (n: number): number =>
      below(n, this.seed, purpose.lesson, episode, draws++, this.firstAgent + agent);
    const pick = <T>(list: readonly T[]): T => list[draw(list.length)]!;

    const fork = pick(forks).flat();
    const others = Array.from({ length: draw(extra + 1) }, () => pick(edges));
    // They may have shorter ways for all that could be asked.
    const isAskable = questionsAbout([...fork, ...others]).length > 0;
    const shown = isAskable ? [...fork, ...others] : fork;
    for (let i = shown.length - 1; i > 0; i--) {
      const j = draw(i + 1);
      [shown[i], shown[j]] = [shown[j]!, shown[i]!];
    }
    const start = fork[0]!.from;
    const walks = joinSome(shown, (edge) => edge.from !== start && draw(resolution) < joined * resolution);
    const begins = new Map<number, Place>();
    const guided: number[] = [];
    for (const walk of walks) {
      begins.set(guided.length, { at: walk[0]!.from, goal: walk.at(-1)!.to });
      guided.push(...walk.map(({ action }) => action));
    }
    const isWalked = ({ at, goal }: Place): boolean =>
      walks.some((walk) => walk[0]!.from === at && walk.at(-1)!.to === goal);
    return {
      guided,
      begins,
      shown: walks.flat(),
      questions: questionsAbout(shown).filter((question) => !isWalked(question)),
    };
  }
}

/** Numbers of draws: those that make a lesson come before those that ask. */
const asking = 1 << 16;

/** Steps between 0 and 1 in which a probability is drawn. */
const resolution = 1 << 16;

/** Edges as walks, each of one edge, or of two where `isJoined` says so and one goes on from the first to a new place. */
function joinSome(edges: readonly Edge[], isJoined: (edge: Edge) => boolean): (readonly Edge[])[] {
  const left = [...edges];
  const walks: (readonly Edge[])[] = [];
  for (let edge = left.shift(); edge; edge = left.shift()) {
    const { from, to } = edge;
    const next = isJoined(edge) ? left.findIndex((other) => other.from === to && other.to !== from) : -1;
    walks.push(next === -1 ? [edge] : [edge, ...left.splice(next, 1)]);
  }
  return walks;
}

/** The edges of a graph. */
function edgesIn({ states, next }: Graphs, graph: number): Edge[] {
  const found: Edge[] = [];
  for (let from = 0; from < states; from++) {
    for (let action = 0; action < actionCount; action++) {
      const to = next[(graph * states + from) * actionCount + action]!;
      if (to !== -1) found.push({ from, action, to });
    }
  }
  return found;
}

/** Every fork that edges make. */
function forksAmong(edges: readonly Edge[]): Fork[] {
  const after = ({ to }: Edge): Edge[] => edges.filter(({ from }) => from === to);
  return edges.flatMap((left, i) =>
    edges.slice(i + 1).flatMap((right) => {
      if (right.from !== left.from) return [];
      return after(left).flatMap((toLeft) =>
        after(right)
          .filter((toRight) => new Set([left.from, left.to, right.to, toLeft.to, toRight.to]).size === 5)
          .map(
            (toRight): Fork => [
              [left, toLeft],
              [right, toRight],
            ],
          ),
      );
    }),
  );
}

/** Ways of two steps by known edges, none of one, from where edges lead to several locations and one of them is right. */
function questionsAbout(known: readonly Edge[]): Question[] {
  const leads = (from: number, to: number): boolean =>
    known.some((edge) => edge.from === from && edge.to === to);
  const all = [...new Set(known.flatMap(({ from, to }) => [from, to]))].sort((a, b) => a - b);
  return all.flatMap((at) => {
    const out = known.filter(({ from }) => from === at);
    if (new Set(out.map(({ to }) => to)).size < 2) return [];
    return all.flatMap((goal): Question[] => {
      if (goal === at || leads(at, goal)) return [];
      const first = out.filter(({ to }) => leads(to, goal));
      if (new Set(first.map(({ to }) => to)).size !== 1) return [];
      return [{ at, goal, isRight: (taken) => first.some(({ action }) => action === taken) }];
    });
  });
}
