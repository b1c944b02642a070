/** `fwm sweep` as a person uses it: plan, run, stop, kill, go on, misuse. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SweepResult } from "../../src/report/sweep.ts";
import { withoutClock } from "../support/withoutClock.ts";
import { FakeProcess, run } from "./support.ts";

// The program from its source: what it is compared with runs from the source too.
const root = join(import.meta.dirname, "../..");
const program = ["--import", "tsx", join(root, "src/cli/main.ts")];

const scratch = mkdtempSync(join(tmpdir(), "fwm-sweep-cli-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const results = join(scratch, "results");
const small = ["--smoke", "--steps", "6", "--threads", "1", "--set", "training.evalEvery=3", "--set"];
const line = [
  ...["sweep", "catbabi-qa-fwm", ...small, "training.evalBatch=250", "--results", results],
  ...["--each", "system.reads=1", "--each", "system.keys=concat"],
];

/** The filed result, without what the clock, the command and the commit decide. */
function filed(name: string) {
  const document = JSON.parse(readFileSync(join(results, `${name}.json`), "utf8")) as SweepResult;
  const { settings, members } = withoutClock(document, ["commits"]);
  return { settings, members };
}

describe("an ablation by one line", () => {
  const out = join(scratch, "whole");
  const figure = join(scratch, "figures", "whole.svg");
  const picture = ["--figure", figure, "--title", "A title of its own", "--width", "300", "--height", "150"];
  const whole = [...line, "--out", out, "--name", "whole", ...picture];
  let first: Awaited<ReturnType<typeof run>>;
  beforeAll(async () => {
    first = await run(whole);
  });

  test("trains the members, shows a table, and files a result and a figure", () => {
    const { code, stdout, stderr } = first;
    expect(code, stderr).toBe(0);
    const rows = stdout.split("\n").map((row) => row.split(/ {2,}/));
    expect(rows[0]).toEqual(
      "member,state,steps,best loss,at step,best accuracy,at step,best perplexity,at step,last accuracy,parameters,tokens/s".split(
        ",",
      ),
    );
    expect(rows.slice(1, 4).map(([name, state, steps]) => [name, state, steps])).toEqual([
      ["base", "finished", "6"],
      ["reads=1", "finished", "6"],
      ["keys=concat", "finished", "6"],
    ]);
    const { members } = filed("whole");
    members.forEach(({ best, last, parameters }, i) => {
      expect(rows[i + 1]!.slice(3, 11)).toEqual([
        best.loss!.value.toFixed(4),
        String(best.loss!.step),
        `${(100 * best.accuracy!.value).toFixed(2)}%`,
        String(best.accuracy!.step),
        best.perplexity!.value.toFixed(3),
        String(best.perplexity!.step),
        `${(100 * last!.values.accuracy!).toFixed(2)}%`,
        parameters.toLocaleString("en-US"),
      ]);
    });
    expect(readFileSync(join(results, "whole.json"), "utf8")).not.toContain(scratch);
    const svg = readFileSync(figure, "utf8");
    for (const name of ["base", "reads=1", "keys=concat"]) expect(svg).toContain(`>${name}</text>`);
    expect(svg).toContain("A title of its own");
    const [, width, height] = /^<svg[^>]*? width="(\d+)" height="(\d+)"/.exec(svg)!.map(Number);
    expect([width! < 400, height! < 300]).toEqual([true, true]);
  });

  test("a figure that is no SVG is refused before anything is trained", async () => {
    const { code, stderr } = await run([...line, "--out", join(scratch, "png"), "--figure", "x.png"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("--figure x.png: figures are SVG files")]);
    expect(existsSync(join(scratch, "png"))).toBe(false);
  });

  test("started again it passes over what is finished; --json prints what is filed", async () => {
    const { code, stdout, stderr } = await run([...whole, "--json"]);
    expect(code).toBe(0);
    expect(stderr).toContain("[3/3] keys=concat: finished before");
    const printed = JSON.parse(stdout) as unknown;
    expect(printed).toEqual(JSON.parse(readFileSync(join(results, "whole.json"), "utf8")));
  });

  test("--plan shows how each member stands, and trains nothing", async () => {
    const plan = await run([...whole, "--vary", "training.optimizer.learningRate=1e-3,2e-3", "--plan"]);
    expect(plan.stdout.split("\n")[1]).toMatch(/^learningRate=1e-3 +waiting +1 +6 +23,289$/);
    const { stdout } = await run([...whole, "--each", "system.memory=4", "--plan", "--json"]);
    const { members } = JSON.parse(stdout) as { members: { name: string; state: string }[] };
    expect(members.map(({ name, state }) => [name, state])).toEqual([
      ["base", "finished"],
      ["reads=1", "finished"],
      ["keys=concat", "finished"],
      ["memory=4", "waiting"],
    ]);
    expect(existsSync(join(out, "memory=4"))).toBe(false);
  });

  test("other settings in the same place are refused", async () => {
    const { code, stderr } = await run([...whole, "--set", "training.batch=4"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /base: the run there is not this member[\s\S]*training\.batch: 8 in the folder, 4/,
    );
  });

  test("^C ends with 130 and says how to go on; the same line then gives the same result", async () => {
    const signals = new FakeProcess();
    const stopped = [...line, "--out", join(scratch, "stopped"), "--name", "stopped"];
    const running = run(stopped, { signals });
    while (!existsSync(join(scratch, "stopped", "reads=1", "run.json"))) await setTimeout(2);
    signals.emit("SIGINT");
    const { code, stdout } = await running;
    expect(code).toBe(130);
    expect(stdout).toContain("stopped; resume with: fwm");
    expect(stdout).toMatch(/keys=concat +waiting +0 +-/);
    expect(existsSync(join(results, "stopped.json"))).toBe(false);
    expect((await run(stopped)).code).toBe(0);
    expect(filed("stopped")).toEqual(filed("whole"));
  });

  test("killed twice and stopped once, the line it says gives the same result", async () => {
    const killed = [...line, "--out", join(scratch, "killed"), "--name", "killed"];
    const steps = [
      ["base", "SIGKILL"],
      ["reads=1", "SIGKILL"],
      ["keys=concat", "SIGINT"],
    ] as const;
    let stdout = "";
    for (const [name, how] of steps) {
      const child = spawn(process.execPath, [...program, ...killed], {
        cwd: root,
        stdio: ["ignore", "pipe", "ignore"],
      });
      child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
      const ended = new Promise((resolve) => child.on("close", (code, signal) => resolve(signal ?? code)));
      while (!existsSync(join(scratch, "killed", name, "run.json"))) await setTimeout(2);
      child.kill(how);
      expect(await ended).toBe(how === "SIGINT" ? 130 : how);
    }
    const said = /resume with: fwm (.*)/.exec(stdout)?.[1];
    expect(said).toBe(killed.join(" "));
    expect((await run(killed)).code).toBe(0);
    expect(filed("killed")).toEqual(filed("whole"));
  });
});

test("rounds: the result has both, and the table shows who was kept", async () => {
  const rounds = [
    ...["sweep", "catbabi-qa-fwm", ...small.slice(0, 1), ...small.slice(3), "training.evalBatch=250"],
    ...["--vary", "system.reads=1,2", "--rounds", "3,6", "--keep", "1", "--results", results],
    ...["--out", join(scratch, "rounds"), "--name", "rounds"],
  ];
  const { code, stdout, stderr } = await run(rounds);
  expect([code, stderr]).toEqual([0, expect.stringContaining("paused after 3 steps")]);
  const document = JSON.parse(readFileSync(join(results, "rounds.json"), "utf8")) as SweepResult;
  expect(document).toMatchObject({
    steps: 6,
    rounds: { rule: { name: "halving", keep: [1] }, measure: "loss", rounds: [{ steps: 3 }, { steps: 6 }] },
  });
  expect(document.members.map(({ state, steps }) => [state, steps]).sort()).toEqual([
    ["finished", 6],
    ["pruned", 3],
  ]);
  const kept = document.members.find(({ state }) => state === "finished")!;
  expect(stdout).toMatch(new RegExp(`round 1: 3 steps +best loss +kept\n${kept.name} +[\\d.]+ +yes\n`));
});

describe("what a person may get wrong", () => {
  const base = ["sweep", "catbabi-qa-fwm", "--smoke"];
  let files = 0;
  /** A file with some content. */
  const file = (content: string): string => {
    const path = join(scratch, `space-${files++}.yaml`);
    writeFileSync(path, content);
    return path;
  };
  const misuse: [string, string[], RegExp, number][] = [
    ["an unknown experiment", ["sweep", "catbabi-qa-fmw", "--seeds", "1"], /catbabi-qa-fwm/, 2],
    ["no experiment", ["sweep", "--seeds", "1"], /experiment/, 2],
    ["nothing to change", base, /--each/, 2],
    ["no values", [...base, "--each", "system.reads"], /--each system\.reads: expected key=v1,v2/, 2],
    ["an empty list", [...base, "--vary", "system.reads="], /--vary system\.reads=: expected/, 2],
    ["an unknown setting", [...base, "--vary", "system.raeds=1,2"], /"system.raeds"\n.*--vary\n.*reads/, 2],
    ["a setting without its group", [...base, "--each", "reads=1"], /did you mean +system\.reads/, 2],
    ["an unknown value, the last of many", [...base, "--each", "system.keys=concat,prodct"], /product/, 2],
    ["a value out of range", [...base, "--vary", "system.reads=1,0"], /system\.reads/, 2],
    ["seeds that are no numbers", [...base, "--seeds", "1,b"], /--seeds: expected .*"1,b"/, 2],
    ["a seed twice", [...base, "--seeds", "1,1"], /--seeds: expected different/, 2],
    ["a setting of stories for agents", ["sweep", "metarl-fwm", "--each", "system.keys=concat"], /keys/, 2],
    ["a round without more", [...base, "--seeds", "1,2", "--rounds", "25"], /how many go on is missing/, 2],
    ["one round", [...base, "--seeds", "1", "--rounds", "25", "--keep", "1"], /at least two numbers/, 2],
    [
      "rounds that are no numbers",
      [...base, "--seeds", "1", "--rounds", "25,x"],
      /--rounds: expected whole/,
      2,
    ],
    [
      "rounds that end between evaluations",
      [...base, "--seeds", "1", "--rounds", "10,50", "--keep", "1"],
      /not evaluated at step 10/,
      2,
    ],
    ["two budgets", [...base, "--seeds", "1", "--rounds", "25,50", "--steps", "50"], /leave --steps out/, 2],
    ["who goes on, without rounds", [...base, "--seeds", "1", "--keep", "1"], /--keep goes with --rounds/, 2],
    [
      "two ways to go on",
      [...base, "--rounds", "25,50", "--keep", "1", "--asha", "2"],
      /give one of them/,
      2,
    ],
    [
      "a space that is not there",
      [...base, "--space", join(scratch, "none.yaml")],
      /--space .*cannot be read/,
      2,
    ],
    [
      "a space with an unknown key",
      [...base, "--space", file("varry: {}")],
      /not a search space\n[\s\S]*varry/,
      2,
    ],
    [
      "a space with an unknown setting",
      [...base, "--space", file("vary: {system.raeds: [1]}")],
      /"system\.raeds"\n.*--space[\s\S]*reads/,
      2,
    ],
    ["a name that is a path", [...base, "--seeds", "1", "--name", "a/b"], /--name a\/b/, 2],
    [
      "data that is not there",
      ["sweep", "catbabi-qa-fwm", "--seeds", "1", "--data", join(scratch, "none")],
      /none/,
      3,
    ],
  ];
  test.each(misuse)("%s", async (_, argv, message, exit) => {
    const out = join(scratch, "never");
    const { code, stdout, stderr } = await run([...argv, "--out", out, "--results", out]);
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain("internal:");
    expect([code, stdout]).toEqual([exit, ""]);
    expect(existsSync(out)).toBe(false);
  });
});
