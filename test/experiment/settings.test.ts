/** Settings that come out of files: checked by the kind, and names of earlier versions answered with today's. */
import { expect, test } from "vitest";
import "../../experiments/index.ts";
import { allKinds, kindOf, requireExperiment } from "../../src/experiment/registry.ts";
import { checkSettings, withSetting } from "../../src/experiment/settings.ts";
import { flatten } from "../../src/store/flatten.ts";
import { run } from "../cli/support.ts";

const { settings } = requireExperiment("catbabi-qa-fwm-decay");

test("settings of version 0.1 in a run folder are named with what they are called now", () => {
  const { optimizer: _, emaDecay: __, ...training } = settings.training as unknown as Record<string, unknown>;
  const old = { ...settings, training: { ...training, learningRate: 1e-3, averaging: 0.999 } };
  expect(() => checkSettings(kindOf(settings), old, "runs/old")).toThrow(
    /runs\/old: its settings are not those of this version[\s\S]*training\.learningRate is training\.optimizer\.learningRate now[\s\S]*training\.averaging is training\.emaDecay now/,
  );
});

test("other settings that do not fit are named as they are", () => {
  const wrong = withSetting(settings, "training.batch", -1);
  expect(() => checkSettings(kindOf(settings), wrong, "runs/x")).toThrow(/runs\/x: [\s\S]*training\.batch/);
});

test("every new name is a setting of some experiment of the kind, and no old name is", () => {
  for (const kind of allKinds().filter(({ renamed }) => Object.keys(renamed).length > 0)) {
    const names = new Set(Object.keys(flatten(requireExperiment(sampleOf[kind.name]!).settings)));
    for (const [before, now] of Object.entries(kind.renamed)) {
      expect(names, before).not.toContain(before);
      expect(
        [...names].some((name) => name === now || now.startsWith("training.schedule.")),
        now,
      ).toBe(true);
    }
  }
});

/** An experiment of each kind. */
const sampleOf: Readonly<Record<string, string>> = {
  catbabi: "catbabi-qa-fwm-decay",
  metarl: "metarl-fwm-tuned",
};

test.each([
  ["catbabi-qa-fwm", "training.validEvery=3", "training.evalEvery"],
  ["catbabi-qa-fwm", "task.share=0.5", "task.generatedFraction"],
  ["metarl-fwm", "training.entropy=0.1", "training.entropyCoef"],
])("fwm train %s --set %s says that it is called %s now", async (experiment, given, now) => {
  const { code, stderr } = await run(["train", experiment, "--set", given, "--print-config"]);
  expect(code).toBe(2);
  expect(stderr).toContain(`is called ${now} now`);
});

test("another optimizer, schedule or system takes the place of the experiment's, with its own defaults", async () => {
  const words = ["train", "catbabi-qa-fwm-decay", "--print-config", "--json"];
  const sets = [
    "training.optimizer.name=sgd",
    "training.optimizer.learningRate=0.5",
    "training.schedule.name=constant",
  ];
  const { code, stdout, stderr } = await run([...words, ...sets.flatMap((set) => ["--set", set])]);
  expect(code, stderr).toBe(0);
  const { training } = (JSON.parse(stdout) as { settings: typeof settings }).settings as unknown as {
    training: { optimizer: object; schedule: object };
  };
  expect(training.optimizer).toEqual({ name: "sgd", learningRate: 0.5, weightDecay: 0 });
  expect(training.schedule).toEqual({ name: "constant", warmup: 0 });
});
