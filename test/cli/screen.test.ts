/** What a person sees on a terminal: lines stay whole beside a live bar, at every width. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { Output } from "../../src/cli/output.ts";
import { barLine } from "../../src/cli/progress.ts";
import { loadCheckpoint } from "../../src/store/checkpoint.ts";
import { readRun } from "../../src/store/runRecord.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { skipUnless } from "../support/skip.ts";
import { hasPseudoTerminal, noPseudoTerminal, onTerminal, screenOf } from "../support/terminal.ts";
import { Written } from "./support.ts";

const binary = join(import.meta.dirname, "../../dist/src/cli/main.js");
const needs = skipUnless(
  existsSync(binary) && hasPseudoTerminal,
  hasPseudoTerminal ? "dist/ is not there; run `npm run build`" : noPseudoTerminal,
);

/** Both streams on one terminal of 100 columns. */
function terminal() {
  const both = new Written(true);
  const flags = { json: false, quiet: false, verbose: true, color: false };
  const out = new Output({ stdout: both, stderr: both, stdin: process.stdin, env: { TERM: "xterm" } }, flags);
  return { out, screen: () => screenOf(both.text.replaceAll("\n", "\r\n"), 100) };
}

describe("the screen", () => {
  test("notes, warnings, details and results stand above a bar, which stays when it is stopped", () => {
    const { out, screen } = terminal();
    const bar = out.progress({ label: "training", total: 120 });
    out.note("a note");
    bar.update(40, "train loss 3.665", "16,184 tokens/s");
    out.warn("a warning");
    out.detail("a detail");
    out.record({}, "a record");
    bar.update(120, "train loss 2.095", "14,140 tokens/s");
    bar.stop();
    bar.stop();
    out.result({}, "the result");
    expect(screen()).toEqual([
      "a note",
      "warning: a warning",
      "a detail",
      "a record",
      `training ${"█".repeat(24)} 100% 120/120 train loss 2.095 14,140 tokens/s`,
      "the result",
      "",
    ]);
  });

  test("a bar that was never updated leaves nothing", () => {
    const { out, screen } = terminal();
    out.progress({ label: "training", total: 3 }).stop();
    out.note("a note");
    expect(screen()).toEqual(["a note", ""]);
  });

  test("a picture takes the place of the one before, also where its lines wrap", () => {
    const { out, screen } = terminal();
    out.frame(`first\n${"long ".repeat(50)}\nend`);
    out.frame("second\npicture");
    out.settle();
    out.note("below");
    expect(screen()).toEqual(["second", "picture", "below", ""]);
  });
});

test("a bar fits its line, and says the most telling part where room is short", () => {
  const notes = ["train loss 3.665", "16,184 tokens/s"];
  const at = (columns: number): string =>
    barLine("training", { done: 30, notes, secondsLeft: 125 }, 120, String, columns);
  for (let columns = 4; columns < 160; columns++) expect([...at(columns)].length).toBeLessThan(columns - 2);
  expect(at(100)).toBe(
    "training ██████░░░░░░░░░░░░░░░░░░  25% 30/120 ETA 2m05s train loss 3.665 16,184 tokens/s",
  );
  expect(at(80)).toBe("training ██░░░░░░  25% 30/120 ETA 2m05s train loss 3.665 16,184 tokens/s");
  expect(at(56)).toBe("training  25% 30/120 ETA 2m05s train loss 3.665");
  expect(at(40)).toBe("training  25% train loss 3.665");
});

describe("training on a terminal", needs, () => {
  const words = ["train", "catbabi-qa-fwm", "--smoke", "--threads", "1", "--set", "training.evalEvery=10"];

  test.each([40, 80, 160])("%i columns: every line is whole", async (columns) => {
    const cwd = emptyFolder();
    const argv = [process.execPath, binary, ...words, "--steps", "20", "--out", "run"];
    const { code, screen } = await onTerminal(argv, { columns, cwd });
    expect(code).toBe(0);
    const text = screen.join("\n");
    expect(text).toMatch(
      /^step 10: valid loss \d\.\d+, accuracy \d+\.\d+%, perplexity \d+\.\d+ \(best so far\)$/m,
    );
    expect(text).toMatch(
      /^step 20: valid loss \d\.\d+, accuracy \d+\.\d+%, perplexity \d+\.\d+( \(best so far\))?$/m,
    );
    expect(text).toMatch(/^training .*100% .*train loss \d\.\d{3}/m);
    expect(text).toMatch(/^finished after 20 steps; .*run$/m);
    expect(text).toMatch(/^best validation loss \d\.\d+ at step \d+$/m);
    expect(text.match(/training/g)).toHaveLength(1);
  });

  test("^C is answered below the bar, and the line to resume is whole", async () => {
    const cwd = emptyFolder();
    const argv = [process.execPath, binary, ...words, "--steps", "5000", "--out", "a run"];
    let pressed = false;
    const { code, screen } = await onTerminal(argv, {
      columns: 80,
      cwd,
      typed(output) {
        if (pressed || !output.includes("train loss")) return undefined;
        pressed = true;
        return "\u0003";
      },
    });
    expect(code).toBe(130);
    const text = screen.join("\n");
    expect(text).toMatch(/^stopping after this step; press \^C again to stop at once$/m);
    expect(text).toMatch(/^interrupted after \d+ steps?; /m);
    expect(text).not.toContain("^C\n");
  });

  test("a terminal that is closed lets the run save and stop", async () => {
    const cwd = emptyFolder();
    const argv = [process.execPath, binary, ...words, "--steps", "5000", "--out", "run"];
    let closed = false;
    await onTerminal(argv, {
      columns: 80,
      cwd,
      typed(output, close) {
        if (!closed && output.includes("train loss")) close();
        closed ||= output.includes("train loss");
        return undefined;
      },
    });
    await vi.waitFor(async () => expect((await readRun(join(cwd, "run"))).state).toBe("interrupted"), 10_000);
    expect((await readRun(join(cwd, "run"))).process).toBeNull();
    expect((await loadCheckpoint(join(cwd, "run"))).step).toBeGreaterThan(0);
  });
});
