/** The quickstart: a small memory and an LSTM of the same width learn the same new stories, minutes apart. */
import { existsSync } from "node:fs";
import type { Story } from "../babi/format.ts";
import { storyTokens } from "../babi/format.ts";
import { generateStory } from "../babi/generator/generate.ts";
import { loadModel } from "../inference/load.ts";
import type { Reply } from "../inference/stream.ts";
import type { Score } from "./catbabi/score.ts";
import type { CatbabiExperiment, CatbabiSettings } from "./catbabi/settings.ts";
import type { BaseEvaluation } from "./kind.ts";
import { evaluateSaved } from "./savedModel.ts";
import { type RunContext, trainRun } from "./trainRun.ts";

/** What became of one system. */
export interface QuickstartRun {
  readonly name: string;
  readonly folder: string;
  readonly seconds: number;
  readonly steps: number;
  /** Accuracy on held-out stories while it trained. */
  readonly curve: readonly { readonly x: number; readonly y: number }[];
  /** Score of the best checkpoint on other held-out stories. */
  readonly score: Score;
}

/** A question that takes two facts chained, what a memory answered, and how. */
export interface QuickstartAnswer {
  readonly story: readonly string[];
  readonly question: string;
  readonly answer: string;
  readonly reply: Reply;
}

/** Trains one system in the first free folder `<base>`, `<base>-2`, … */
export async function quickstartRun(
  name: string,
  { settings }: CatbabiExperiment,
  base: string,
  context: RunContext,
): Promise<QuickstartRun | undefined> {
  const folder = freeFolder(base);
  const curve = [{ x: 0, y: 0 }];
  const start = performance.now();
  const end = await trainRun(
    { action: "start", experiment: name, settings, folder },
    {
      ...context,
      callbacks: {
        ...context.callbacks,
        onEvaluation(step, values, best) {
          curve.push({ x: step, y: values.accuracy! });
          context.callbacks?.onEvaluation?.(step, values, best);
        },
      },
    },
  );
  if (end.reason === "interrupted") return undefined;
  const seconds = (performance.now() - start) / 1000;
  const { evaluation } = await evaluateSaved(folder, { split: "test", batch: 32 }, { env: context.env });
  const score = evaluation as BaseEvaluation & Score;
  return { name, folder, seconds, steps: end.step, curve, score };
}

function freeFolder(base: string): string {
  for (let n = 1; ; n++) {
    const folder = n === 1 ? base : `${base}-${n}`;
    if (!existsSync(folder)) return folder;
  }
}

/** Looks among new stories for a chained question that the model answers correctly, the surest one first. */
export async function findChainedAnswer(
  folder: string,
  { training }: CatbabiSettings,
  task: number,
): Promise<QuickstartAnswer | undefined> {
  const model = await loadModel(folder);
  try {
    let best: (QuickstartAnswer & { probability: number }) | undefined;
    for (let index = 0; index < 12; index++) {
      const story = generateStory({ task, seed: training.seed + 3e6, index });
      const stream = model.stream();
      const opening = upToFirstQuestion(story);
      if (!opening) continue;
      await stream.newStory();
      await stream.read(opening.before);
      const reply = await stream.ask(opening.question);
      const [first] = reply.answers;
      if (first?.word !== opening.answer || first.probability <= (best?.probability ?? 0)) continue;
      best = {
        story: opening.sentences,
        question: opening.question.join(" "),
        answer: opening.answer,
        reply,
        probability: first.probability,
      };
    }
    return best;
  } finally {
    await model.release();
  }
}

/** The paper's example of associative inference, asked of a model of all twenty tasks. */
export async function askOfWolves(folder: string): Promise<QuickstartAnswer> {
  const story = [
    "mice are afraid of wolves",
    "gertrude is a mouse",
    "cats are afraid of sheep",
    "winona is a sheep",
  ];
  const question = "what is gertrude afraid of ?";
  const model = await loadModel(folder);
  try {
    const stream = model.stream();
    for (const sentence of story) await stream.read(`${sentence} .`);
    const reply = await stream.ask(question);
    return {
      story: story.map((sentence) => `${sentence}.`),
      question,
      answer: reply.answers[0]!.word,
      reply,
    };
  } finally {
    await model.release();
  }
}

function upToFirstQuestion(story: Story) {
  const at = story.lines.findIndex(({ kind }) => kind === "question");
  const line = story.lines[at];
  if (line?.kind !== "question") return undefined;
  const before = { ...story, lines: story.lines.slice(0, at) };
  return {
    before: storyTokens(before).tokens,
    sentences: before.lines.map(({ words }) => `${words.join(" ")}.`),
    question: [...line.words, "?"],
    answer: line.answer,
  };
}
