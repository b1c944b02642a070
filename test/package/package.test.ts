/** The package as another project sees it: installed from its tarball, without the optional packages. */
import { execFile } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { median } from "../../src/statistics.ts";
import { installedPackages, packedProject } from "./project.ts";

const root = join(import.meta.dirname, "../..");
let project: string;
beforeAll(async () => {
  project = await packedProject();
});

/** Runs a program in the project. */
async function node(...words: string[]): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(process.execPath, words, { cwd: project, encoding: "utf8" });
}

const program = (code: string) => node("--input-type=module", "-e", code);

describe("installed in another project", () => {
  test("has no package for figures or browsers, and few others", () => {
    for (const name of ["vega", "vega-lite", "onnxruntime-web"]) {
      expect(existsSync(join(project, "node_modules", name)), name).toBe(false);
    }
    // 141 with the optional ones; each is a download and a risk.
    expect(installedPackages().length).toBeLessThanOrEqual(45);
  });

  test("loads the shipped models without a path, by name, and by its entry models/", async () => {
    const { stdout } = await program(`
      import { readFileSync } from "node:fs";
      import { createRequire } from "node:module";
      import { experimentNames, loadModel, rollOut } from "fwm";
      const model = await loadModel();
      const stream = model.stream();
      await stream.read("mary went to the garden .");
      console.log((await stream.ask("where is mary ?")).answers[0].word);
      await model.release();
      console.log((await (await loadModel("catbabi-qa")).release()) ?? "by name");
      console.log((await rollOut("metarl", { seed: 1, episodes: 1 })).episodes[0].steps.length);
      const config = createRequire(import.meta.url).resolve("fwm/models/catbabi-qa/config.json");
      console.log(JSON.parse(readFileSync(config, "utf8")).kind);
      console.log(experimentNames().includes("catbabi-qa-fwm"));
    `);
    expect(stdout.trim().split("\n")).toEqual(["garden", "by name", "30", "catbabi", "true"]);
  });

  test("says what to install for a figure, and for a browser's runtime", async () => {
    const message = async (code: string) =>
      (
        await program(`${code}.catch((error) => console.log(error.name + ": " + error.message))`)
      ).stdout.trim();
    expect(await message('await (await import("fwm/engine")).loadWebRuntime()')).toBe(
      "UsageError: loadWebRuntime needs onnxruntime-web, which is not installed\n  hint  npm install onnxruntime-web",
    );
    const figure = join(project, "node_modules/fwm/dist/src/report/figure.js");
    expect(
      await message(
        `await (await import(${JSON.stringify(figure)})).drawFigure({ title: "", x: "", y: "", lines: [] })`,
      ),
    ).toBe(
      "UsageError: a figure needs vega and vega-lite, which are not installed\n  hint  npm install vega vega-lite",
    );
  });

  test("fwm/inference is imported in a fraction of a second", async () => {
    // Time of the processor: other tests run beside this one.
    const time = async (code: string) => {
      const spent = "const { user, system } = process.cpuUsage(); console.log((user + system) / 1000);";
      const times: number[] = [];
      for (let i = 0; i < 5; i++) times.push(Number((await program(`${code};${spent}`)).stdout));
      return median(times);
    };
    const own = (await time('import "fwm/inference"')) - (await time(""));
    console.info(`import "fwm/inference": ${own.toFixed(0)} ms beyond Node's own start`);
    // 0.2 s when it was written; ONNX Runtime and Vega, loaded when they are asked for, would double it.
    expect(own).toBeLessThan(600);
  });

  test("examples/own-model is right in strict TypeScript, trains, and recalls", async () => {
    const place = join(project, "own-model");
    cpSync(join(project, "node_modules/fwm/examples/own-model"), place, { recursive: true });
    const settings = {
      compilerOptions: {
        strict: true,
        noUncheckedIndexedAccess: true,
        target: "es2023",
        module: "nodenext",
        rewriteRelativeImportExtensions: true,
        outDir: "dist",
        types: ["node"],
        typeRoots: [join(root, "node_modules/@types")],
        skipLibCheck: true,
      },
      include: ["*.ts"],
    };
    writeFileSync(join(place, "tsconfig.json"), JSON.stringify(settings));
    const compiler = join(root, "node_modules/@typescript/native/bin/tsc");
    const types = () => promisify(execFile)(process.execPath, [compiler, "-p", place]);
    writeFileSync(join(place, "wrong.ts"), 'import { loadModel } from "fwm";\nawait loadModel(1);\n');
    const { stdout: errors } = await types().catch((error: { stdout: string }) => error);
    expect(errors.trim().split("\n")).toEqual([expect.stringMatching(/wrong\.ts\(2,.*'number'.*'string'/)]);
    rmSync(join(place, "wrong.ts"));
    await types();
    const { stdout } = await node(join(place, "dist/train.js"), join(project, "runs/recall"));
    console.info(stdout.trim().split("\n").at(-1));
    expect(stdout).toMatch(/^step 750: validation accuracy /m);
    // One of eight values by chance, one of four for a model that only knows which were named.
    expect(Number(/test accuracy ([\d.]+)/.exec(stdout)![1])).toBeGreaterThan(0.9);
    expect(JSON.parse(readFileSync(join(project, "runs/recall/run.json"), "utf8"))).toMatchObject({
      experiment: "recall-gated-fwm",
      state: "finished",
    });
  });
});
