/** What a browser imports reaches no module of Node's and no native runtime. */
import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");

/** Modules that a file imports when it is loaded; types vanish, and `import()` waits until it is called. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  const statements = text.matchAll(
    /^(?:import|export)\s+(?!type\b)[^;]*?from\s+"([^"]+)"|^import\s+"([^"]+)"/gm,
  );
  return [...statements].map((match) => match[1] ?? match[2]!);
}

/** Every module that `entry` loads, with one way to it. */
function reached(entry: string): Map<string, string> {
  const ways = new Map([[entry, relative(root, entry)]]);
  for (const [file, way] of ways) {
    if (!file.startsWith("/")) continue;
    for (const name of importsOf(file)) {
      const target = name.startsWith(".") ? join(dirname(file), name) : name;
      if (!ways.has(target)) ways.set(target, `${way} → ${name}`);
    }
  }
  return ways;
}

test.each(["src/inference/index.ts", "src/inference/memory.ts", "src/engine.ts"])("%s", (entry) => {
  const ways = reached(join(root, entry));
  const forbidden = [...ways].filter(([name]) => name.startsWith("node:") || name.startsWith("onnxruntime-"));
  expect(forbidden.map(([, way]) => way)).toEqual([]);
});

test("the memory needs nothing but our errors and the plain loops it shares with traces", () => {
  const files = [...reached(join(root, "src/inference/memory.ts")).keys()];
  expect(files.map((file) => relative(root, file)).toSorted()).toEqual([
    "src/errors.ts",
    "src/inference/memory.ts",
    "src/model/fwmTrace.ts",
  ]);
});

test("the way to a Node module would be found", () => {
  const ways = reached(join(root, "src/inference/load.ts"));
  expect([...ways.keys()]).toContain("onnxruntime-node");
  expect([...ways.keys()].some((name) => name.startsWith("node:"))).toBe(true);
});
