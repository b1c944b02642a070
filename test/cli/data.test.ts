/**
 * `fwm data`, run as a user runs it: what is on which stream, and the exit codes of bad input.
 */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  archiveFile,
  emptyFolder,
  hasRealData,
  realData,
  tinyFolder,
  tinyMembers,
} from "../data/support/tiny.ts";
import { run } from "./support.ts";

interface Stats {
  splits: Record<string, { stories: number; questions: number; tokens: number }>;
  vocabulary: number;
  missing: string[];
}

describe("fwm data prepare", () => {
  test("writes where it is told, and says what the data lacks", async () => {
    const out = join(emptyFolder(), "prepared");
    const argv = ["data", "prepare", "catbabi", "--from", tinyFolder(), "--tasks", "1,15", "--out", out];
    const refused = await run(argv);
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain("qa1_train.txt (partial: qa1_train.txt has 2 of 1799 stories)");
    expect(refused.stderr).toContain("--allow-missing");
    expect(existsSync(out)).toBe(false);
    const { code, stdout, stderr } = await run([...argv, "--allow-missing"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`written to ${out}`);
    expect(stderr).toContain("warning: missing task files: qa1_train.txt");
    const stats = await run(["data", "stats", "catbabi", "--data", out, "--json"]);
    const { splits, vocabulary, missing } = JSON.parse(stats.stdout) as Stats;
    expect(splits.train).toMatchObject({ stories: 4, questions: 6 });
    expect(vocabulary).toBe(200);
    expect(missing).toContain("qa15_test.txt");
    expect((await run(["data", "stats", "catbabi", "--data", out])).stdout).toContain("vocabulary 200");
  });

  test("goes to FWM_DATA by the choice's own name", async () => {
    const root = emptyFolder();
    const argv = [
      "data",
      "prepare",
      "catbabi",
      "--from",
      tinyFolder(),
      "--allow-missing",
      "--variant",
      "1k",
      "--tasks",
      "15",
    ];
    expect((await run([...argv, "--keep-last-story"], { env: { FWM_DATA: root } })).code).toBe(0);
    expect(readdirSync(root)).toEqual(["catbabi-1k-tasks-15-keep-last"]);
  });

  test.each<[number, string, () => string[]]>([
    [3, "no such file or folder", () => ["--from", "/no/such/place"]],
    [
      3,
      "not a whole .tar.gz",
      () => {
        const path = join(emptyFolder(), "x.tar.gz");
        writeFileSync(path, "not an archive");
        return ["--from", path];
      },
    ],
    [3, "no task files of en-valid-10k/", () => ["--from", archiveFile(tinyMembers("x/en-valid"))]],
    [
      3,
      "qa1_valid.txt:3: not a bAbI line",
      () => [
        "--from",
        tinyFolder((files) =>
          files.set("qa1_valid.txt", "1 Mary moved to the garden.\n2 Where is Mary? \tgarden\t1\noops\n"),
        ),
      ],
    ],
    [2, "the folder exists and holds something else", () => ["--from", tinyFolder(), "--out", tinyFolder()]],
    [2, "--tasks: expected tasks from 1 to 20", () => ["--tasks", "0"]],
    [2, "did you mean", () => ["--alow-missing"]],
  ])("exits %i: %s", async (code, message, more) => {
    const ended = await run(["data", "prepare", "catbabi", ...more()], { env: { FWM_DATA: emptyFolder() } });
    expect(ended.stderr).toContain(message);
    expect([ended.code, ended.stdout]).toEqual([code, ""]);
  });
});

describe("fwm data stats", () => {
  test("without prepared data says what to run", async () => {
    const { code, stderr } = await run(["data", "stats", "catbabi"], { env: { FWM_DATA: emptyFolder() } });
    expect(code).toBe(3);
    expect(stderr).toContain("fwm data prepare catbabi");
  });
});

describe("fwm data solve", () => {
  test("answers every question of the files, the last story's too", async () => {
    const folder = join(tinyFolder(), "en-valid-10k");
    const { code, stdout } = await run(["data", "solve", folder, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      questions: 18,
      correct: 18,
      perTask: { 1: { questions: 12, correct: 12 }, 15: { questions: 6, correct: 6 } },
      exceptions: [],
    });
    expect((await run(["data", "solve", folder, "--split", "train", "--tasks", "1"])).stdout).toMatch(
      /all +6 +6 +100\.00%/,
    );
  });

  test("lists what it answers differently, with the place", async () => {
    const folder = tinyFolder((files) =>
      files.set("qa1_test.txt", "1 Mary moved to the garden.\n2 Where is Mary? \toffice\t1\n"),
    );
    const { stdout } = await run(["data", "solve", folder, "--split", "test", "--tasks", "1"]);
    expect(stdout).toContain("qa1_test.txt:2: where is mary? file: office, reader: garden");
  });

  test("of files that are not there is an error", async () => {
    const { code, stderr } = await run(["data", "solve", tinyFolder(), "--tasks", "7"]);
    expect([code, stderr.includes("no questions in valid and test")]).toEqual([3, true]);
  });
});

describe.skipIf(!hasRealData)("on the real 1k files", () => {
  test("prepare and stats need no options but the place", async () => {
    const env = { FWM_DATA: emptyFolder() };
    const prepared = await run(["data", "prepare", "catbabi", "--variant", "1k", "--from", realData], {
      env,
    });
    expect([prepared.code, prepared.stderr]).toEqual([0, ""]);
    const { stdout } = await run(["data", "stats", "catbabi", "--variant", "1k", "--json"], { env });
    const { splits, missing } = JSON.parse(stdout) as Stats;
    expect(splits.test).toMatchObject({ stories: 6247, questions: 19_910, tokens: 565_653 });
    expect(missing).toEqual([]);
  });
});
