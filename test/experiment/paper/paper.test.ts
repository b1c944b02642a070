/** `fwm paper`: what is committed is what the result files give; files of both versions are read; gaps are named. */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import "../../../experiments/index.ts";
import { DataError } from "../../../src/errors.ts";
import { buildPaper, type Paper, withTables } from "../../../src/experiment/paper/document.ts";
import { groupsOf, withSpread } from "../../../src/experiment/paper/groups.ts";
import { readResults } from "../../../src/experiment/paper/read.ts";
import { drawTransitive, traceTransitive } from "../../../src/experiment/paper/transitive.ts";
import { requireExperiment } from "../../../src/experiment/registry.ts";
import type { TextSettings } from "../../../src/experiment/text/settings.ts";
import type { AwdFwmSettings } from "../../../src/model/awdFwm.ts";
import { shippedModels } from "../../../src/store/shippedModels.ts";
import { run } from "../../cli/support.ts";
import { emptyFolder } from "../../data/support/tiny.ts";

const root = join(import.meta.dirname, "../../..");
const committed = (path: string): string => readFileSync(join(root, path), "utf8");

describe("what is committed", () => {
  let paper: Paper;

  beforeAll(async () => {
    const results = await readResults(join(root, "results"));
    const trace = await traceTransitive(shippedModels.answers);
    paper = await buildPaper(results, trace, { folder: "../results", readmeFolder: "results" });
  });

  test("is what the result files give: the page and the README's table", () => {
    expect(paper.page).toBe(committed("docs/results.md"));
    expect(withTables(committed("README.md"), paper.readme)).toBe(committed("README.md"));
  });

  test("so are the figures", () => {
    // Names alone are compared: a difference of drawings fills a terminal.
    const drawn = [...paper.figures].filter(([name]) => name !== "transitive-inference.svg");
    const same = drawn.filter(([name, svg]) => svg === committed(`results/figures/${name}`));
    expect(same.map(([name]) => name)).toEqual(drawn.map(([name]) => name));
  });

  test("the figure from the model too, but for the rounding of another processor", () => {
    const opacity = /fill-opacity="([\d.]+)"/g;
    const [now, before] = [
      paper.figures.get("transitive-inference.svg")!,
      committed("results/figures/transitive-inference.svg"),
    ];
    const [ours, theirs] = [now, before].map((svg) =>
      [...svg.matchAll(opacity)].map(([, value]) => Number(value)),
    );
    expect(ours).toHaveLength(theirs!.length);
    // One step of the rounding, 0.05.
    ours!.forEach((value, i) => {
      expect(Math.abs(value - theirs![i]!)).toBeLessThan(0.051);
    });
    const shape = (svg: string): string => svg.replace(opacity, "").replace(/fill="#\w+"/g, "");
    expect(shape(now)).toBe(shape(before));
  });
});

test("the shipped model answers the figure's question, and the figure is the same twice", async () => {
  const trace = await traceTransitive(shippedModels.answers);
  expect(trace.answer).toBe("wolf");
  expect(trace.rows).toHaveLength(3);
  for (const { shares } of trace.rows) expect(Math.max(...shares.map(Math.abs))).toBe(1);
  expect(drawTransitive(trace)).toBe(drawTransitive(await traceTransitive(shippedModels.answers)));
});

describe("result files", () => {
  test("of version 0.1 have today's names", async () => {
    const { runs } = await readResults(join(root, "results"));
    const agent = runs.find(({ file }) => file === "metarl-fwm-tuned-seed2")!;
    expect(agent.score!.return!.mean).toBeCloseTo(112.1465, 4);
    expect(agent.returns.at(-1)).toMatchObject({ episode: 25_000, heldOut: 112.024 });
    expect(runs.find(({ file }) => file === "catbabi-lm-fwm-mixed-seed1")!.initFrom).toBe(
      "catbabi-qa after 4800 steps",
    );
  });

  test("that are none are bad data", async () => {
    const folder = emptyFolder();
    writeFileSync(join(folder, "odd.json"), '{"curves": 3}');
    await expect(readResults(folder)).rejects.toThrow(DataError);
    const { code, stderr } = await run(["paper", "--results", folder, "--out", join(folder, "page.md")]);
    expect(code).toBe(3);
    expect(stderr).toContain("odd.json: not a result that this version understands");
  });
});

describe("seeds of one setting", () => {
  test("are one row with mean and spread, and each seed's own number", async () => {
    const folder = emptyFolder();
    const first = JSON.parse(committed("results/catbabi-qa-fwm-endless-without-curriculum.json")) as {
      seed: number;
      commit: string;
      settings: { training: { seed: number } };
      score: { accuracy: number };
    };
    for (const [seed, accuracy] of [
      [1, 0.99],
      [2, 0.98],
      [3, 0.97],
    ] as const) {
      const settings = { ...first.settings, training: { ...first.settings.training, seed } };
      const content = { ...first, seed, settings, score: { ...first.score, accuracy } };
      writeFileSync(join(folder, `run-seed${seed}.json`), JSON.stringify(content));
    }
    const results = await readResults(folder);
    expect(groupsOf(results.runs)).toHaveLength(1);
    const { page, readme } = await buildPaper(results, undefined, { folder: "r", readmeFolder: "r" });
    expect(page).toContain("98.00 ± 1.00 %");
    expect(page).toContain("[seed 2](r/run-seed2.json) 98.00 %");
    expect(readme).toContain("98.00 ± 1.00 %");
    expect(withSpread([1.5], 1)).toBe("1.5");
  });
});

test("agents on other graphs are a table of their own, seeds in one row", async () => {
  const folder = emptyFolder();
  const at = (mean: number) => ({ mean, standardError: 0.1, graphError: 0.4 });
  const write = (name: string, score: object): void => {
    const usual = { split: "fresh", graphs: 600, episodes: 50, length: 30, states: 5 };
    const baselines = { random: at(45), explorer: at(115), shortestPath: at(166) };
    const content = {
      experiment: "metarl-fwm-lessons",
      reportedBy: `fwm eval ${name}`,
      date: "2026-11-18T03:00:00.000Z",
      commit: "0123456789abcdef0123456789abcdef01234567",
      machine: null,
      score: { ...usual, ...baselines, ...score },
    };
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(content));
  };
  write("fresh-seed1", { return: at(112) });
  write("fresh-seed2", { return: at(114) });
  write("seven", { return: at(60), states: 7 });
  const results = await readResults(folder);
  expect(results.agents).toHaveLength(3);
  const { page } = await buildPaper(results, undefined, { folder: "r", readmeFolder: "r" });
  expect(page).toContain(
    "| `metarl-fwm-lessons` | 600 fresh | 5 | 30 | 50 | 113.00 ± 1.41 | 45.0 | 115.0 | 166.0 | " +
      "[fresh-seed1](r/fresh-seed1.json) 112.00 ± 0.10, [fresh-seed2](r/fresh-seed2.json) 114.00 ± 0.10 |",
  );
  expect(page).toContain("| `metarl-fwm-lessons` | 600 fresh | 7 | 30 | 50 | 60.00 |");
  expect(page).toContain("| [seven](r/seven.json) | 60.00 ± 0.10 | `fwm eval seven` |");
});

test("what was trained on is said in short in the README, in full in the page", async () => {
  const filed = JSON.parse(committed("results/catbabi-qa-fwm-endless-without-facts.json")) as {
    settings: { task: { curriculum: object[] } };
  };
  const { curriculum } = filed.settings.task;
  const said = async (task: object, data: string | null): Promise<{ page: string; readme: string }> => {
    const folder = emptyFolder();
    const settings = { ...filed.settings, task: { ...filed.settings.task, ...task } };
    writeFileSync(join(folder, "run.json"), JSON.stringify({ ...filed, settings, data }));
    return buildPaper(await readResults(folder), undefined, { folder: "r", readmeFolder: "r" });
  };
  const mixed = await said({ curriculum }, "three of four are generated");
  expect(mixed.readme).toContain("| 25 % real stories, 75 % generated, after a curriculum |");
  expect(mixed.page).toContain("[seed 1](r/run.json) 99.77 %: three of four are generated\n");
  const real = await said({ source: "real", rename: true, curriculum: [] }, null);
  expect(real.readme).toContain("| real stories under other names |");
  expect(real.page).not.toContain("Stories trained on");
  expect((await said({ source: "generated" }, "all")).readme).toContain("| generated stories, after");
});

describe("the README", () => {
  const readmeOf = async (files: Readonly<Record<string, object>>): Promise<string> => {
    const folder = emptyFolder();
    for (const [name, run] of Object.entries(files)) {
      writeFileSync(join(folder, `${name}.json`), JSON.stringify(run));
    }
    return (await buildPaper(await readResults(folder), undefined, { folder: "r", readmeFolder: "r" }))
      .readme;
  };
  const rowsOf = (readme: string, experiment: string): string[] =>
    readme.split("\n").filter((line) => line.startsWith(`| \`${experiment}\`:`));

  test("has of an experiment the settings that ran last, all seeds of them, unless no source is known", async () => {
    const { score, ...filed } = JSON.parse(committed("results/catbabi-qa-fwm-real-seed1.json")) as {
      score: object;
      settings: { training: object };
    };
    const run = (accuracy: number, date: string, more: object): object => ({
      ...filed,
      ...{ score: { ...score, accuracy }, date, ...more },
    });
    const shorter = { settings: { ...filed.settings, training: { ...filed.settings.training, steps: 5 } } };
    const unknown = { experiment: "catbabi-qa-fwm-muon", exactSource: false };
    const readme = await readmeOf({
      old: run(0.99, "2026-01-01", shorter),
      a: run(0.5, "2026-01-02", { seed: 1 }),
      b: run(0.7, "2026-01-03", { seed: 2, exactSource: false }),
      c: run(0.9, "2026-01-04", unknown),
    });
    expect(rowsOf(readme, "catbabi-qa-fwm-real")).toEqual([
      expect.stringMatching(
        /: \[seed 1\]\(r\/a\.json\) 50\.00 %, \[seed 2\]\(r\/b\.json\) † 70\.00 % \| \*\*60\.00 ± 14\.14 %\*\* /,
      ),
    ]);
    expect(rowsOf(readme, "catbabi-qa-fwm-muon")).toEqual([]);
  });

  test("has agents on the authors' task alone, with fresh graphs and the baseline beside", async () => {
    const lessons = JSON.parse(committed("results/metarl-fwm-lessons-seed1.json")) as object;
    const readme = await readmeOf({
      lessons,
      fresh: JSON.parse(committed("results/fresh-metarl-fwm-lessons-seed1.json")) as object,
      names: JSON.parse(committed("results/metarl-fwm-ten-names-seed1.json")) as object,
      corrected: JSON.parse(committed("results/metarl-fwm-corrected-seed1.json")) as object,
    });
    expect(rowsOf(readme, "metarl-fwm-lessons")).toEqual([
      "| `metarl-fwm-lessons`: [seed 1](r/lessons.json) 114.16 ± 0.13 | 3,000 | **114.16** | 113.82 |",
    ]);
    expect(readme).not.toMatch(/ten-names|corrected/);
    expect(readme).toMatch(/\| the authors' FWM \(their log\) \| 51,000 \| 107\.10 \|/);
    expect(readme).toMatch(/\| a baseline that .* \| 115\.\d\d \| 115\.\d\d \|$/m);
    expect(readme).not.toContain("LSTM");
  });
});

describe("equal budgets", () => {
  const filed = JSON.parse(committed("results/catbabi-qa-fwm-endless-without-curriculum.json")) as {
    settings: { system: object; training: object };
    score: object;
  };
  const run = (experiment: string, accuracy: number, training: object): string =>
    JSON.stringify({
      ...filed,
      experiment,
      steps: 1000,
      settings: { ...filed.settings, training: { ...filed.settings.training, ...training } },
      score: { ...filed.score, accuracy },
    });
  const pageOf = async (files: Readonly<Record<string, string>>) => {
    const folder = emptyFolder();
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.json`), text);
    return buildPaper(await readResults(folder), undefined, { folder: "r", readmeFolder: "r" });
  };

  test("stand in one table, the best first, with a figure over the time", async () => {
    const budget = { processorMinutes: 20, batch: 64, window: 200 };
    const { page, figures } = await pageOf({
      a: run("catbabi-qa-fwm", 0.5, budget),
      b: run("catbabi-qa-fwm-muon", 0.75, budget),
      c: run("catbabi-qa-fwm-decay", 0.9, { processorMinutes: 0, minutes: 0 }),
    });
    const [, section] = page.split("#### 20 minutes of processor time, question answering");
    const [table] = section!.trim().split("\n\n");
    const rows = table!.split("\n").slice(2);
    expect(rows).toHaveLength(2);
    expect(rows[0]).toMatch(/catbabi-qa-fwm-muon.* 64 \| 1,000 \| 12\.8 M .* 75\.00 % \| 96\.75 % /);
    expect(rows[1]).toMatch(/`catbabi-qa-fwm`.* 50\.00 %/);
    expect(figures.get("budget-qa-20-processor-minutes.svg")).toContain("<svg");
  });

  test("are of several experiments", async () => {
    const { page } = await pageOf({ a: run("catbabi-qa-fwm", 0.5, { minutes: 30 }) });
    expect(page).not.toContain("Equal budgets");
  });
});

test("language models stand beside the authors' seeds epoch by epoch", async () => {
  const folder = emptyFolder();
  const at = (epoch: number, perplexity: number) => ({
    step: Math.round(686 * epoch),
    values: { epoch, perplexity },
  });
  const filed = {
    ...{ experiment: "ptb-awd-fwm", command: "fwm train ptb-awd-fwm", commit: "a".repeat(40) },
    ...{ date: "2026-01-01", machine: null, steps: 1400, hours: 1, seed: 141 },
    settings: { task: { name: "text" } },
    curves: { valid: [at(0.5, 900), at(1, 333.25), at(2, 222.25)] },
    score: null,
  };
  writeFileSync(join(folder, "ptb-awd-fwm-seed141.json"), JSON.stringify(filed));
  const { page } = await buildPaper(await readResults(folder), undefined, { folder: "r", readmeFolder: "r" });
  expect(page).toContain(
    [
      "| epoch | authors, seed 141 | authors, seed 142 | authors, seed 143 | ours, [seed 141](r/ptb-awd-fwm-seed141.json) |",
      "| --- | --- | --- | --- | --- |",
      "| 1 | 312.6 | 440.7 | 314.1 | 333.3 |",
      "| 2 | 234.1 | 238.4 | 222.4 | 222.3 |",
    ].join("\n"),
  );
  expect(page).toContain("`ptb-awd-txl`: not run yet.");
  const few = "only [first epochs](#epoch-by-epoch)";
  expect(page).toContain(`| \`ptb-awd-fwm\` | AWD-FWM | 56.76 | ${few} | 54.48 | ${few} |`);
  expect(page).toContain(`| \`ptb-awd-fwm\` | ours | ${few} | ${few} | ${few} |`);
  expect(page).toContain("| `ptb-awd-txl` | ours | not run yet | not run yet | not run yet |");
});

test("a language model that was evaluated alone stands among the small ones, with the settings found for it", async () => {
  const folder = emptyFolder();
  const score = (perplexity: number) => ({ loss: 1, perplexity, bits: 1 });
  const content = {
    ...{ experiment: "wt2-fwm-small", reportedBy: "fwm eval models/wikitext-2", commit: "a".repeat(40) },
    ...{ date: "2026-01-01", machine: null },
    score: {
      ...{ model: "wikitext-2", split: "test", temperature: 1.04, ...score(198) },
      splits: { test: { ...score(198), plain: score(200), cache: score(150), dynamic: score(160) } },
      tuning: [{ temperature: 1, loss: Math.log(220) }],
      cache: { lambda: 0.1, theta: 0.3, window: 2000, tuning: [] },
      dynamic: { rate: 1e-4, decay: 0.02, segment: 20, tuning: [] },
    },
  };
  writeFileSync(join(folder, "shipped.json"), JSON.stringify(content));
  const { page } = await buildPaper(await readResults(folder), undefined, { folder: "r", readmeFolder: "r" });
  expect(page).toContain(
    "| `wt2-fwm-small`, the model `wikitext-2` |  |  |  |  |  |  | 220.00 | 200.00 | 198.00 | 150.00 | 160.00 | [shipped](r/shipped.json) |",
  );
  expect(page).toContain(
    "- [shipped](r/shipped.json): temperature 1.04; cache λ 0.1, θ 0.3, window 2,000; dynamic evaluation η 0.0001, λ 0.02, segments of 20 tokens",
  );
  expect(page).toContain("| [shipped](r/shipped.json) | perplexity 198.00 | `fwm eval models/wikitext-2` |");
});

test("small language models stand with what they cost and every way they were evaluated", async () => {
  const folder = emptyFolder();
  const score = (perplexity: number) => ({
    loss: Math.log(perplexity),
    perplexity,
    bits: Math.log2(perplexity),
  });
  const today = requireExperiment("ptb-fwm-small").settings as unknown as TextSettings;
  const optimizer = { ...today.training.optimizer, learningRate: 0.001 };
  const training = { ...today.training, optimizer, clip: 1 };
  const { outInit: _, ...released } = today.system as AwdFwmSettings;
  const filed = {
    ...{ experiment: "ptb-fwm-small", command: "fwm train ptb-fwm-small", commit: "a".repeat(40) },
    ...{ date: "2026-01-01", machine: null, steps: 1000, hours: 1, seed: 1, weights: 3_065_825 },
    // Of a version that had no such setting: it started the output map as PyTorch does.
    settings: { ...today, system: released, training },
    curves: { valid: [{ step: 1000, values: { epoch: 1.5, perplexity: 140 }, processorHours: 0.45 }] },
    score: {
      split: "all",
      ...score(128),
      splits: {
        valid: { ...score(135), plain: score(140) },
        test: { ...score(128), plain: score(130), cache: score(120), dynamic: score(118) },
      },
    },
  };
  writeFileSync(join(folder, "small.json"), JSON.stringify(filed));
  const { page, figures } = await buildPaper(await readResults(folder), undefined, {
    folder: "r",
    readmeFolder: "r",
  });
  expect(page).toContain(
    "| `ptb-fwm-small` | 3,065,825 | 0.001 | outInit pytorch, clip 1 | 1,000 | 1.4 M | 27 | 140.00 | 130.00 | 128.00 | 120.00 | 118.00 | [small](r/small.json) |",
  );
  expect(page).toMatch(/`ptb-lstm-small` .* not run yet/);
  expect(figures.get("ptb-small.svg")).toContain(">ptb-fwm-small<");
  // Scored on the test split alone, a validation perplexity comes from the search for a temperature.
  const { test: onTest } = filed.score.splits;
  const tuning = [0.99, 1, 1.01].map((temperature) => ({ temperature, loss: Math.log(141) }));
  const alone = { ...filed, score: { split: "test", ...score(128), splits: { test: onTest }, tuning } };
  writeFileSync(join(folder, "small.json"), JSON.stringify(alone));
  const again = await buildPaper(await readResults(folder), undefined, { folder: "r", readmeFolder: "r" });
  expect(again.page).toContain("| 27 | 141.00 | 130.00 | 128.00 |");
  // Another rate is a line of its own.
  const twice = { ...optimizer, learningRate: 0.002 };
  const faster = { ...filed, settings: { ...filed.settings, training: { ...training, optimizer: twice } } };
  writeFileSync(join(folder, "faster.json"), JSON.stringify(faster));
  const both = await buildPaper(await readResults(folder), undefined, { folder: "r", readmeFolder: "r" });
  for (const name of ["small", "faster"]) {
    expect(both.figures.get("ptb-small.svg")).toContain(`>ptb-fwm-small (${name})<`);
  }
});

test("two language models word by word: what they need, where it is shown, and where it comes from", async () => {
  const folder = emptyFolder();
  const losses = {
    ...{ reportedBy: "fwm compare a b --out losses.json", commit: "b".repeat(40), date: "2026-01-02" },
    ...{ machine: null, split: "test", tokens: 82_429 },
    models: [
      { model: "a", experiment: "ptb-lstm-small", bits: 7.25 },
      { model: "b", experiment: "ptb-fwm-small", bits: 7.125 },
    ],
    passages: [
      {
        at: 1234,
        words: ["the", "end"],
        bits: [
          [1, 2],
          [0.5, 2.5],
        ],
        difference: [0.5, -0.5],
      },
    ],
  };
  writeFileSync(join(folder, "losses.json"), JSON.stringify(losses));
  const { page, figures } = await buildPaper(await readResults(folder), undefined, {
    folder: "r",
    readmeFolder: "r",
  });
  expect(page).toContain(
    "over 82,429 words of the test split, `ptb-lstm-small` needs 7.250, `ptb-fwm-small` needs 7.125 bits per word. " +
      "Shown from word 1,234 on.",
  );
  expect(page).toContain("![Losses of ptb-lstm-small and ptb-fwm-small](r/figures/losses.svg)");
  expect(page).toContain(
    "| [losses](r/losses.json) | 7.250 and 7.125 bits per word | `fwm compare a b --out losses.json` |",
  );
  expect(figures.get("losses.svg")).toContain("from word 1234");
});

test("without results every table says so, and the command checks what it wrote", async () => {
  const folder = emptyFolder();
  cpSync(join(root, "results/stretch-catbabi-qa.json"), join(folder, "stretch.json"));
  const argv = [
    "paper",
    "--results",
    folder,
    "--out",
    join(folder, "page.md"),
    "--readme",
    join(folder, "r.md"),
  ];
  const missing = await run([...argv, "--check"]);
  expect(missing.code).toBe(3);
  expect((await run(argv)).code).toBe(0);
  const page = readFileSync(join(folder, "page.md"), "utf8");
  expect(page).toMatch(/`catbabi-qa-fwm` \| 693,985 \| 33,280 \| not run yet/);
  expect(page).toMatch(/`ptb-awd-fwm` \| AWD-FWM \| 56.76 \| not run yet \| 54.48 \| not run yet/);
  expect(page).toContain("Not run yet: Validation accuracy over steps.");
  expect((await run([...argv, "--check"])).stdout).toContain("nothing has changed");
});
