/** The search spaces of `experiments/searches`: every setting exists, and the numbers are the paper's. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { run } from "../cli/support.ts";

const folder = join(import.meta.dirname, "../../experiments/searches");
const names = readdirSync(folder).map((file) => file.replace(/\.yaml$/, ""));

interface Planned {
  readonly members: readonly { readonly name: string; readonly steps: number; readonly seed: number }[];
}

/** What `fwm sweep --plan` makes of a space; all settings of all members are checked by the schema. */
async function plan(system: string, experiment = `catbabi-qa-${system}`, extra: readonly string[] = []) {
  const line = ["sweep", experiment, "--space", join(folder, `${system}.yaml`), "--plan", "--json", ...extra];
  const { code, stdout, stderr } = await run([...line, "--out", "nowhere"]);
  expect([code, stderr]).toEqual([0, ""]);
  return (JSON.parse(stdout) as Planned).members;
}

test("there is one for every system of the comparison", () => {
  const small = ["ptb-fwm-small", "ptb-lstm-small", "ptb-txl-small"];
  expect(names.sort()).toEqual(["delta-net", "fwm", "jbfw", "lstm", "mnm", ...small, "txl"]);
});

describe("members and budgets", () => {
  test.each([
    ["fwm", 2 * 5 * 2, 60_000],
    ["mnm", 2 * 4 * 2, 60_000],
    ["txl", 2 * 2 * 2 * 2, 60_000],
    ["lstm", 2 * 4 * 2 * 2, 60_000],
    ["jbfw", 3 * 2 * 3 * 2, 30_000],
    ["delta-net", 2 * 5 * 2, 60_000],
  ])("%s: %i members, %i steps", async (system, count, steps) => {
    const members = await plan(system);
    expect(members).toHaveLength(count);
    expect(new Set(members.map((member) => member.steps))).toEqual(new Set([steps]));
  });

  test.each([
    ["ptb-lstm-small", 5_500],
    ["ptb-fwm-small", 5_500],
    ["ptb-txl-small", 3_300],
  ])("%s: twelve members, as every small language model has, %i steps", async (name, steps) => {
    const members = await plan(name, name);
    expect([members.length, members[0]!.name, members[0]!.steps]).toEqual([12, "base", steps]);
  });

  test("the small experiments take them too", async () => {
    expect(await plan("mnm", "catbabi-qa-mnm-small")).toHaveLength(16);
  });

  test("options of the line come on top", async () => {
    const more = await plan("fwm", undefined, ["--seeds", "5", "--rounds", "250,500", "--keep", "2"]);
    expect([more.length, more[0]!.steps, more[0]!.seed]).toEqual([10, 500, 5]);
    const short = await plan("fwm", undefined, ["--steps", "100"]);
    expect(short[0]!.steps).toBe(100);
  });
});
