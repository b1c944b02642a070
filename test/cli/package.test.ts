/** `fwm package --weights float16`: half the bytes, and the score is that of what is shipped. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { loadModel } from "../../src/inference/load.ts";
import { modelFromBytes } from "../../src/inference/model.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { narrowWeights, widenWeights } from "../../src/store/float16.ts";
import { loadModelFolder } from "../../src/store/modelFolder.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { trainSmall } from "../inference/trained.ts";
import { run } from "./support.ts";

const how = ["--split", "valid", "--batch", "16", "--threads", "1"];
let trained: string;
let half: string;
let packaged: { precision: string; score: { loss: number; accuracy: number } };

beforeAll(async () => {
  const folder = emptyFolder();
  trained = await trainSmall(folder);
  half = join(folder, "half");
  const { code, stdout } = await run([
    ...["package", trained, "--out", half, "--weights", "float16", "--json"],
    ...[...how, "--state", "zero"],
  ]);
  expect(code).toBe(0);
  packaged = JSON.parse(stdout) as typeof packaged;
});

test("the file has half the size, and its card says how the weights are stored", async () => {
  const whole = join(emptyFolder(), "whole");
  expect((await run(["package", trained, "--out", whole, ...how])).code).toBe(0);
  const size = (path: string): number => statSync(join(path, "model.safetensors")).size;
  expect(size(half)).toBeLessThan(0.55 * size(whole));
  expect(readFileSync(join(half, "README.md"), "utf8")).toContain(
    "weights, float16; the score is that of the rounded",
  );
  expect(readFileSync(join(whole, "README.md"), "utf8")).toContain("weights, float32.");
});

test("the weights are the trained ones, rounded, wherever they are loaded", async () => {
  const [{ model: stored }, { model: original }] = [
    await loadModelFolder(half),
    await loadModelFolder(trained),
  ];
  expect(stored).toEqual(widenWeights(narrowWeights(original)));
  expect(stored).not.toEqual(original);
  const file = (name: string) => new Uint8Array(readFileSync(join(half, name)));
  const fromBytes = modelFromBytes(
    { config: file("config.json"), safetensors: file("model.safetensors"), vocab: file("vocab.json") },
    { runtime: nodeRuntime },
  );
  const loaded = await loadModel(half);
  const answers = [];
  for (const model of [fromBytes, loaded]) {
    const stream = model.stream();
    await stream.read("Mary went to the kitchen.");
    answers.push((await stream.ask("Where is Mary?")).answers);
    await model.release();
  }
  expect(answers[0]).toEqual(answers[1]);
});

test("the score is that of the rounded weights", async () => {
  expect(packaged.precision).toBe("float16");
  const { stdout } = await run(["eval", half, ...how, "--json"]);
  const { loss, accuracy } = JSON.parse(stdout) as { loss: number; accuracy: number };
  expect([packaged.score.loss, packaged.score.accuracy]).toEqual([loss, accuracy]);
  const before = await run(["eval", trained, ...how, "--state", "zero", "--json"]);
  expect((JSON.parse(before.stdout) as { loss: number }).loss).not.toBe(loss);
});
