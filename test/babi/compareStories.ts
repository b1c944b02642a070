/**
 * Compares two sets of stories: story length, questions per story, answers, words, and how far back the
 * facts behind an answer lie, for each task.
 *
 * Frequencies are compared by total variation: half the sum of the absolute differences, 0 for equal and 1 for
 * disjoint. A small sample lies some way off even from its own source, so a distance means little alone; the
 * report puts the distance between the real train and test files beside it.
 */
import { type Story, storyTokens } from "../../src/babi/format.ts";
import { mean, std } from "../../src/statistics.ts";

/** Mean and standard deviation over stories. */
export interface Spread {
  readonly mean: number;
  readonly std: number;
}

/** What is counted in one task's stories. */
export interface TaskStatistics {
  readonly stories: number;
  readonly questions: number;
  /** Tokens per story. */
  readonly length: Spread;
  readonly questionsPerStory: Spread;
  readonly answers: ReadonlyMap<string, number>;
  readonly words: ReadonlyMap<string, number>;
  /** Neighbouring tokens, as `first second`. */
  readonly pairs: ReadonlyMap<string, number>;
  /** Statements between a question and the newest of its supporting facts. */
  readonly distances: ReadonlyMap<string, number>;
}

/** How far apart two sets of stories of a task are. */
export interface TaskComparison {
  readonly task: number;
  readonly length: { readonly first: Spread; readonly second: Spread };
  readonly questionsPerStory: { readonly first: Spread; readonly second: Spread };
  /** Total variations. */
  readonly answers: number;
  readonly words: number;
  readonly pairs: number;
  readonly distances: number;
}

/** Counts one task's stories. */
export function countStories(stories: readonly Story[]): TaskStatistics {
  const answers = new Map<string, number>();
  const words = new Map<string, number>();
  const pairs = new Map<string, number>();
  const distances = new Map<string, number>();
  const lengths: number[] = [];
  const questionCounts: number[] = [];
  for (const story of stories) {
    const { tokens } = storyTokens(story);
    lengths.push(tokens.length);
    tokens.forEach((token, index) => {
      count(words, token);
      if (index > 0) count(pairs, `${tokens[index - 1]!} ${token}`);
    });
    const statements: number[] = [];
    let questions = 0;
    for (const line of story.lines) {
      if (line.kind === "statement") statements.push(line.id);
      else {
        questions++;
        count(answers, line.answer);
        const newest = Math.max(...line.supports);
        count(distances, String(statements.filter((id) => id > newest).length));
      }
    }
    questionCounts.push(questions);
  }
  return {
    stories: stories.length,
    questions: questionCounts.reduce((sum, questions) => sum + questions, 0),
    length: spread(lengths),
    questionsPerStory: spread(questionCounts),
    answers,
    words,
    pairs,
    distances,
  };
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function spread(values: readonly number[]): Spread {
  return { mean: mean(values), std: std(values) };
}

/** Total variation between two tables of counts, each taken as frequencies. */
export function totalVariation(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  const total = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((x, y) => x + y, 0);
  const [totalA, totalB] = [total(a), total(b)];
  let sum = 0;
  for (const key of new Set([...a.keys(), ...b.keys()])) {
    sum += Math.abs((a.get(key) ?? 0) / totalA - (b.get(key) ?? 0) / totalB);
  }
  return sum / 2;
}

/** Compares two sets of stories task by task, for the tasks that both have. */
export function compareStatistics(first: readonly Story[], second: readonly Story[]): TaskComparison[] {
  const ours = byTask(second);
  return [...byTask(first)]
    .filter(([task]) => ours.has(task))
    .sort(([a], [b]) => a - b)
    .map(([task, stories]) => {
      const [a, b] = [countStories(stories), countStories(ours.get(task)!)];
      return {
        task,
        length: { first: a.length, second: b.length },
        questionsPerStory: { first: a.questionsPerStory, second: b.questionsPerStory },
        answers: totalVariation(a.answers, b.answers),
        words: totalVariation(a.words, b.words),
        pairs: totalVariation(a.pairs, b.pairs),
        distances: totalVariation(a.distances, b.distances),
      };
    });
}

function byTask(stories: readonly Story[]): Map<number, Story[]> {
  const groups = new Map<number, Story[]>();
  for (const story of stories) {
    const group = groups.get(story.task);
    if (group === undefined) groups.set(story.task, [story]);
    else group.push(story);
  }
  return groups;
}

/** One task of the report: generated stories against the real training files, and the yardstick. */
export interface StatisticsRow {
  readonly task: number;
  /** Real train against generated. */
  readonly generated: TaskComparison;
  /** Real train against real test: what the same distances are between two real files. */
  readonly yardstick: TaskComparison;
}

/**
 * Distances of generated stories from the real training stories, beside those of the real test stories. For a
 * fair comparison give as many generated stories of each task as there are test stories.
 */
export function statisticsReport(
  train: readonly Story[],
  test: readonly Story[],
  generated: readonly Story[],
): StatisticsRow[] {
  const yardsticks = new Map(compareStatistics(train, test).map((row) => [row.task, row]));
  return compareStatistics(train, generated)
    .filter(({ task }) => yardsticks.has(task))
    .map((row) => ({ task: row.task, generated: row, yardstick: yardsticks.get(row.task)! }));
}

/** The report as a Markdown table: each distance as `generated / yardstick`. */
export function statisticsTable(rows: readonly StatisticsRow[]): string {
  const head = [
    "task",
    "tokens per story: train",
    "generated",
    "test",
    "questions: train",
    "generated",
    "answers",
    "words",
    "word pairs",
    "distance to facts",
  ];
  const body = rows.map(({ task, generated, yardstick }) => [
    String(task),
    shown(generated.length.first),
    shown(generated.length.second),
    shown(yardstick.length.second),
    shown(generated.questionsPerStory.first),
    shown(generated.questionsPerStory.second),
    ...(["answers", "words", "pairs", "distances"] as const).map(
      (measure) => `${generated[measure].toFixed(3)} / ${yardstick[measure].toFixed(3)}`,
    ),
  ]);
  return [head, head.map(() => "---:"), ...body].map((cells) => `| ${cells.join(" | ")} |`).join("\n") + "\n";
}

function shown(spread: Spread): string {
  return spread.std > 0 ? `${spread.mean.toFixed(1)} ± ${spread.std.toFixed(1)}` : spread.mean.toFixed(1);
}
