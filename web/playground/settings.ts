/** A visitor's choices as the settings of an experiment, and back. */
import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import {
  type CatbabiSettings,
  catbabiSchema,
  catbabiSystem,
  catbabiTask,
  releasedTraining,
} from "../../src/experiment/catbabi/settings.ts";
import { lstmDefaults } from "../../src/model/lstmModel.ts";
import { type Choices, choicesFrom, defaultChoices, type SystemName } from "./choices.ts";

/** The settings of a system: those that `config.json` of a saved model has. */
export function settingsOf(choices: Choices, system: SystemName): CatbabiSettings {
  const { tasks, hidden, memory, reads, batch, window, steps, rate, seed } = choices;
  const sizes = { vocabulary: catbabiVocabulary.size, embedding: hidden, hidden };
  return catbabiSchema.parse({
    task: { ...catbabiTask, source: "generated", tasks },
    system:
      system === "fwm"
        ? { ...catbabiSystem, ...sizes, memory, reads, chunk: Math.min(catbabiSystem.chunk, window) }
        : { ...lstmDefaults, ...sizes },
    training: {
      ...releasedTraining,
      seed,
      batch,
      window,
      steps,
      optimizer: { ...releasedTraining.optimizer, learningRate: rate },
      schedule: {
        name: "cosine",
        warmup: Math.min(50, Math.floor(steps / 10)),
        decayStart: 0,
        finalLrRatio: 0.02,
      },
      clip: 1,
      evalBatch: 32,
    },
  });
}

/** The choices that a saved model's settings stand for; undefined if it cannot be trained here. */
export function choicesOf({ task, system, training }: CatbabiSettings): Choices | undefined {
  if (system.name !== "fwm" || system.embedding !== system.hidden) return undefined;
  const { batch, window, steps, optimizer, seed } = training;
  const choices = choicesFrom({
    tasks: task.tasks,
    hidden: system.hidden,
    memory: system.memory,
    reads: system.reads,
    batch: Math.min(batch, defaultChoices.batch),
    window,
    steps,
    rate: "learningRate" in optimizer ? optimizer.learningRate : undefined,
    seed,
    lstm: false,
  });
  // Another variant, or a size that is not allowed here, would be other equations under the same weights.
  const { chunk: _, ...built } = settingsOf(choices, "fwm").system as typeof system;
  const { chunk: __, ...saved } = system;
  return JSON.stringify(built) === JSON.stringify(saved) ? choices : undefined;
}
