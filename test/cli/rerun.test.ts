/** `fwm rerun` as a sceptic uses it: a result file comes to the same score, and what cannot is refused before anything is trained. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { kindNamed } from "../../src/experiment/registry.ts";
import { evaluationOf } from "../../src/experiment/rerun.ts";
import { readRun } from "../../src/store/runRecord.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { FakeProcess, run } from "./support.ts";

const results = join(import.meta.dirname, "../../results");

let folder: string;
let filed: string;

/** A file like the result, with something else in it. */
function changed(
  name: string,
  change: (content: Record<string, unknown>) => Record<string, unknown>,
): string {
  const path = join(folder, `${name}.json`);
  writeFileSync(path, JSON.stringify(change(contentOf(filed))));
  return path;
}

function contentOf(path: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
}

const again = (path: string, ...more: string[]) =>
  run(["rerun", path, "--runs", join(folder, "reruns"), "--out", join(folder, "again"), ...more]);

beforeAll(async () => {
  folder = emptyFolder();
  const trained = join(folder, "first");
  const train = ["train", "catbabi-qa-fwm", "--smoke", "--steps", "6", "--seed", "3", "--threads", "1"];
  expect((await run([...train, "--out", trained])).code).toBe(0);
  const report = [
    "report",
    trained,
    "--split",
    "valid",
    "--batch",
    "16",
    "--state",
    "zero",
    "--threads",
    "1",
  ];
  expect((await run([...report, "--checkpoint", "last", "--out", folder])).code).toBe(0);
  filed = join(folder, "first.json");
});

describe("a result of a run", () => {
  test("is trained from its file alone and comes to the same score, to the last digit", async () => {
    const { code, stdout, stderr } = await again(filed, "--json");
    expect(code, stderr).toBe(0);
    const path = join(folder, "again/first.json");
    const [row] = JSON.parse(stdout) as { identical: boolean; recorded: object; again: object }[];
    expect(row).toMatchObject({ name: "first", identical: true, path });
    const { score, settings, seed, experiment } = contentOf(path);
    expect([row!.again, settings, seed, experiment]).toEqual([
      score,
      contentOf(filed).settings,
      3,
      "catbabi-qa-fwm",
    ]);
    expect(score).toMatchObject({ split: "valid", batch: 16, state: "zero", step: 6 });
  });

  test("is not trained twice, and the scores are shown beside each other", async () => {
    const before = (await readRun(join(folder, "reruns/first"))).updated;
    const { code, stdout } = await again(filed);
    expect(code).toBe(0);
    expect(stdout).toMatch(/first\n {2}recorded {2}.*\n {2}again .*, equal to the last digit\n/);
    expect((await readRun(join(folder, "reruns/first"))).updated).toBe(before);
  });

  test("that was stopped with ^C goes on, to the same score", async () => {
    const other = changed("stopped", (content) => content);
    const signals = new FakeProcess();
    const at = join(folder, "reruns/stopped");
    const running = run(["rerun", other, "--runs", join(folder, "reruns"), "--out", join(folder, "again")], {
      signals,
    });
    while (!existsSync(join(at, "run.json"))) await setTimeout(2);
    signals.emit("SIGINT");
    const stopped = await running;
    expect([stopped.code, stopped.stderr]).toEqual([
      130,
      expect.stringContaining("goes on where it stopped"),
    ]);
    expect((await readRun(at)).state).not.toBe("finished");
    expect(existsSync(join(folder, "again/stopped.json"))).toBe(false);
    const { code, stdout } = await again(other, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject([{ identical: true }]);
  });

  test("does not go on with a run of other settings", async () => {
    const at = join(folder, "reruns/others");
    const train = ["train", "catbabi-qa-fwm", "--smoke", "--seed", "3", "--threads", "1", "--out", at];
    expect((await run([...train, "--steps", "6", "--set", "training.saveEvery=3"])).code).toBe(0);
    const refused = await again(changed("others", (content) => content));
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/is not one of this result\n.*training\.saveEvery/s);
  });

  test("with another score is not called equal", async () => {
    const path = changed("other-score", (content) => ({
      ...content,
      score: { ...(content.score as object), loss: 1.5 },
    }));
    const { code, stdout } = await again(path, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject([{ identical: false, recorded: { loss: 1.5 } }]);
  });

  test("is only shown with --dry-run", async () => {
    const { code, stdout } = await again(
      changed("planned", (content) => content),
      "--dry-run",
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^planned: fwm train catbabi-qa-fwm with its settings, seed 3\n {2}took .* for 6 steps/,
    );
    expect(existsSync(join(folder, "reruns/planned"))).toBe(false);
  });
});

describe("what cannot be trained again", () => {
  const otherVersion = /passed over: the result of another version/;
  test.each([
    [
      "weights of another run",
      { initFrom: "other after 10 steps" },
      2,
      /weights of other after 10 steps\n.*--init/,
    ],
    ["a setting that there is not", { settings: { task: { name: "catbabi", share: 1 } } }, 2, otherVersion],
    ["a kind that there is not", { settings: { task: { name: "chess" } } }, 2, otherVersion],
    ["no seed", { seed: undefined }, 3, /not a result that can be trained again\n.*seed/s],
  ])("%s", async (name, wrong, code, message) => {
    const path = changed(name.replaceAll(" ", "-"), (content) => ({ ...content, ...wrong }));
    const ended = await again(path);
    expect([ended.code, ended.stderr]).toEqual([code, expect.stringMatching(message)]);
    expect(existsSync(join(folder, "reruns", name.replaceAll(" ", "-")))).toBe(false);
  });

  test("data of its own, unless the folder is given", async () => {
    const path = changed("own-data", (content) => {
      const { task, ...settings } = content.settings as { task: object };
      return { ...content, settings: { ...settings, task: { ...task, data: "kinship" } } };
    });
    expect(await again(path)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/kinship\n.*--data/) as string,
    });
  });

  test("a file that is not there, or no JSON", async () => {
    expect(await again(join(folder, "none.json"))).toMatchObject({ code: 2 });
    const path = join(folder, "broken.json");
    writeFileSync(path, "{");
    expect(await again(path)).toMatchObject({ code: 3 });
    mkdirSync(join(folder, "a-folder.json"));
    expect((await again(join(folder, "a-folder.json"))).stderr).toContain("cannot read the result file");
  });

  test("results of sweeps and evaluations are passed over, and alone they are an error", async () => {
    const others = [join(results, "ablations.json"), join(results, "stretch-catbabi-qa.json")];
    const alone = await run(["rerun", ...others]);
    expect(alone.code).toBe(2);
    expect(alone.stderr).toMatch(/ablations\.json: passed over: the result of a sweep/);
    expect(alone.stderr).toMatch(/stretch-catbabi-qa\.json: passed over: the result of an evaluation/);
    const { code, stdout } = await run(["rerun", ...others, filed, "--dry-run", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject([{ name: "first", seed: 3, steps: 6 }]);
  });
});

test("of all results in the repository, this version plans those that it can train", async () => {
  const files = readdirSync(results).filter((name) => name.endsWith(".json"));
  const { code, stdout, stderr } = await run([
    ...["rerun", "--dry-run", "--json"],
    // Weights to begin with are needed by some of version 0.1's.
    ...files.map((name) => join(results, name)),
  ]);
  expect(code, stderr).toBe(0);
  const plans = JSON.parse(stdout) as { name: string }[];
  expect(plans.length + stderr.split("passed over").length - 1).toBe(files.length);
  expect(plans).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ name: "catbabi-qa-fwm-endless-seed1", steps: 11_000 }),
      expect.objectContaining({
        name: "metarl-fwm-lessons-seed3",
        evaluation: expect.objectContaining({ split: "test", episodes: 50 }) as object,
      }),
      expect.objectContaining({
        name: "ptb-lstm-small-seed1",
        evaluation: expect.objectContaining({ split: "test", window: 350 }) as object,
      }),
    ]),
  );
});

describe("how a result was evaluated", () => {
  const score = {
    ...{ model: "m", experiment: "ptb-lstm-small", step: 9, dataset: "ptb" },
    ...{ split: "valid", batch: 10, window: 350, temperature: 1.04, cache: { lambda: 0.1 }, dynamic: null },
  };

  test("stands in its command, numbers as numbers, folders not at all", () => {
    const reportedBy =
      "fwm report r --window 70 --temperature tune --checkpoint last --data /x --name n --dynamic 5e-5,2e-3";
    expect(evaluationOf(kindNamed("text", "test"), { reportedBy, score: null })).toEqual({
      checkpoint: "last",
      evaluation: { split: "test", window: 70, temperature: "tune", dynamic: "5e-5,2e-3" },
    });
    // What the command says is how the number was found, the score only what was found.
    expect(evaluationOf(kindNamed("text", "test"), { reportedBy, score }).evaluation).toMatchObject({
      ...{ window: 70, temperature: "tune", dynamic: "5e-5,2e-3" },
    });
  });

  test("stands in its score where the command leaves it open", () => {
    expect(evaluationOf(kindNamed("text", "test"), { reportedBy: "fwm report r", score })).toEqual({
      evaluation: { split: "valid", batch: 10, window: 350, temperature: 1.04 },
    });
  });
});
