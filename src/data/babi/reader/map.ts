/**
 * Maps: which place lies in which direction of which, and the way from one to another (tasks 4 and 19).
 */
import { directions } from "../lexicon.ts";
import type { Answer } from "./answer.ts";
import { NotUnderstood } from "./grammar.ts";

interface Step {
  readonly direction: string;
  readonly to: string;
  readonly id: number;
}

/** Places as nodes, and the stated neighbourhoods as steps both ways. */
export class PlaceMap {
  private readonly steps = new Map<string, Step[]>();

  /** `place` lies `direction` of `from`. */
  connect(place: string, direction: string, from: string, id: number): void {
    this.step(from, direction, place, id);
    this.step(place, directions[direction]!.opposite, from, id);
  }

  private step(from: string, direction: string, to: string, id: number): void {
    const steps = this.steps.get(from) ?? [];
    if (steps.some((step) => step.direction === direction && step.to !== to)) {
      throw new NotUnderstood(`something else already lies ${direction} of the ${from}`);
    }
    this.steps.set(from, [...steps, { direction, to, id }]);
  }

  /** What is `direction` of `from`? */
  whatIs(direction: string, from: string): Answer {
    const step = this.steps.get(from)?.find((candidate) => candidate.direction === direction);
    if (step === undefined) throw new NotUnderstood(`the story names nothing ${direction} of the ${from}`);
    return { answer: step.to, supports: [step.id] };
  }

  /** The shortest way from `from` to `to`, as letters. */
  path(from: string, to: string): Answer {
    if (from === to) throw new NotUnderstood(`there is no way to go from the ${from} to itself`);
    const cameBy = new Map<string, { before: string; step: Step }>();
    let front = [from];
    while (front.length > 0 && !front.includes(to)) {
      const next: string[] = [];
      for (const place of front) {
        for (const step of this.steps.get(place) ?? []) {
          if (step.to === from || front.includes(step.to)) continue;
          const known = cameBy.get(step.to);
          if (known === undefined) {
            cameBy.set(step.to, { before: place, step });
            next.push(step.to);
          } else if (step.to === to && next.includes(to)) {
            throw new NotUnderstood(`there are two shortest ways from the ${from} to the ${to}`);
          }
        }
      }
      front = next;
    }
    const steps: Step[] = [];
    for (let place = to; place !== from; ) {
      const way = cameBy.get(place);
      if (way === undefined) throw new NotUnderstood(`the story gives no way from the ${from} to the ${to}`);
      steps.unshift(way.step);
      place = way.before;
    }
    return {
      answer: steps.map((step) => directions[step.direction]!.letter).join(","),
      supports: steps.map((step) => step.id),
    };
  }
}
