/**
 * Maps: which place lies in which direction of which, and the way from one to another (tasks 4 and 19).
 */
import { directions } from "../lexicon.ts";
import type { Answer } from "./answer.ts";
import { NotUnderstood } from "./phrases.ts";

interface Step {
  readonly direction: string;
  readonly to: string;
  readonly id: number;
}

interface Arrival {
  readonly steps: readonly Step[];
  /** In how many ways one can get here in as few steps. */
  readonly ways: number;
}

/** Places as nodes, and the stated neighbourhoods as steps both ways. */
export class PlaceMap {
  private readonly steps = new Map<string, Step[]>();

  /** `place` lies `direction` of `from`. */
  connect(place: string, direction: string, from: string, id: number): void {
    if (place === from) throw new NotUnderstood(`the ${place} cannot lie ${direction} of itself`);
    this.step(from, direction, place, id);
    this.step(place, directions[direction]!.opposite, from, id);
  }

  private step(from: string, direction: string, to: string, id: number): void {
    const steps = this.steps.get(from) ?? [];
    const before = steps.find((step) => step.direction === direction || step.to === to);
    if (before === undefined) this.steps.set(from, [...steps, { direction, to, id }]);
    else if (before.direction !== direction || before.to !== to) {
      throw new NotUnderstood(`the ${before.to} lies ${before.direction} of the ${from} already`);
    }
  }

  /** What is `direction` of `from`? */
  whatIs(direction: string, from: string): Answer {
    const step = this.steps.get(from)?.find((candidate) => candidate.direction === direction);
    if (step === undefined) throw new NotUnderstood(`the story names nothing ${direction} of the ${from}`);
    return { answer: step.to, supports: [step.id] };
  }

  /** The shortest way from `from` to `to`, as letters; there must be only one. */
  path(from: string, to: string): Answer {
    if (from === to) throw new NotUnderstood(`there is no way to go from the ${from} to itself`);
    const reached = new Map<string, Arrival>([[from, { steps: [], ways: 1 }]]);
    let front = [from];
    while (front.length > 0 && !reached.has(to)) {
      const next = new Map<string, Arrival>();
      for (const place of front) {
        const here = reached.get(place)!;
        for (const step of this.steps.get(place) ?? []) {
          if (reached.has(step.to)) continue;
          const other = next.get(step.to);
          next.set(step.to, {
            steps: other?.steps ?? [...here.steps, step],
            ways: here.ways + (other?.ways ?? 0),
          });
        }
      }
      for (const [place, arrival] of next) reached.set(place, arrival);
      front = [...next.keys()];
    }
    const end = reached.get(to);
    if (end === undefined) throw new NotUnderstood(`the story gives no way from the ${from} to the ${to}`);
    if (end.ways > 1)
      throw new NotUnderstood(`there are several shortest ways from the ${from} to the ${to}`);
    return {
      answer: end.steps.map((step) => directions[step.direction]!.letter).join(","),
      supports: end.steps.map((step) => step.id),
    };
  }
}
