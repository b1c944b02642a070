/** `fwm eval` on a run of a few steps: the numbers of training again, other starts, and folders that do not fit. */
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { loadCheckpoint, saveCheckpoint } from "../../src/store/checkpoint.ts";
import { readMetrics } from "../../src/store/metrics.ts";
import { loadModelFolder, saveModelFolder } from "../../src/store/modelFolder.ts";
import { emptyFolder, tinyFolder } from "../data/support/tiny.ts";
import { trainSmall } from "../inference/trained.ts";
import { run } from "./support.ts";

let folder: string;
let trained: string;
let model: string;

beforeAll(async () => {
  folder = emptyFolder();
  trained = await trainSmall(folder);
  const { config, model: weights, files } = await loadModelFolder(trained);
  model = await saveModelFolder(join(folder, "model"), {
    config,
    model: weights,
    files: { "vocab.json": files["vocab.json"]! },
  });
});

interface Scored {
  accuracy: number;
  perplexity: number;
  questions: number;
  perTask: Record<string, { accuracy: number; questions: number; correct: number }>;
  [key: string]: unknown;
}

async function evaluate(...argv: string[]): Promise<Scored> {
  const { code, stdout, stderr } = await run(["eval", ...argv, "--threads", "1", "--json"]);
  expect(stderr).not.toContain("error:");
  expect(code).toBe(0);
  return JSON.parse(stdout) as Scored;
}

describe("a run", () => {
  test("gives the validation that training gave, from the same state", async () => {
    const valid = (await readMetrics(trained)).find(({ split }) => split === "valid")!;
    const scored = await evaluate(trained, "--split", "valid", "--batch", "16");
    expect(scored.accuracy).toBe(valid.values.accuracy);
    expect(scored.perplexity).toBe(valid.values.perplexity);
    expect(scored.perTask["15"]!.accuracy).toBe(valid.values.task15);
    expect(scored).toMatchObject({
      model: join(trained, "checkpoint-4"),
      experiment: "catbabi-qa-fwm",
      mode: "qa",
      step: 4,
      split: "valid",
      batch: 16,
      window: 50,
      state: "train",
      generated: true,
    });
    expect(String(scored.notes)).toContain("stories are generated");
  });

  test("counts every question once, however the split is dealt out", async () => {
    const [few, many] = [
      await evaluate(trained, "--split", "test", "--batch", "7"),
      await evaluate(trained, "--split", "test", "--batch", "64", "--state", "zero"),
    ];
    expect(few).toMatchObject({ split: "test", batch: 7, state: "train" });
    expect(many).toMatchObject({ batch: 64, state: "zero" });
    expect(many.questions).toBe(few.questions);
    for (const { perTask, questions, accuracy } of [few, many]) {
      const tallies = Object.values(perTask);
      expect(tallies.reduce((sum, tally) => sum + tally.questions, 0)).toBe(questions);
      expect(tallies.reduce((sum, tally) => sum + tally.correct, 0) / questions).toBeCloseTo(accuracy, 12);
    }
  });

  test("is shown by task, and generated stories stand beside no number of the paper's", async () => {
    const { code, stdout, stderr } = await run(["eval", trained, "--batch", "16", "--state", "zero"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/checkpoint-4, after 4 steps\nvalid, 16 streams, starting from zeros/);
    expect(stdout).toMatch(/task 15 +[\d,]+ +[\d,]+ +\d+\.\d\d%\nall +[\d,]+ +[\d,]+ +\d+\.\d\d%/);
    expect(stdout).not.toContain("paper");
    expect(stderr).toContain("note: stories are generated");
    expect(stderr).toContain("(100%) windows");
  });
});

describe("prepared data", () => {
  test("is used when it is named, beside the paper's number", async () => {
    const env = { FWM_DATA: join(folder, "data") };
    const prepare = ["data", "prepare", "catbabi", "--from", tinyFolder(), "--allow-missing"];
    expect((await run(prepare, { env })).code).toBe(0);
    const named = await run([
      "eval",
      trained,
      "--split",
      "test",
      "--data",
      join(env.FWM_DATA, "catbabi-10k"),
    ]);
    expect(named.code).toBe(0);
    expect(named.stdout).toContain("test, one stream, starting from the training state of row 0");
    expect(named.stdout).toMatch(/all +6 /);
    expect(named.stdout).toMatch(/paper \(test\) +19,910 +96\.75%/);
    expect(named.stderr).toContain("qa2_test.txt is missing");
    // A model folder says what it was trained on: generated stories, unless others are named.
    const own = await run(["eval", model, "--split", "test", "--batch", "64", "--json"], { env });
    expect(JSON.parse(own.stdout)).toMatchObject({ state: "zero", generated: true, paper: null });
    const data = join(env.FWM_DATA, "catbabi-10k");
    const scored = await run(["eval", model, "--split", "test", "--data", data, "--json"], { env });
    expect(JSON.parse(scored.stdout)).toMatchObject({
      ...{ questions: 6, state: "zero", generated: false },
      paper: { accuracy: 0.9675, perplexity: 1.36 },
    });
  });

  test("that is not there is bad data, with the command that makes it", async () => {
    const { code, stderr } = await run(["eval", model, "--data", emptyFolder()]);
    expect(code).toBe(3);
    expect(stderr).toContain("fwm data prepare catbabi");
  });
});

describe("a state to begin in", () => {
  test("is row 0 of what training carried", async () => {
    // With all other rows zeroed the score must stay; with row 0 zeroed it must be that of zeros.
    const { step, config, model: weights, state, optimizer } = await loadCheckpoint(trained);
    const changed = (keep: (row: number) => boolean) =>
      Object.fromEntries(
        Object.entries(optimizer).map(([name, tensor]) => {
          if (!name.startsWith("train.")) return [name, tensor];
          const size = tensor.data.length / tensor.shape[0]!;
          const data = Float32Array.from(tensor.data as Float32Array, (x, i) =>
            keep(Math.floor(i / size)) ? x : 0,
          );
          return [name, { ...tensor, data }];
        }),
      ) as typeof optimizer;
    const save = (name: string, tensors: typeof optimizer) => {
      cpSync(join(trained, "run.json"), join(folder, name, "run.json"), { recursive: true });
      return saveCheckpoint(join(folder, name), { step, config, model: weights, state, optimizer: tensors });
    };
    await save(
      "first",
      changed((row) => row === 0),
    );
    await save(
      "others",
      changed((row) => row !== 0),
    );
    const argv = ["--split", "test", "--batch", "64"];
    const scores = await Promise.all(
      [
        [trained, ...argv],
        [join(folder, "first"), ...argv],
        [join(folder, "others"), ...argv],
        [trained, ...argv, "--state", "zero"],
      ].map((line) => evaluate(...line)),
    );
    const [own, first, others, zero] = scores.map(({ perplexity }) => perplexity);
    expect(first).toBe(own);
    expect(others).toBe(zero);
    expect(zero).not.toBe(own);
  });

  test("is not in a model folder", async () => {
    const { code, stderr } = await run(["eval", model, "--state", "train"]);
    expect(code).toBe(2);
    expect(stderr).toContain("the training state is not here");
  });

  test("that does not fit the model is bad data", async () => {
    const { step, config, model: weights, state, optimizer } = await loadCheckpoint(trained);
    const { "train.F": _, ...without } = optimizer;
    cpSync(join(trained, "run.json"), join(folder, "cut", "run.json"), { recursive: true });
    await saveCheckpoint(join(folder, "cut"), { step, config, model: weights, state, optimizer: without });
    const { code, stderr } = await run(["eval", join(folder, "cut")]);
    expect(code).toBe(3);
    expect(stderr).toContain("no state train.F that fits");
  });
});

test("a folder without a model is bad data, and one of an unknown experiment has no published number", async () => {
  const nothing = await run(["eval", emptyFolder()]);
  expect([nothing.code, nothing.stderr.includes("no model here")]).toEqual([3, true]);
  const { config, model: weights } = await loadModelFolder(trained);
  const path = join(folder, "foreign");
  rmSync(path, { recursive: true, force: true });
  await saveModelFolder(path, { config: { ...config, experiment: "elsewhere" }, model: weights });
  const foreign = await run(["eval", path, "--batch", "64", "--json"]);
  expect(JSON.parse(foreign.stdout)).toMatchObject({ experiment: "elsewhere", paper: null });
});
