/** Imports go one way: which folder may know of which, and where Node's own modules may be used. */
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

/** One import of a file. */
interface Import {
  /** As written: `../graph/index.ts`, `node:fs`, `zod`. */
  readonly of: string;
  /** Only types: gone when the program runs. */
  readonly typeOnly: boolean;
  /** `await import(…)`: loaded only when asked for. */
  readonly dynamic: boolean;
}

/** The imports of a source text. */
function importsOf(text: string): Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
  const found: Import[] = [];
  for (const [, words, from] of code.matchAll(/^(?:import|export)\b([^"';]*?)\bfrom\s+"([^"]+)"/gm)) {
    found.push({ of: from!, typeOnly: /^\s+type\b/.test(words!), dynamic: false });
  }
  for (const [, bare] of code.matchAll(/^import\s+"([^"]+)"/gm)) {
    found.push({ of: bare!, typeOnly: false, dynamic: false });
  }
  for (const [, from] of code.matchAll(/\bimport\(\s*"([^"]+)"/g)) {
    found.push({ of: from!, typeOnly: false, dynamic: true });
  }
  return found;
}

/**
 * What each part of `src` may import besides itself: folders, or single files. `model as types` allows the
 * interfaces a trainer is handed, but no system. A part that is not listed may not exist: say here what it knows.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  "errors.ts": [],
  "random.ts": [],
  "statistics.ts": [],
  graph: ["errors.ts"],
  model: ["errors.ts", "random.ts", "graph"],
  compile: ["errors.ts", "graph"],
  runtime: ["errors.ts", "random.ts", "graph", "compile"],
  train: ["errors.ts", "graph", "compile", "runtime", "model as types"],
  babi: ["errors.ts", "random.ts", "statistics.ts"],
  environment: ["errors.ts", "random.ts", "statistics.ts"],
  data: ["errors.ts", "random.ts", "babi", "store"],
  store: ["errors.ts"],
  report: ["errors.ts", "statistics.ts", "store"],
  bench: ["statistics.ts", "graph", "runtime", "model", "data", "inference"],
  inference: ["errors.ts", "random.ts", "graph", "compile", "runtime", "model", "data", "store"],
  // Here the parts are put together; nothing below knows an experiment.
  experiment: [
    ...["errors.ts", "random.ts", "statistics.ts", "graph", "compile", "runtime", "model", "train"],
    ...["babi", "environment", "data", "store", "report", "bench", "inference"],
  ],
  // Hands members of a sweep to other machines.
  queue: ["errors.ts", "runtime", "store", "experiment", "../experiments"],
  "engine.ts": ["errors.ts", "random.ts", "graph", "compile", "runtime", "train"],
};

/** Parts that may import anything: the library's entry, the command line and the app. */
const putTogether = new Set(["index.ts", "cli", "studio"]);

/** Where Node's own modules may be imported. */
const nodeOnly = [
  /^runtime\/node\.ts$/,
  /^store\//,
  /^cli\//,
  /^experiment\//,
  /^queue\//,
  /^data\/(sources|text)\//,
  /^data\/prefetch/,
  // Reads run records.
  /^report\//,
  /^bench\//,
  /^studio\/server\//,
];

/** The one file that may import each build of ONNX Runtime. */
const runtimes: Readonly<Record<string, string>> = {
  "onnxruntime-node": "runtime/node.ts",
  "onnxruntime-web": "runtime/web.ts",
  "onnxruntime-common": "runtime/ort.ts",
};

/** What is wrong with a file's imports, one sentence each. */
function violations(file: string, text: string): string[] {
  const part = file.split("/")[0]!;
  return importsOf(text).flatMap((found): string[] => {
    if (found.of.startsWith("node:")) {
      return nodeOnly.some((pattern) => pattern.test(file)) ? [] : [`${file} imports ${found.of}`];
    }
    if (!found.of.startsWith(".")) {
      const home = runtimes[found.of.split("/")[0]!];
      return home === undefined || home === file ? [] : [`${file} imports ${found.of}; only ${home} does`];
    }
    const target = posix.normalize(posix.join(posix.dirname(file), found.of));
    if (target === "runtime/web.ts" && !found.dynamic && part !== "studio") {
      return [`${file} imports ${target}, which belongs to browsers`];
    }
    if (target.split("/")[0] === part || putTogether.has(part)) return [];
    const allowed = mayImport[part];
    if (!allowed) return [`${part} is not in the table of this test`];
    const fits = allowed.some((entry) => {
      const [path, types] = entry.split(" as ");
      if (types && !found.typeOnly) return false;
      return target === path || target.startsWith(`${path}/`);
    });
    return fits ? [] : [`${file} imports ${target}`];
  });
}

const root = fileURLToPath(new URL("../src/", import.meta.url));
const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .map((path) => path.replaceAll("\\", "/"))
  .filter((path) => path.endsWith(".ts"))
  .sort();

test("the sources are found", () => {
  expect(files).toContain("graph/tensor.ts");
  expect(files.length).toBeGreaterThan(100);
});

test.each(files)("%s", (file) => {
  expect(violations(file, readFileSync(root + file, "utf8"))).toEqual([]);
});

describe("the rule itself", () => {
  const cases: [string, string, string, string[]][] = [
    [
      "a folder that may not",
      "graph/x.ts",
      'import { y } from "../model/y.ts";',
      ["graph/x.ts imports model/y.ts"],
    ],
    [
      "its own folder and errors",
      "graph/ops/x.ts",
      'import a from "../b.ts";\nimport c from "../../errors.ts";',
      [],
    ],
    [
      "a name over several lines, and an export",
      "model/x.ts",
      'import {\n  type A,\n  b,\n} from "../runtime/program.ts";\nexport * from "../compile/grad.ts";',
      ["model/x.ts imports runtime/program.ts", "model/x.ts imports compile/grad.ts"],
    ],
    [
      "a system in the trainer; its interface may be there",
      "train/x.ts",
      'import { fwmModel } from "../model/fwmModel.ts";\nimport type { SequenceModel } from "../model/sequence.ts";',
      ["train/x.ts imports model/fwmModel.ts"],
    ],
    [
      "of what tensors are made of only the random numbers in data",
      "data/x.ts",
      'import { keyOf } from "../random.ts";\nimport { add } from "../graph/index.ts";',
      ["data/x.ts imports graph/index.ts"],
    ],
    [
      "Node in pure code",
      "model/x.ts",
      'import { readFileSync } from "node:fs";',
      ["model/x.ts imports node:fs"],
    ],
    [
      "a dynamic import counts too",
      "graph/x.ts",
      'const m = await import("../runtime/node.ts");',
      ["graph/x.ts imports runtime/node.ts"],
    ],
    [
      "the browser's runtime, unless it is loaded on demand",
      "engine.ts",
      'import { webRuntime } from "./runtime/web.ts";\nawait import("./runtime/web.ts");',
      ["engine.ts imports runtime/web.ts, which belongs to browsers"],
    ],
    [
      "ONNX Runtime anywhere else",
      "train/x.ts",
      'import * as ort from "onnxruntime-node";',
      ["train/x.ts imports onnxruntime-node; only runtime/node.ts does"],
    ],
    [
      "a folder nobody has thought about",
      "utils/x.ts",
      'import "../errors.ts";',
      ["utils is not in the table of this test"],
    ],
    [
      "comments are not code",
      "graph/x.ts",
      '// import a from "../cli/a.ts";\n/* import b from "../cli/b.ts"; */',
      [],
    ],
  ];
  test.each(cases)("%s", (_, file, text, want) => {
    expect(violations(file, text)).toEqual(want);
  });
});
