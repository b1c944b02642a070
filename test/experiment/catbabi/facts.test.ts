/** A run that is told which statements answers follow from: what it learns, that it resumes, and where it is refused. */
import { expect, test } from "vitest";
import type { CatbabiSettings } from "../../../src/experiment/catbabi/settings.ts";
import { lstmDefaults } from "../../../src/model/lstmModel.ts";
import { expectResumable, openTiny, prepareTiny, tinySettings } from "./tinySession.ts";

/** Generated stories of induction in windows that hold one, and facts of some weight. */
function told(factCoef: number, mode: "qa" | "lm" = "qa"): CatbabiSettings {
  const settings = tinySettings({ source: "generated", tasks: "16", sampling: { name: "fixed" }, mode });
  return { ...settings, training: { ...settings.training, batch: 2, window: 60, evalBatch: 64, factCoef } };
}

interface Logged {
  readonly means: Readonly<Record<string, number>>;
}

test("reads come nearer to the facts, which they do not by themselves", async () => {
  const last = async (factCoef: number): Promise<Record<string, number>> => {
    const settings = told(factCoef);
    const optimizer = { ...settings.training.optimizer, learningRate: 1e-2 };
    const session = await openTiny({ ...settings, training: { ...settings.training, optimizer } });
    const seen: number[] = [];
    for (let step = 0; step < 100; step++) {
      const { means } = (await session.step(step)) as unknown as Logged;
      if (means.factLoss !== undefined) seen.push(means.factLoss);
    }
    await session.release();
    const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
    return { count: seen.length, first: mean(seen.slice(0, 10)), last: mean(seen.slice(-10)) };
  };
  const [weighty, weightless] = [await last(1), await last(1e-9)];
  expect(weighty.count).toBe(100);
  expect(weighty.last).toBeLessThan(0.8 * weighty.first!);
  expect(weightless.last).toBeGreaterThan(1.2 * weighty.last!);
  expect((await last(0)).count).toBe(0);
});

test("where every word is learned, the first step is as far from the facts as where answers alone are", async () => {
  const first = async (mode: "qa" | "lm"): Promise<Readonly<Record<string, number>>> => {
    const session = await openTiny(told(1, mode));
    const { means } = (await session.step(0)) as unknown as Logged;
    await session.release();
    return means;
  };
  const [qa, lm] = [await first("qa"), await first("lm")];
  expect(lm.factLoss).toBeCloseTo(qa.factLoss!, 5);
  expect(lm.loss).not.toBe(qa.loss);
});

test.each(["qa", "lm"] as const)("%s: a stopped run goes on bit for bit", async (mode) => {
  const log = await expectResumable(() => openTiny(told(0.5, mode)), { stops: [2], steps: 4 });
  expect((log[0] as Logged).means.factLoss).toBeGreaterThan(0);
});

test("facts may end with the curriculum", async () => {
  const { task, ...settings } = told(1);
  const stage = {
    source: "generated",
    tasks: "16",
    difficulty: task.difficulty,
    until: 1,
    steps: 2,
  } as const;
  const training = { ...settings.training, factsUntil: "curriculum" as const };
  const open = (curriculum: CatbabiSettings["task"]["curriculum"]) =>
    openTiny({ ...settings, task: { ...task, curriculum }, training });
  const log = await expectResumable(() => open([stage]), { stops: [1, 3], steps: 4 });
  // One line a step, and none for the validation between them.
  const steps = (log as Partial<Logged>[]).filter(({ means }) => means !== undefined);
  expect(steps.map(({ means }) => means?.factLoss !== undefined)).toEqual([true, true, false, false]);
  await expect(open([])).rejects.toThrow(
    "training.factCoef: stories of this curriculum do not say what their answers follow from, generated ones do",
  );
});

test("facts are refused where nobody can be told them, or nobody knows them", async () => {
  const settings = told(1);
  const withTask = (task: Partial<CatbabiSettings["task"]>): CatbabiSettings => ({
    ...settings,
    task: { ...settings.task, ...task },
  });
  const real = { source: "real", data: await prepareTiny() } as const;
  await expect(openTiny(withTask(real))).rejects.toThrow(
    "training.factCoef: prepared stories do not say what their answers follow from, generated ones do",
  );
  await expect(openTiny({ ...settings, system: lstmDefaults })).rejects.toThrow(
    "training.factCoef: only the reads of a memory (fwm) can be told what to find, not lstm",
  );
});
