/** Where training stands in a curriculum: stages of stories or lessons, each until they are learned. */
import { z } from "zod";

/** A stage of a curriculum, as far as its end goes. */
export interface Stage {
  /** The training accuracy at which it ends. */
  readonly until: number;
  /** Steps after which it ends in any case. */
  readonly steps: number;
}

/** Steps whose answers are counted together. */
const counted = 25;

const whole = z.int().min(0);

/** A place in a curriculum, as a checkpoint has it. */
export const placeSchema = z.strictObject({
  /** The stage, from 0; as many as there are once all are over. */
  stage: whole,
  /** Steps in it. */
  steps: whole,
  /** Answers since they were last looked at. */
  correct: whole,
  answers: whole,
});
type Place = z.infer<typeof placeSchema>;

const start: Place = { stage: 0, steps: 0, correct: 0, answers: 0 };

/** Goes from stage to stage as their questions are learned: by training answers alone, so a run repeats it. */
export class Curriculum {
  private place: Place;

  constructor(
    private readonly stages: readonly Stage[],
    place: Place = start,
  ) {
    this.place = place;
  }

  /** The number of the present stage; undefined once all are over. */
  get stage(): number | undefined {
    return this.place.stage < this.stages.length ? this.place.stage : undefined;
  }

  /** The place, for a checkpoint. */
  saved(): Place {
    return this.place;
  }

  /** Counts the answers of a step; true when the stage ends with it. */
  count(correct: number, answers: number): boolean {
    const { stage, ...before } = this.place;
    const current = this.stages[stage];
    if (!current) return false;
    const place = {
      stage,
      steps: before.steps + 1,
      correct: before.correct + correct,
      answers: before.answers + answers,
    };
    const isCounted = place.steps % counted === 0;
    const isLearned = isCounted && place.answers > 0 && place.correct >= current.until * place.answers;
    const ends = isLearned || place.steps >= current.steps;
    if (ends) this.place = { ...start, stage: stage + 1 };
    else this.place = isCounted ? { ...place, correct: 0, answers: 0 } : place;
    return ends;
  }
}
