/** How often each task is generated, decided by the wrong answers to its questions. */
import { trainingStories } from "../../babi/generator/generate.ts";
import type { Score } from "./score.ts";

/**
 * The share of each task among generated stories. With n tasks and e_t wrong answers per question of task t,
 *
 *   q_t = floor / n + (1 - floor) · e_t / Σ e        its part of the questions
 *   share_t ∝ q_t · s_t                              its part of the stories
 *
 * where s_t are the stories of the task in the training set, which has about as many questions of every task: with equal
 * errors the shares are the training set's. A task that was not asked about has the mean error of the others.
 */
export function sharesByError(
  { floor }: { readonly floor: number },
  tasks: readonly number[],
  perTask: Score["perTask"],
): Record<number, number> {
  const known = tasks.flatMap((task) => (perTask[task] ? [1 - perTask[task].accuracy] : []));
  const mean = known.reduce((sum, error) => sum + error, 0) / Math.max(1, known.length);
  const errors = tasks.map((task) => (perTask[task] ? 1 - perTask[task].accuracy : mean));
  const total = errors.reduce((sum, error) => sum + error, 0);
  const stories = tasks.map((task, i) => {
    const part = total > 0 ? errors[i]! / total : 1 / tasks.length;
    return (floor / tasks.length + (1 - floor) * part) * trainingStories[task]!;
  });
  const all = stories.reduce((sum, weight) => sum + weight, 0);
  return Object.fromEntries(tasks.map((task, i) => [task, stories[i]! / all]));
}
