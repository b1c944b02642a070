/**
 * `fwm data`, run as a user runs it: what is on which stream, and the exit codes of bad input.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { archiveFile, emptyFolder, tinyFolder, tinyMembers } from "../data/support/tiny.ts";
import { needsRealData, realData } from "../support/realData.ts";
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

describe("fwm data generate", () => {
  test("writes files that the reader solves and that prepare takes, the same for the same seed", async () => {
    const folders = [emptyFolder(), emptyFolder(), emptyFolder()];
    const write = (out: string, seed: string, split: string) =>
      run([
        "data",
        "generate",
        "--task",
        "1-20",
        "--stories",
        "6",
        "--seed",
        seed,
        "--split",
        split,
        "--out",
        out,
      ]);
    for (const split of ["train", "valid", "test"]) {
      for (const [i, folder] of folders.entries())
        expect((await write(folder, i < 2 ? "3" : "4", split)).code).toBe(0);
    }
    const [first, again, other] = folders as [string, string, string];
    const content = (folder: string, name: string) => readFileSync(join(folder, name), "utf8");
    expect(readdirSync(first).length).toBe(60);
    for (const name of readdirSync(first)) expect(content(again, name)).toBe(content(first, name));
    expect(content(other, "qa1_train.txt")).not.toBe(content(first, "qa1_train.txt"));
    expect(content(first, "qa1_test.txt")).not.toBe(content(first, "qa1_train.txt"));
    const { questions, correct } = JSON.parse(
      (await run(["data", "solve", first, "--json"])).stdout,
    ) as Record<string, number>;
    expect(questions).toBeGreaterThan(240);
    expect(correct).toBe(questions);
    const out = join(emptyFolder(), "prepared");
    const prepared = await run([
      "data",
      "prepare",
      "catbabi",
      "--from",
      first,
      "--allow-missing",
      "--out",
      out,
      "--json",
    ]);
    expect(JSON.parse(prepared.stdout)).toMatchObject({
      splits: { train: { stories: 100 }, test: { stories: 100 } },
    });
  });

  test("leaves files alone that are there, and needs its options", async () => {
    const out = emptyFolder();
    writeFileSync(join(out, "qa2_train.txt"), "mine");
    const argv = ["data", "generate", "--task", "1,2", "--stories", "2", "--out", out];
    const { code, stderr } = await run(argv);
    expect([code, stderr.includes("qa2_train.txt: the file exists")]).toEqual([2, true]);
    expect(readdirSync(out)).toEqual(["qa2_train.txt"]);
    expect((await run(["data", "generate", "--stories", "2"])).stderr).toContain("--out is missing");
    expect((await run(["data", "generate", "--out", out, "--stories", "0"])).code).toBe(2);
  });
});

describe("fwm data prepare --fill-missing generated", () => {
  test("completes training files to their official size, and stats says so", async () => {
    const out = join(emptyFolder(), "prepared");
    const from = tinyFolder();
    const argv = [
      "data",
      "prepare",
      "catbabi",
      "--from",
      from,
      "--tasks",
      "1,3",
      "--out",
      out,
      "--seed",
      "5",
    ];
    const { code, stderr } = await run([...argv, "--allow-missing", "--fill-missing", "generated"]);
    expect(code).toBe(0);
    expect(stderr).toContain("task 3 train: 1,799 stories are generated, not bAbI's own");
    const stats = JSON.parse(
      (await run(["data", "stats", "catbabi", "--data", out, "--json"])).stdout,
    ) as Stats & {
      filled: object[];
    };
    expect(stats.splits.train!.stories).toBe(2 * 1799);
    expect(stats.filled).toEqual([
      { task: 1, split: "train", stories: 1797, seed: 5 },
      { task: 3, split: "train", stories: 1799, seed: 5 },
    ]);
    expect(stats.missing).toContain("qa3_train.txt");
    // Valid and test are never filled.
    const refused = await run([...argv, "--fill-missing", "generated"]);
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain("qa3_valid.txt (missing)");
    expect(refused.stderr).not.toContain("qa3_train.txt");
  });
});

describe("on the real 10k files", needsRealData, () => {
  test("stats gives the paper's table exactly, and nothing is missing", async () => {
    const env = { FWM_DATA: emptyFolder() };
    const prepared = await run(["data", "prepare", "catbabi", "--from", realData], { env });
    expect([prepared.code, prepared.stderr]).toEqual([0, ""]);
    const { stdout } = await run(["data", "stats", "catbabi", "--json"], { env });
    expect(JSON.parse(stdout)).toMatchObject({
      missing: [],
      partial: [],
      filled: [],
      unverified: [],
      splits: {
        train: {
          stories: 56_376,
          questions: 179_909,
          tokens: 5_136_706,
          paper: { stories: 56_376, questions: 179_909 },
        },
        valid: {
          stories: 6_245,
          questions: 19_907,
          tokens: 570_894,
          paper: { stories: 6_245, questions: 19_907 },
        },
        test: {
          stories: 6_247,
          questions: 19_910,
          tokens: 565_653,
          paper: { stories: 6_247, questions: 19_910 },
        },
      },
    });
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

describe("on the real 1k files", needsRealData, () => {
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
