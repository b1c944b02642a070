/**
 * The examples of docs/engine.md, run as they stand (only the package's name becomes the path of its source), and its
 * example of an op, checked like every op of the table. Of all pages: examples are right in strict TypeScript, links
 * lead somewhere, and numbers that name a result file are those of the file.
 */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, test, vi } from "vitest";
import { gradients } from "../src/compile/grad.ts";
import { printGraph } from "../src/compile/print.ts";
import { simplify } from "../src/compile/simplify.ts";
import * as engine from "../src/engine.ts";
import {
  add,
  constant,
  input,
  matmul,
  opTable,
  scan,
  state,
  type Tensor,
  tanh,
  zeros,
} from "../src/graph/index.ts";
import type { Value } from "../src/graph/op.ts";
import { interpret } from "../src/runtime/oracle.ts";
import { centralDifferences, expectClose, normals, runOrt, weightedSum } from "./support/check.ts";

const root = join(import.meta.dirname, "..");
const page = readFileSync(join(root, "docs/engine.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "fwm-docs-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The blocks of a section, by language. */
function blocks(title: string, language: string): string[] {
  const section = page.split(/^#+ /m).find((part) => part.startsWith(`${title}\n`));
  if (!section) throw new Error(`docs/engine.md has no section ${title}`);
  return [...section.matchAll(/```(\w*)\n([\s\S]*?)```/g)].filter((m) => m[1] === language).map((m) => m[2]!);
}

const href = (path: string): string => JSON.stringify(pathToFileURL(join(root, path)).href);

/** Runs an example and gives what it printed, line by line. */
async function printed(name: string, code: string): Promise<string[]> {
  const file = join(folder, `${name}.mts`);
  writeFileSync(file, code.replace(/from "fwm\/engine"/g, `from ${href("src/engine.ts")}`));
  const log = vi.spyOn(console, "log").mockReturnValue();
  try {
    await import(/* @vite-ignore */ file);
    return log.mock.calls.map((values) => values.map(String).join(" "));
  } finally {
    log.mockRestore();
  }
}

describe("docs/engine.md", () => {
  test("two layers, a loss and an Adam step take fifteen lines, and the loss falls", async () => {
    const [code] = blocks("Two layers, a loss and an Adam step", "ts");
    const lines = code!.split("\n").filter((line) => line.trim() !== "");
    expect(lines.length).toBeLessThanOrEqual(15);
    const losses = (await printed("network", code!)).map(Number);
    // Exclusive or starts near log 2, cannot be had below it without the hidden layer, and ends near 0.
    expect(losses).toHaveLength(3);
    expect(losses[0]).toBeGreaterThan(0.5);
    expect(losses[1]).toBeLessThan(0.1);
    expect(losses[2]).toBeLessThan(losses[1]!);
  });

  test.each(["Loops", "Programs and state", "The oracle", "Random numbers", "Errors"])(
    "%s",
    async (title) => {
      for (const [i, code] of blocks(title, "ts").entries()) {
        const want = [...code.matchAll(/console\.log\(.*\/\/ → (.*)$/gm)].map((m) => m[1]);
        expect(want.length).toBeGreaterThan(0);
        expect(await printed(`${title.replaceAll(" ", "-")}-${i}`, code)).toEqual(want);
      }
    },
  );

  test("the printed graph is what is printed", () => {
    const W = state("W", [3, 3]);
    const { ys } = scan({ carry: [zeros([2, 3])], xs: [input("x", [5, 2, 3])] }, ([h], [xt]) => {
      const next = tanh(add(matmul(h!, W), xt!));
      return { carry: [next], ys: [next] };
    });
    expect(blocks("Passes", "text")).toEqual([`${printGraph(simplify(ys))}\n`]);
  });

  test("every op it lists is part of the engine, and every op of the graph is listed", () => {
    const table = page.slice(page.indexOf("| family | ops |"), page.indexOf("`crossEntropy(logits"));
    const listed = [...table.matchAll(/`([^`]+)`/g)].flatMap((m) => m[1]!.split(" "));
    const names = listed.filter((name) => !["transA", "transB"].includes(name));
    for (const name of names) expect(engine, name).toHaveProperty(name);
    const composed = new Set([
      "triangle",
      "classLoss",
      "input",
      "state",
      "param",
      "randomMask",
      "constant",
      "softplus",
    ]);
    for (const name of opTable.keys()) if (!composed.has(name)) expect(names).toContain(name);
  });

  test("the op it adds passes the checks of every op", async () => {
    const [code] = blocks("Adding an op", "ts");
    const file = join(folder, "softplus.ts");
    writeFileSync(
      file,
      code!
        .replace('"../op.ts"', href("src/graph/op.ts"))
        .replace('"../tensor.ts"', href("src/graph/tensor.ts"))
        .replace('"./elementwise.ts"', href("src/graph/ops/elementwise.ts")),
    );
    const { softplus } = (await import(/* @vite-ignore */ file)) as { softplus(x: Tensor): Tensor };
    expect(opTable.get("softplus")!.samples).toHaveLength(3);
    for (const { inputs } of opTable.get("softplus")!.samples) {
      const x = input("x", inputs[0] as number[]);
      const values = new Map<Tensor, Value>([[x, normals(x.shape, 3, 4)]]);
      const y = softplus(x);
      const want = interpret([y], values)[0]!.data;
      expectClose((await runOrt([y], values))[0]!, want, { rtol: 2e-5, atol: 2e-6 });
      const weights = normals(x.shape, 4).data;
      const [dx] = gradients([y], [constant(weights, x.shape)], [x]);
      const differences = centralDifferences(
        (data) => weightedSum([y], [weights], new Map([[x, { shape: x.shape, data }]])),
        values.get(x)!.data,
      );
      expectClose(interpret([dx!], values)[0]!.data, differences, { rtol: 1e-6, atol: 1e-7 });
    }
  });
});

const pages = [
  "examples/own-model/README.md",
  "examples/browser/README.md",
  "README.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "results/README.md",
  "src/README.md",
  "web/README.md",
].concat(
  readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
);

/** The anchors of a page's headings, as GitHub makes them. */
function anchors(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map((m) =>
    m[1]!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test("examples that import the package are right in strict TypeScript", () => {
  const place = join(folder, "strict");
  mkdirSync(place);
  let count = 0;
  for (const name of pages) {
    const text = readFileSync(join(root, name), "utf8");
    for (const [, code] of text.matchAll(/```ts\n([\s\S]*?)```/g)) {
      // A bundler's imports (?url) are the bundler's to type.
      if (!/from "fwm/.test(code!) || code!.includes("?url")) continue;
      writeFileSync(join(place, `${name.replace(/\W/g, "-")}-${count++}.mts`), code!);
    }
  }
  expect(count).toBeGreaterThan(15);
  writeFileSync(join(place, "wrong.mts"), 'import { input } from "fwm/engine";\ninput(1);\n');
  const source = (path: string): string[] => [join(root, "src", path)];
  const settings = {
    compilerOptions: {
      strict: true,
      noEmit: true,
      target: "es2023",
      module: "nodenext",
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")],
      allowImportingTsExtensions: true,
      skipLibCheck: true,
      paths: {
        fwm: source("index.ts"),
        "fwm/engine": source("engine.ts"),
        "fwm/inference": source("inference/index.ts"),
        "fwm/model": source("model/index.ts"),
        zod: [join(root, "node_modules/zod/index.d.ts")],
      },
    },
    include: ["*.mts"],
  };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify(settings));
  const compiler = join(root, "node_modules/@typescript/native/bin/tsc");
  const { stdout } = spawnSync(process.execPath, [compiler, "-p", place], { encoding: "utf8", cwd: place });
  // The sources have settings of their own.
  const errors = stdout.split("\n").filter((line) => /^[\w.-]+\.mts\(/.test(line));
  expect(errors).toEqual([expect.stringMatching(/^wrong\.mts\(2,/)]);
});

describe.each(pages)("%s", (name) => {
  const text = readFileSync(join(root, name), "utf8");

  test("links lead to files and headings that are there", () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
    for (const [, path = "", anchor] of links) {
      const target = path === "" ? join(root, name) : join(root, name, "..", path);
      expect(existsSync(target), `${path} of ${name}`).toBe(true);
      if (anchor) expect(anchors(readFileSync(target, "utf8")), `${path}#${anchor}`).toContain(anchor);
    }
  });

  test("numbers beside a result file are the file's", () => {
    // A row of a table or a sentence, and the result it links to.
    const passages = text.split(/\n(?=\|)|\n\n|\. (?=[A-Z])/);
    const ofReturns = new Set(returnTables(text).flatMap(({ rows }) => rows));
    for (const passage of passages.filter((part) => !ofReturns.has(part))) {
      for (const file of resultsNamed(passage)) {
        const wanted = scoreOf(readResult(name, file));
        if (wanted) expect(passage.replaceAll("**", ""), file).toContain(wanted);
      }
    }
  });

  test("results of which the exact source is not known have a dagger, and the page says what it means", () => {
    const rows = new Set([...text.matchAll(/^\|.*$/gm)].map(([row]) => row));
    const passages = [...rows, ...text.split(/\n\n|\. (?=[A-Z])/).filter((part) => !part.includes("\n|"))];
    for (const passage of passages) {
      const unknown = resultsNamed(passage).filter((file) => !isClean(readResult(name, file)));
      const marks = unknown.map((file) => passage.slice(passage.indexOf(file)));
      for (const mark of marks) expect(mark, name).toMatch(/^[^)]*\),?(?: seed \d)? †/);
      if (unknown.length > 0) expect(text).toMatch(/^† /m);
    }
  });

  test("returns in a table are the result file's, episode for episode", () => {
    for (const { columns, rows } of returnTables(text)) {
      for (const row of rows) {
        const [file] = resultsNamed(row);
        if (!file) continue;
        const result = readResult(name, file);
        const cells = cellsOf(row).map((cell) => cell.replaceAll("**", ""));
        columns.forEach((episode, i) => {
          if (i === 0) return;
          const point = returnsOf(result).find((reached) => reached.episode === episode);
          expect(cells[i], `${file}, column ${i}`).toBe(
            episode ? (point?.mean.toFixed(1) ?? "") : scoreOf(result),
          );
        });
      }
    }
  });
});

/** What is read of a result file; `reward` and `rewards` are the names of version 0.1. */
interface Result {
  commit?: string | null;
  score?: {
    accuracy?: number;
    return?: { mean: number; standardError: number };
    reward?: { mean: number; standardError: number };
  } | null;
  returns?: { episode: number; heldOut: number }[];
  rewards?: { episode: number; test: number }[];
}

/** Whether the commit it was trained at is the source. */
function isClean({ commit }: Result): boolean {
  return typeof commit === "string" && !commit.endsWith("-dirty");
}

/** Mean returns of an agent on graphs it is not trained on. */
function returnsOf({ returns, rewards }: Result): { episode: number; mean: number }[] {
  if (returns) return returns.map(({ episode, heldOut }) => ({ episode, mean: heldOut }));
  return rewards!.map(({ episode, test }) => ({ episode, mean: test }));
}

function readResult(page: string, file: string): Result {
  return JSON.parse(readFileSync(join(root, page, "..", file), "utf8")) as Result;
}

/** The result files a passage links to. */
function resultsNamed(passage: string): string[] {
  return [...passage.matchAll(/\]\(([^)\s]*results\/[^)\s]+\.json)\)/g)].map(([, file]) => file!);
}

/** The score as pages write it. */
function scoreOf({ score }: Result): string | undefined {
  const reached = score?.return ?? score?.reward;
  if (reached) return `${reached.mean.toFixed(2)} ± ${reached.standardError.toFixed(2)}`;
  return score?.accuracy === undefined ? undefined : `${(100 * score.accuracy).toFixed(2)} %`;
}

function cellsOf(row: string): string[] {
  return row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

/** The tables of returns: the episode of each column, if it is one, and the rows. */
function returnTables(text: string): { columns: (number | undefined)[]; rows: string[] }[] {
  return [...text.matchAll(/(?:^\|.*\n?)+/gm)].flatMap(([found]) => {
    const [head, , ...rows] = found.trimEnd().split("\n");
    const columns = cellsOf(head!).map((cell) => {
      const [, episode] = /^([\d,]+)(?: episodes)?$/.exec(cell) ?? [];
      return episode === undefined ? undefined : Number(episode.replaceAll(",", ""));
    });
    return columns.some((episode) => episode !== undefined) ? [{ columns, rows }] : [];
  });
}

test("README.md counts the source's lines", () => {
  const tally = (folder: string): [files: number, lines: number] =>
    readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8").split("\n").length - 1)
      .reduce(([files, lines], length) => [files + 1, lines + length], [0, 0]);
  const [files, lines] = tally(join(root, "src"));
  const said = /(\d+) files, ([\d,]+) lines/.exec(readFileSync(join(root, "README.md"), "utf8"))!;
  const numbers = said.slice(1).map((number) => Number(number.replaceAll(",", "")));
  [files, lines].forEach((count, i) => {
    expect(Math.abs(numbers[i]! - count)).toBeLessThanOrEqual(0.02 * count);
  });
});
