/** What a page loads must not need Node: the imports of the browser's entry points, followed to their ends. */
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const entries = [
  "src/runtime/web.ts",
  "src/compile/export.ts",
  "src/inference/index.ts",
  "src/inference/export.ts",
  "test/support/cases.ts",
];
const packages = ["@bufbuild/protobuf", "onnx-buf", "onnxruntime-common", "onnxruntime-web/wasm", "zod"];

/** Every module that `entry` leads to, and the names that are not files of ours. */
function reachable(entry: string): { files: string[]; others: Set<string> } {
  const files = [join(root, entry)];
  const others = new Set<string>();
  for (const file of files) {
    const source = readFileSync(file, "utf8");
    for (const [, name] of source.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g)) {
      const target = join(dirname(file), name!);
      if (!name!.startsWith(".")) others.add(name!);
      else if (!files.includes(target)) files.push(target);
    }
  }
  return { files: files.map((file) => relative(root, file)), others };
}

test.each(entries)("%s needs nothing of Node", (entry) => {
  const { files, others } = reachable(entry);
  expect(files.length).toBeGreaterThan(5);
  expect([...others].filter((name) => !packages.includes(name))).toEqual([]);
});

test("the check sees Node's modules where there are some", () => {
  expect([...reachable("src/runtime/node.ts").others]).toContain("node:fs");
});

test("the cases reach the engine, the models and the optimizers", () => {
  const { files } = reachable("test/support/cases.ts");
  for (const part of ["src/runtime/oracle.ts", "src/train/optimizers.ts", "src/model/fwmWindow.ts"]) {
    expect(files).toContain(part);
  }
});
