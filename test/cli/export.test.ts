/** `fwm export`: from a model folder to a file that a stock ONNX Runtime answers with, and what is refused. */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { loadModel } from "../../src/inference/load.ts";
import type { SystemSettings } from "../../src/model/registry.ts";
import { saveModelFolder } from "../../src/store/modelFolder.ts";
import { decodeModel, type Fed, faults, runFile } from "../compile/onnxFile.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { expectClose } from "../support/check.ts";
import { drawTokens, savedModel, smallSystems, streamed } from "../support/savedModel.ts";
import { run } from "./support.ts";

/** A model folder of a small system. */
async function modelFolder(system: SystemSettings): Promise<string> {
  const { path: _, ...content } = savedModel(system);
  return saveModelFolder(join(emptyFolder(), "model"), content);
}

// Nine steps of float32 through layer norms.
const tolerance = { rtol: 1e-3, atol: 1e-4 };

describe.each(Object.entries(smallSystems))("%s", (_, system) => {
  let folder: string;
  beforeAll(async () => {
    folder = await modelFolder(system);
  });

  test("the step form streams as the equations say", async () => {
    const file = join(emptyFolder(), "step.onnx");
    expect(await run(["export", folder, "--onnx", file, "--batch", "2", "--step"])).toMatchObject({
      code: 0,
    });
    const bytes = readFileSync(file);
    expect(faults(decodeModel(bytes))).toEqual([]);
    const tokens = drawTokens(9, 2);
    const want = streamed(system, tokens);
    let state = Object.fromEntries(
      Object.entries(want.state).map(([name, { shape, data }]): [string, Fed] => [
        name,
        { dtype: "f32", shape, data: new Float64Array(data.length) },
      ]),
    );
    for (const [t, row] of tokens.entries()) {
      const out = await runFile(bytes, { tokens: { dtype: "i32", shape: [2], data: row }, ...state });
      expectClose(out.logits!, want.logits[t]!, { ...tolerance, label: `logits ${t}` });
      state = Object.fromEntries(
        Object.entries(state).map(([name, { shape }]) => [
          name,
          { dtype: "f32", shape, data: out[`next_${name}`]! },
        ]),
      );
    }
    for (const [name, { data }] of Object.entries(want.state)) {
      expectClose(state[name]!.data, data, { ...tolerance, label: name });
    }
  });

  test("the window form gives the same at once", async () => {
    const file = join(emptyFolder(), "window.onnx");
    const { code, stdout } = await run([
      "export",
      folder,
      "--onnx",
      file,
      "--window",
      "9",
      "--batch",
      "2",
      "--json",
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ form: "window", batch: 2, window: 9 });
    const bytes = readFileSync(file);
    expect(faults(decodeModel(bytes))).toEqual([]);
    const tokens = drawTokens(9, 2);
    const want = streamed(system, tokens);
    const zeros = Object.entries(want.state).map(([name, { shape, data }]): [string, Fed] => [
      name,
      { dtype: "f32", shape, data: new Float64Array(data.length) },
    ]);
    const out = await runFile(bytes, {
      tokens: { dtype: "i32", shape: [9, 2], data: tokens.flat() },
      ...Object.fromEntries(zeros),
    });
    const logits = Float64Array.from(want.logits.flatMap((step) => [...step]));
    expectClose(out.logits!, logits, { ...tolerance, label: "logits" });
    for (const [name, { data }] of Object.entries(want.state)) {
      expectClose(out[`next_${name}`]!, data, { ...tolerance, label: name });
    }
  });
});

describe("the command", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await modelFolder(smallSystems.fwm);
  });

  test("says what it wrote", async () => {
    const file = join(emptyFolder(), "step.onnx");
    const { code, stdout } = await run(["export", folder, "--onnx", file, "--json"]);
    expect(code).toBe(0);
    const bytes = readFileSync(file);
    expect(JSON.parse(stdout)).toMatchObject({
      file,
      bytes: bytes.length,
      form: "step",
      batch: 1,
      window: null,
      model: folder,
      step: 12,
      inputs: [
        { name: "tokens", dtype: "i32", shape: [1] },
        { name: "h", dtype: "f32", shape: [1, 7] },
        { name: "c" },
        { name: "F", shape: [1, 9, 3] },
      ],
      outputs: [
        { name: "logits", shape: [1, 200] },
        { name: "next_h" },
        { name: "next_c" },
        { name: "next_F" },
      ],
    });
    const { metadataProps, graph } = decodeModel(bytes);
    const metadata = Object.fromEntries(metadataProps.map(({ key, value }) => [key, value]));
    expect(metadata["fwm.form"]).toBe("step");
    expect(metadata["fwm.step"]).toBe("12");
    expect(JSON.parse(metadata["fwm.config"]!)).toMatchObject({ settings: { system: smallSystems.fwm } });
    expect(JSON.parse(metadata["fwm.vocabulary"]!)).toEqual(catbabiVocabulary.words);
    expect([...graph!.input, ...graph!.output].every(({ docString }) => docString !== "")).toBe(true);
  });

  test("lists the ends for people", async () => {
    const { stdout } = await run(["export", folder, "--onnx", join(emptyFolder(), "step.onnx")]);
    expect(stdout).toMatch(/^in +tokens +i32\[1\] +numbers of the words/m);
    expect(stdout).toMatch(/^out +next_F +f32\[1, 9, 3\] +recurrent state F after/m);
  });

  test("replaces a file only when told to", async () => {
    const file = join(emptyFolder(), "step.onnx");
    writeFileSync(file, "mine");
    const refused = await run(["export", folder, "--onnx", file]);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("--yes");
    expect(readFileSync(file, "utf8")).toBe("mine");
    expect((await run(["export", folder, "--onnx", file, "--yes"])).code).toBe(0);
    expect(faults(decodeModel(readFileSync(file)))).toEqual([]);
    expect(readdirSync(join(file, ".."))).toEqual(["step.onnx"]);
  });

  test("refuses what does not fit together", async () => {
    const place = emptyFolder();
    const file = join(place, "step.onnx");
    mkdirSync(join(place, "folder"));
    const code = async (...argv: string[]) => (await run(["export", ...argv])).code;
    expect(await code(folder)).toBe(2);
    expect(await code(folder, "--onnx", file, "--step", "--window", "5")).toBe(2);
    expect(await code(folder, "--onnx", file, "--window", "0")).toBe(2);
    expect(await code(folder, "--onnx", join(place, "folder"))).toBe(2);
    expect(await code(join(place, "nothing"), "--onnx", file)).toBe(3);
    expect(await code(folder, "--onnx", join(place, "absent", "step.onnx"))).toBe(1);
    expect(readdirSync(place)).toEqual(["folder"]);
  });

  test("refuses a model it does not understand, and names the file", async () => {
    const file = join(emptyFolder(), "step.onnx");
    const other = await saveModelFolder(join(emptyFolder(), "model"), {
      config: {
        ...{ format: "fwm-model", version: 2, kind: "catbabi", experiment: "x" },
        settings: { system: { name: "perceptron", vocabulary: 200 } },
      },
      model: {},
    });
    const { code, stderr } = await run(["export", other, "--onnx", file]);
    expect(code).toBe(3);
    expect(stderr).toContain(join(other, "config.json"));
  });
});

describe("the example in docs/browser.md", () => {
  const root = join(import.meta.dirname, "../..");
  const text = readFileSync(join(root, "docs/browser.md"), "utf8");
  const source = /```js\n([\s\S]*?)```/.exec(text)![1]!;

  test("is short, and needs nothing of ours", () => {
    expect(source.trim().split("\n").length).toBeLessThanOrEqual(20);
    const imported = [...source.matchAll(/from "([^"]+)"/g)].map(([, name]) => name);
    expect(imported).toEqual(["node:fs/promises", "onnxruntime-node"]);
  });

  const example = /of "(.*)"\.split/.exec(source)![1]!.split(" ");

  test("reads the words that a stream reads, `<eos>` before them", async () => {
    const model = await loadModel(await modelFolder(smallSystems.fwm));
    const { trace } = await model.stream().ask(example.slice(1));
    expect(example).toEqual(trace.words);
    await model.release();
  });

  test("answers as the equations do", async () => {
    const system = smallSystems.fwm;
    const folder = await modelFolder(system);
    const place = emptyFolder();
    await run(["export", folder, "--onnx", join(place, "step.onnx")]);
    const placed = source
      .replace('"step.onnx"', JSON.stringify(join(place, "step.onnx")))
      .replace('"vocab.json"', JSON.stringify(join(folder, "vocab.json")));
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--input-type=module", "--eval", placed],
      { cwd: root },
    );
    const { words } = catbabiVocabulary;
    const told = example.map((word) => [words.indexOf(word)]);
    const logits = streamed(system, told).logits.at(-1)!;
    expect(stdout.trim()).toBe(words[logits.indexOf(Math.max(...logits))]);
  });
});

test.each([
  ["export", "--onnx"],
  ["package", "--out"],
])("%s looks where it is to write before it looks at the model", async (name, option) => {
  const folder = emptyFolder();
  writeFileSync(join(folder, "file"), "");
  const { code, stderr } = await run([
    name,
    join(folder, "absent"),
    option,
    join(folder, "file", "deep", "x"),
  ]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("a part of the path is not a folder")]);
});
