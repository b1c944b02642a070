/**
 * The command line's conventions, on a small program of its own: values and where they come from, streams,
 * colours, messages with the nearest names, exit codes and signals.
 */
import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { describe, expect, expectTypeOf, test } from "vitest";
import { type CommandContext, command, group } from "../../src/cli/command.ts";
import { Output } from "../../src/cli/output.ts";
import { flag, integer, maybeText, number, oneOf, text, texts, threadCount } from "../../src/cli/params.ts";
import type { CommandLine } from "../../src/cli/program.ts";
import { shellLine } from "../../src/cli/shell.ts";
import { DataError } from "../../src/errors.ts";
import { FakeProcess, run, Written } from "./support.ts";

let seen: CommandContext<unknown, unknown>;

const show = command({
  name: "show",
  summary: "Show what was given.",
  examples: ["demo show fast"],
  args: { kind: oneOf(["fast", "slow"]), more: text({ default: "none" }) },
  options: {
    seed: integer({ default: 1, help: "the seed", env: "FWM_SEED", max: 99 }),
    rate: number({ help: "the rate" }),
    dryRun: flag({ help: "do nothing", env: "FWM_DRY_RUN" }),
    set: texts({ help: "settings" }),
    resume: maybeText({ help: "go on" }),
  },
  run(context) {
    expectTypeOf(context.args.kind).toEqualTypeOf<"fast" | "slow">();
    expectTypeOf(context.args.more).toEqualTypeOf<string>();
    expectTypeOf(context.options.seed).toEqualTypeOf<number>();
    expectTypeOf(context.options.rate).toEqualTypeOf<number | undefined>();
    expectTypeOf(context.options.set).toEqualTypeOf<readonly string[]>();
    expectTypeOf(context.options.resume).toEqualTypeOf<string | true | undefined>();
    seen = context;
    context.out.note("a note");
    context.out.detail("a detail");
    context.out.warn("a warning");
    context.out.result({ seed: context.options.seed }, context.out.color.green("the result"));
  },
});

const failing = (
  name: string,
  fail: (context: CommandContext<unknown, unknown>) => void | Promise<void>,
  graceful = false,
) => command({ name, summary: "Fail.", examples: [], graceful, run: fail });

const program: CommandLine = {
  name: "demo",
  summary: "A small program.",
  version: "1.2.3",
  commands: [
    show,
    group({
      name: "fail",
      summary: "Ways to fail.",
      commands: [
        failing("data", () => {
          throw new DataError("file.txt:3: bad", { hint: "mend it" });
        }),
        failing("bug", () => {
          throw new TypeError("oh no");
        }),
        failing("disk", () => {
          throw Object.assign(new Error("x"), { code: "ENOSPC", syscall: "write", path: "/full/file" });
        }),
        failing(
          "wait",
          ({ signal }) =>
            new Promise((_, reject) =>
              signal.addEventListener("abort", () => reject(signal.reason as Error)),
            ),
          true,
        ),
        failing(
          "save",
          ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
          true,
        ),
        failing("hard", () => new Promise((resolve) => setTimeout(resolve, 30))),
        command({
          name: "must",
          summary: "Need an option.",
          examples: [],
          options: { out: text({ required: true, help: "where" }) },
          run() {},
        }),
      ],
    }),
  ],
};

const demo = (argv: string, settings: Parameters<typeof run>[1] = {}) =>
  run(argv.split(" ").filter(Boolean), { program, ...settings });

describe("values", () => {
  test("come from the flag, else the environment, else the default", async () => {
    await demo("show fast");
    expect(seen.options).toEqual({ seed: 1, rate: undefined, dryRun: false, set: [], resume: undefined });
    expect(seen.origins.seed).toBe("default");
    await demo("show slow two", { env: { FWM_SEED: "7", FWM_DRY_RUN: "yes" } });
    expect(seen.args).toEqual({ kind: "slow", more: "two" });
    expect(seen.options).toMatchObject({ seed: 7, dryRun: true });
    expect(seen.origins).toMatchObject({ seed: "environment", dryRun: "environment", rate: "default" });
    await demo("show fast --seed 8 --rate 1e-3 --set a=1 --set b=2 --resume", { env: { FWM_SEED: "7" } });
    expect(seen.options).toMatchObject({ seed: 8, rate: 0.001, set: ["a=1", "b=2"], resume: true });
    expect(seen.origins.seed).toBe("flag");
    await demo("show fast --resume path");
    expect(seen.options).toMatchObject({ resume: "path" });
  });

  test.each([
    ["show fats", 'kind: there is no "fats"', "did you mean  fast"],
    ["show fast --seed x", '--seed: expected an integer from 0 to 99, got "x"', ""],
    ["show fast --seed 100", "--seed: expected an integer from 0 to 99", ""],
    ["show fast --seed 1.5", "--seed: expected an integer", ""],
    ["show fast --rate NaN", "--rate: expected a number", ""],
    ["show fast --sed 3", "demo show: there is no option --sed", "--seed"],
    ["show fast --dry-rum", "there is no option --dry-rum", "--dry-run"],
    ["show fast --jsn", "there is no option --jsn", "--json"],
    ["shwo fast", 'demo: there is no command "shwo"', "show"],
    ["fail dat", 'demo fail: there is no command "dat"', "data"],
    ["show", "demo show: missing required argument 'kind'", "demo show --help"],
    ["show fast a b", "demo show: too many arguments", ""],
    ["show fast --seed", "demo show: option '--seed <integer>' argument missing", ""],
    ["fail must", "--out is missing", "give --out <text>"],
  ])(
    "`demo %s` is a misuse: one message, exit 2, nothing on standard output",
    async (argv, message, more) => {
      const { code, stdout, stderr } = await demo(argv);
      expect(code).toBe(2);
      expect(stdout).toBe("");
      expect(stderr.startsWith("error: ")).toBe(true);
      expect(stderr.match(/error:/g)?.length).toBe(1);
      expect(stderr).toContain(message);
      expect(stderr).toContain(more);
      expect(stderr).not.toContain("    at ");
    },
  );

  test("from the environment are checked too, under the variable's name", async () => {
    expect((await demo("show fast", { env: { FWM_SEED: "many" } })).stderr).toContain(
      "FWM_SEED: expected an integer",
    );
    expect((await demo("show fast", { env: { FWM_DRY_RUN: "perhaps" } })).code).toBe(2);
  });
});

describe("help", () => {
  test("of the program, a group and a command goes to standard output", async () => {
    for (const argv of ["--help", "-h", "help"]) {
      const { code, stdout, stderr } = await demo(argv);
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toContain("A small program.");
      expect(stdout).toContain("Show what was given.");
    }
    const { stdout } = await demo("show --help");
    for (const part of [
      "--seed <integer>",
      "default: 1, env: FWM_SEED",
      "one of: fast, slow",
      "--no-color",
      "Examples:\n  demo show fast",
    ])
      expect(stdout).toContain(part);
    expect((await demo("help show")).stdout).toBe(stdout);
    expect((await demo("--version")).stdout).toBe("1.2.3\n");
  });

  test("without a command it is a misuse and goes to standard error", async () => {
    for (const argv of ["", "fail"]) {
      const { code, stdout, stderr } = await demo(argv);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toContain("Usage: demo");
    }
  });
});

describe("streams", () => {
  test("results on standard output, the rest on standard error", async () => {
    expect(await demo("show fast")).toEqual({
      code: 0,
      stdout: "the result\n",
      stderr: "a note\nwarning: a warning\n",
    });
    expect((await demo("show fast --quiet")).stderr).toBe("warning: a warning\n");
    expect((await demo("show fast --verbose")).stderr).toBe("a note\na detail\nwarning: a warning\n");
  });

  test("--json gives one document and nothing else, before or after the command", async () => {
    for (const argv of ["show fast --json", "--json show fast"]) {
      expect(JSON.parse((await demo(argv)).stdout)).toEqual({ seed: 1 });
    }
  });

  test("a second result is a mistake of ours", () => {
    const flags = { json: true, quiet: false, verbose: false, color: true };
    const surroundings = { stdout: new Written(), stderr: new Written(), stdin: process.stdin, env: {} };
    const out = new Output(surroundings, flags);
    out.record({ step: 1 }, "");
    out.record({ step: 2 }, "");
    expect(surroundings.stdout.text).toBe('{"step":1}\n{"step":2}\n');
    out.result(1, "");
    expect(() => out.result(2, "")).toThrow("one result");
  });

  const green = "\u001b[32mthe result\u001b[39m\n";
  test.each<[string, { terminal?: boolean; env?: Record<string, string> }, string]>([
    ["show fast", {}, "the result\n"],
    ["show fast", { terminal: true }, green],
    ["show fast", { terminal: true, env: { NO_COLOR: "1" } }, "the result\n"],
    ["show fast", { terminal: true, env: { NO_COLOR: "" } }, green],
    ["show fast", { terminal: true, env: { CI: "true" } }, "the result\n"],
    ["show fast", { terminal: true, env: { TERM: "dumb" } }, "the result\n"],
    ["show fast --no-color", { terminal: true, env: { FORCE_COLOR: "1" } }, "the result\n"],
    ["show fast", { env: { FORCE_COLOR: "1" } }, green],
    ["show fast", { terminal: true, env: { FORCE_COLOR: "0" } }, "the result\n"],
    ["show fast", { env: { FORCE_COLOR: "1", NO_COLOR: "1" } }, "the result\n"],
  ])("colour: %s %j", async (argv, settings, stdout) => {
    expect((await demo(argv, settings)).stdout).toBe(stdout);
  });
});

describe("progress", () => {
  const output = (terminal: boolean, flags: object = {}, env: Record<string, string> = {}) => {
    const stderr = new Written(terminal);
    const all = { json: false, quiet: false, verbose: false, color: true, ...flags };
    return {
      stderr,
      out: new Output({ stdout: new Written(terminal), stderr, stdin: process.stdin, env }, all),
    };
  };
  const work = (out: Output) => {
    const bar = out.progress({ label: "work", total: 4, every: 0 });
    for (let i = 1; i <= 4; i++) bar.update(i, `loss ${i}`);
    bar.stop();
  };

  test("is plain lines without a terminal, in CI and with --json", () => {
    for (const { out, stderr } of [
      output(false),
      output(true, {}, { CI: "1" }),
      output(true, { json: true }),
    ]) {
      work(out);
      expect(stderr.text).toBe([1, 2, 3, 4].map((i) => `work ${i}/4 (${i * 25}%) loss ${i}\n`).join(""));
    }
  });

  test("says the last state once when lines are far apart", () => {
    const { out, stderr } = output(false);
    const bar = out.progress({ label: "work", show: (n) => `${n} MB` });
    for (let i = 1; i <= 4; i++) bar.update(i);
    bar.stop();
    bar.stop();
    expect(stderr.text).toBe("work 4 MB\n");
  });

  test("is a bar on a terminal and nothing with --quiet", () => {
    const watched = output(true);
    work(watched.out);
    expect(watched.stderr.text).toMatch(/work .*100% 4\/4 .*loss 4/);
    expect(watched.stderr.text).not.toContain("(100%)");
    const quiet = output(true, { quiet: true });
    work(quiet.out);
    expect(quiet.stderr.text).toBe("");
  });
});

test("help of a command that there is not is refused with the nearest", async () => {
  expect(await demo("help fail bugs")).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/demo fail: there is no command "bugs"\n.*did you mean +bug/) as string,
  });
  expect((await demo("help shwo")).stderr).toContain('demo: there is no command "shwo"');
  expect((await demo("help fail bug")).code).toBe(0);
  expect((await demo("help")).code).toBe(0);
});

test("more threads than cores are refused", () => {
  const cores = availableParallelism();
  expect(threadCount().parse([String(cores)], "--threads")).toBe(cores);
  expect(() => threadCount().parse([String(cores + 1)], "--threads")).toThrow(
    `this machine has ${cores} core`,
  );
});

test("printed command lines are quoted for a shell", () => {
  const words = ["fwm", "train", "--resume", "/a b/it's", "$HOME", "plain-1.2"];
  const line = shellLine(...words);
  expect(line).toBe("fwm train --resume '/a b/it'\\''s' '$HOME' plain-1.2");
  expect(execFileSync("sh", ["-c", `printf '%s\\n' ${line}`], { encoding: "utf8" })).toBe(
    `${words.join("\n")}\n`,
  );
});

describe("failures", () => {
  test("of the user's data are messages with their exit code", async () => {
    expect(await demo("fail data")).toEqual({
      code: 3,
      stdout: "",
      stderr: "error: file.txt:3: bad\n  hint  mend it\n",
    });
  });

  test("of the disk say path and reason", async () => {
    const { code, stderr } = await demo("fail disk");
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^error: \/full\/file: the disk is full \(write: ENOSPC\)\n {2}hint {2}free some space/,
    );
  });

  test("of ours begin with internal: and keep their stack", async () => {
    const { code, stderr } = await demo("fail bug");
    expect(code).toBe(1);
    expect(stderr).toMatch(/^internal: TypeError: oh no\n {4}at /);
  });
});

describe("signals", () => {
  const later = (process: FakeProcess, ...names: string[]) => {
    names.forEach((name, i) => void setTimeout(() => process.emit(name), 5 + 5 * i));
    return process;
  };

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 143],
  ])("%s lets a graceful command finish and gives %i", async (name, code) => {
    for (const argv of ["fail wait", "fail save"]) {
      const signals = new FakeProcess();
      const ended = await demo(argv, { signals: later(signals, name) });
      expect(ended.code).toBe(code);
      expect(ended.stderr).toBe("stopping after this step; press ^C again to stop at once\n");
      expect(signals.exited).toBeUndefined();
      expect(signals.listenerCount(name)).toBe(0);
    }
  });

  test("one that comes when the work is done anyway does not change the exit code", async () => {
    const late: CommandLine = {
      ...program,
      commands: [
        command({
          name: "late",
          summary: "Finish.",
          examples: [],
          graceful: true,
          run: () => new Promise((resolve) => setTimeout(() => resolve("finished"), 30)),
        }),
      ],
    };
    expect((await run(["late"], { program: late, signals: later(new FakeProcess(), "SIGTERM") })).code).toBe(
      0,
    );
  });

  test("a second one, or the first for any other command, ends the program at once", async () => {
    const twice = new FakeProcess();
    const stubborn: CommandLine = {
      ...program,
      commands: [failing("stay", () => new Promise((resolve) => setTimeout(resolve, 40)), true)],
    };
    await run(["stay"], { program: stubborn, signals: later(twice, "SIGINT", "SIGTERM") });
    expect(twice.exited).toBe(143);
    const once = new FakeProcess();
    await demo("fail hard", { signals: later(once, "SIGINT") });
    expect(once.exited).toBe(130);
  });
});
