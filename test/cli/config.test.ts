/**
 * Nested settings: the order of the places they come from, what is said about unknown keys and wrong values,
 * and that no key reaches an object's prototype.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  assignments,
  configFile,
  environmentSettings,
  layer,
  printSettings,
  resolveSettings,
  settingsDocument,
} from "../../src/cli/config.ts";
import { UsageError } from "../../src/errors.ts";
import { emptyFolder } from "../data/support/tiny.ts";

const schema = z.strictObject({
  seed: z.int(),
  system: z.strictObject({ hidden: z.int().min(1), reads: z.int() }),
  training: z.strictObject({ learningRate: z.number(), batch: z.int(), seeds: z.array(z.int()).optional() }),
});
const defaults = layer("default", {
  seed: 1,
  system: { hidden: 256, reads: 3 },
  training: { learningRate: 1e-3, batch: 64 },
});

function config(text: string, name = "settings.yaml"): string {
  const path = join(emptyFolder(), name);
  writeFileSync(path, text);
  return path;
}

describe("settings", () => {
  test("come from the highest place that has them, and remember it", () => {
    const path = config("training:\n  batch: 16\n  learningRate: 0.1\nsystem: { reads: 2 }\n");
    const resolved = resolveSettings(schema, [
      defaults,
      layer("preset small", { system: { hidden: 32, reads: 1 }, training: { batch: 8 } }),
      configFile(path),
      environmentSettings(
        { FWM_TRAINING__LEARNING_RATE: "0.01", FWM_SEED: "5", FWM_DATA: "/x", HOME: "/" },
        schema,
      ),
      assignments(["training.learningRate=1e-4", "training.seeds=[1, 2]"]),
    ]);
    expect(resolved.settings).toEqual({
      seed: 5,
      system: { hidden: 32, reads: 2 },
      training: { learningRate: 1e-4, batch: 16, seeds: [1, 2] },
    });
    expect(printSettings(resolved)).toBe(`\
seed = 5                         (environment)
system.hidden = 32               (preset small)
system.reads = 2                 (config file ${path})
training.learningRate = 0.0001   (--set)
training.batch = 16              (config file ${path})
training.seeds = [1,2]           (--set)
`);
    expect(settingsDocument(resolved).origins["training.batch"]).toContain("config file");
  });

  test("lists of groups are printed line by line", () => {
    const stages = z.strictObject({
      stages: z.array(z.strictObject({ tasks: z.string(), until: z.number() })),
    });
    const given = assignments(["stages=[{tasks: a, until: 0.5}, {tasks: b, until: 1}]"]);
    expect(printSettings(resolveSettings(stages, [given]))).toBe(`\
stages[0].tasks = "a"   (--set)
stages[0].until = 0.5   (--set)
stages[1].tasks = "b"   (--set)
stages[1].until = 1     (--set)
`);
  });

  test("JSON files work like YAML files", () => {
    const path = config('{ "seed": 9, "training": { "batch": 2 } }', "settings.json");
    expect(resolveSettings(schema, [defaults, configFile(path)]).settings).toMatchObject({
      seed: 9,
      training: { batch: 2 },
    });
    expect(resolveSettings(schema, [defaults, configFile(config(""))]).settings.seed).toBe(1);
  });

  test.each<[string, () => unknown, RegExp]>([
    [
      "an unknown key",
      () => assignments(["training.bacth=3"]),
      /no "training\.bacth"\n.*from +--set\n.*did you mean +batch/,
    ],
    ["an unknown group", () => assignments(["sytem.hidden=3"]), /no "sytem"\n.*\n.*did you mean +system/],
    ["a wrong type", () => assignments(["training.batch=many"]), /training\.batch: .*\n.*from +--set/],
    ["a value out of range", () => assignments(["system.hidden=0"]), /system\.hidden: /],
    ["a group set to a value", () => assignments(["system=3"]), /system: /],
    [
      "an unknown key in a file",
      () => configFile(config("sed: 3\n")),
      /no "sed"\n.*config file.*\n.*did you mean +seed/,
    ],
    [
      "an unknown variable",
      () => environmentSettings({ FWM_TRAINING__BACTH: "3" }, schema),
      /FWM_TRAINING__BACTH: .*\n.*FWM_TRAINING__BATCH/,
    ],
    [
      "broken YAML in a variable",
      () => environmentSettings({ FWM_SEED: "[1," }, schema),
      /FWM_SEED: not valid YAML/,
    ],
    ["no value", () => assignments(["training.batch"]), /--set training\.batch: expected key=value/],
    ["no key", () => assignments(["=3"]), /expected key=value/],
    ["an empty part", () => assignments(["training..batch=3"]), /expected key=value/],
    ["broken YAML in a value", () => assignments(["seed=[1,"]), /--set seed=\[1,: not valid YAML or JSON/],
    ["broken YAML in a file", () => configFile(config("a: [1\n")), /not valid YAML or JSON/],
    ["a file that is a list", () => configFile(config("- 1\n")), /expected settings/],
    [
      "a file that is not there",
      () => configFile("/no/such/settings.yaml"),
      /--config \/no\/such\/settings\.yaml: cannot be read/,
    ],
  ])("%s is a usage error", (_, make, message) => {
    const resolving = () => resolveSettings(schema, [defaults, make() as typeof defaults]);
    expect(resolving).toThrow(UsageError);
    expect(resolving).toThrow(message);
  });

  test("aliases that expand without end are refused", () => {
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x]", ..."bcdefgh"].map((line, i) =>
      i === 0
        ? line
        : `${line}: &${line} [${Array(9)
            .fill(`*${"abcdefgh"[i - 1]}`)
            .join(", ")}]`,
    );
    expect(() => configFile(config(bomb.join("\n")))).toThrow("not valid YAML");
  });

  test("no key reaches a prototype", () => {
    const pollute = [
      () => assignments(["__proto__.polluted=1"]),
      () => assignments(["constructor.prototype.polluted=1"]),
      () => assignments(["training={__proto__: {polluted: 1}}"]),
      () => configFile(config('{"__proto__": {"polluted": 1}}', "a.json")),
      () => configFile(config("training:\n  constructor:\n    prototype:\n      polluted: 1\n")),
      () => layer("preset", JSON.parse('{"training": {"__proto__": {"polluted": 1}}}')),
    ];
    for (const attempt of pollute) {
      expect(() => resolveSettings(schema, [defaults, attempt()])).toThrow(UsageError);
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    }
  });

  test("any --set text gives settings or a usage error, never anything else", () => {
    const keys = fc.constantFrom(
      "seed",
      "training.batch",
      "system",
      "__proto__",
      "constructor",
      "a.b",
      "toString",
    );
    fc.assert(
      fc.property(keys, fc.string(), (key, value) => {
        try {
          resolveSettings(schema, [defaults, assignments([`${key}=${value}`])]);
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError);
        }
        expect(Object.keys(Object.prototype)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});

describe("texts that have no end or are far too large", () => {
  const refused = (act: () => unknown, message: RegExp): void => {
    expect(act).toThrow(UsageError);
    expect(act).toThrow(message);
  };

  test("a part that refers to itself", () => {
    refused(() => assignments(["a=&a [*a]"]), /--set a=&a \[\*a\]: more than 50 levels deep[\s\S]*alias/);
    refused(() => configFile(config("a: &a { b: *a }")), /more than 50 levels deep/);
    refused(() => environmentSettings({ FWM_SEED: "&a [*a]" }, schema), /more than 50 levels deep/);
  });

  test("nesting without end", () => {
    refused(() => assignments([`a=${"[".repeat(30_000)}`]), /--set a=\[+…: /);
    refused(() => assignments([`a=${"[".repeat(60)}${"]".repeat(60)}`]), /more than 50 levels deep/);
  });

  test("very many keys, of which none is a setting", () => {
    const wide = (count: number) => Array.from({ length: count }, (_, i) => `k${i}: 1\n`).join("");
    refused(() => configFile(config(wide(100_000))), /too long to be settings/);
    const begin = process.cpuUsage();
    const many = configFile(config(wide(6000)));
    refused(() => resolveSettings(schema, [defaults, many, many, many]), /there is no "k0"/);
    // Every key once per layer; only YAML itself compares keys with each other.
    const { user, system } = process.cpuUsage(begin);
    expect((user + system) / 1e6).toBeLessThan(20);
  });

  test.skipIf(process.platform === "win32")("a file that never ends", () => {
    refused(() => configFile("/dev/zero"), /too long to be settings/);
  });
});
