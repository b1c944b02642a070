/** A small catbAbI session on a few real stories, for tests of what a run reads and of resuming it. */
import { join } from "node:path";
import { expect } from "vitest";
import { prepareCatbabi } from "../../../src/data/sources/prepare.ts";
import { writePrepared } from "../../../src/data/sources/prepared.ts";
import { openCatbabi } from "../../../src/experiment/catbabi/session.ts";
import {
  type CatbabiSettings,
  catbabiSystem,
  catbabiTask,
  releasedTraining,
} from "../../../src/experiment/catbabi/settings.ts";
import type { Session } from "../../../src/experiment/kind.ts";
import { emptyFolder, tinyFolder } from "../../data/support/tiny.ts";

/** Prepares the stories of tasks 1 and 15 that the tests have, after `change`; the folder. */
export async function prepareTiny(change?: Parameters<typeof tinyFolder>[0]): Promise<string> {
  const data = join(emptyFolder(), "prepared");
  const choice = { variant: "10k", tasks: [1, 15], keepLastStory: true, allowMissing: true } as const;
  const { provenance, splits } = await prepareCatbabi({
    ...choice,
    from: tinyFolder(change),
    downloads: "unused",
  });
  await writePrepared(data, provenance, splits);
  return data;
}

/** Settings of a session that takes milliseconds a step; its shares follow the validation error. */
export function tinySettings(task: Partial<CatbabiSettings["task"]>): CatbabiSettings {
  return {
    task: { ...catbabiTask, sampling: { name: "byError", of: "validation", floor: 0.1 }, ...task },
    system: { ...catbabiSystem, embedding: 8, hidden: 8, memory: 4 },
    training: { ...releasedTraining, batch: 3, window: 12, evalBatch: 2 },
  };
}

/** Opens it. */
export function openTiny(settings: CatbabiSettings): Promise<Session> {
  return openCatbabi(settings, { env: {}, threads: 1 });
}

/** Steps `from` to `to`, with a validation after every third one up to `last`; what was measured. */
export async function advance(session: Session, from: number, to: number, last = to): Promise<unknown[]> {
  const log: unknown[] = [];
  for (let step = from; step < to; step++) {
    const { means, latest } = await session.step(step);
    log.push({ means, latest });
    if ((step + 1) % 3 === 0 && step < last) log.push(await session.evaluate(new AbortController().signal));
  }
  return log;
}

/** Expects a session that is stopped after some steps, and resumed, to equal one that never stopped; the log of that one. */
export async function expectResumable(
  open: () => Promise<Session>,
  { stops, steps }: { readonly stops: readonly number[]; readonly steps: number },
): Promise<unknown[]> {
  const whole = await open();
  const log = await advance(whole, 0, steps);
  const end = whole.snapshot();
  await whole.release();
  for (const stop of stops) {
    const first = await open();
    const begin = await advance(first, 0, stop);
    const { model, optimizer, state } = first.snapshot();
    await first.release();
    const second = await open();
    const json: unknown = JSON.parse(JSON.stringify(state));
    await second.restore({ path: "checkpoint", model, optimizer, state: json });
    expect([...begin, ...(await advance(second, stop, steps))]).toEqual(log);
    expect(second.snapshot()).toEqual(end);
    await second.release();
  }
  return log;
}
