/**
 * `fwm data`: prepare catbAbI, count it, solve bAbI files by rules, and write new ones.
 */
import { join } from "node:path";
import {
  allTasks,
  formatTasks,
  parseTasks,
  type SplitName,
  splitNames,
  type Variant,
} from "../data/catbabi.ts";
import { table, thousands } from "../report/table.ts";
import { command, group } from "./command.ts";
import { downloadDisplay } from "./downloadDisplay.ts";
import type { Output } from "./output.ts";
import { flag, folder, integer, oneOf, text, value } from "./params.ts";
import { prepareStoriesCommand } from "./prepareStories.ts";
import { prepareTextCommands } from "./prepareText.ts";

const variants = ["10k", "1k"] as const satisfies readonly Variant[];
const variant = oneOf(variants, { default: "10k", help: "questions per task" });
const tasks = value(
  { placeholder: "tasks", default: allTasks, help: "only these tasks: 1,2,15-17" },
  parseTasks,
);

const prepareCatbabiCommand = command({
  name: "catbabi",
  summary: "Turn bAbI's task files into catbAbI streams, ready to train on.",
  details:
    "Without --from the official archive is downloaded and checked. The result goes to --out, or to " +
    "catbabi-<variant> under $FWM_DATA (default ~/.cache/fwm/data). See docs/data.md.",
  examples: [
    { line: "fwm data prepare catbabi", trial: "fwm data prepare catbabi --from $BABI --allow-missing" },
    {
      line: "fwm data prepare catbabi --from babi-en-valid-10k.tar.gz --fill-missing generated",
      trial:
        "fwm data prepare catbabi --variant 1k --from $BABI --tasks 1 --allow-missing --fill-missing generated",
    },
    {
      line: "fwm data prepare catbabi --variant 1k --tasks 1,2,15-17 --out catbabi-small",
      trial:
        "fwm data prepare catbabi --variant 1k --tasks 1,15 --from $BABI --allow-missing --out $EMPTY/small",
    },
  ],
  options: {
    variant,
    from: text({ placeholder: "folder or .tar.gz", help: "a local copy instead of a download" }),
    tasks,
    keepLastStory: flag({ help: "keep the last story of each file, which the paper's counts leave out" }),
    allowMissing: flag({ help: "go on when task files are missing or partial" }),
    fillMissing: oneOf(["generated"], {
      help: "complete training files that are missing or partial to their official size with new stories",
    }),
    seed: integer({ default: 1, help: "seed of the stories of --fill-missing" }),
    out: folder({ help: "the folder to write; one with prepared data is replaced" }),
  },
  blocking: true,
  run: async ({ options, out, env, signal }) => {
    const { dataRoot, prepareCatbabi, preparedName } = await import("../data/sources/prepare.ts");
    const { headerName, writePrepared } = await import("../data/sources/prepared.ts");
    const { generateStory } = await import("../babi/generator/generate.ts");
    const { checkReplaceable } = await import("../data/sources/replace.ts");
    const root = dataRoot(env);
    const path = options.out ?? join(root, preparedName(options));
    await checkReplaceable(path, headerName);
    const download = downloadDisplay(out);
    const { provenance, splits } = await prepareCatbabi({
      ...options,
      downloads: join(root, "downloads"),
      ...(options.fillMissing === undefined ? {} : { fill: { generate: generateStory, seed: options.seed } }),
      signal,
      onNote: (text) => out.note(text),
      onDownload: download.update,
    }).finally(download.stop);
    const header = await writePrepared(path, provenance, splits);
    warnAbout(header, out);
    out.result({ path, ...header }, () => {
      const rows = splitNames.map((name) => {
        const { stories, questions, tokens } = header.splits[name];
        return [name, stories, questions, tokens];
      });
      return `${table([["split", "stories", "questions", "tokens"], ...rows])}written to ${path}`;
    });
  },
});

const statsCommand = command({
  name: "stats",
  summary: "Count the stories, questions and tokens of prepared catbAbI beside the paper's table.",
  examples: ["fwm data stats catbabi", "fwm data stats catbabi --json"],
  args: { dataset: oneOf(["catbabi"]) },
  options: {
    variant,
    data: folder({ help: "the prepared folder, if it is not in its usual place" }),
  },
  run: async ({ options, out, env }) => {
    const { dataRoot, preparedName } = await import("../data/sources/prepare.ts");
    const { loadPrepared } = await import("../data/sources/prepared.ts");
    const { catbabiStatistics } = await import("../data/sources/statistics.ts");
    const usual = { variant: options.variant, tasks: allTasks, keepLastStory: false };
    const path = options.data ?? join(dataRoot(env), preparedName(usual));
    const statistics = catbabiStatistics(await loadPrepared(path));
    warnAbout(statistics, out);
    out.result({ path, ...statistics }, () => {
      const { splits, vocabulary } = statistics;
      const totals = splitNames.map((name) => {
        const { stories, questions, tokens, paper } = splits[name];
        const beside = paper ? [paper.stories, paper.questions, paper.tokens] : ["-", "-", "-"];
        return [name, stories, questions, tokens, ...beside];
      });
      const perTask = statistics.tasks.map((task) => [
        `task ${task}`,
        ...splitNames.flatMap((name) => {
          const { stories = 0, questions = 0, tokens = 0 } = splits[name].perTask[task] ?? {};
          return [`${thousands(stories)} / ${thousands(questions)}`, tokens];
        }),
      ]);
      return [
        `${statistics.variant === "own" ? "own stories" : `catbAbI ${statistics.variant}`}, ` +
          `tasks ${formatTasks(statistics.tasks)}, vocabulary ${vocabulary}`,
        "",
        table(
          [["split", "stories", "questions", "tokens", "paper: stories", "questions", "tokens"], ...totals],
          out.tableWidth,
        ),
        table(
          [["stories / questions", ...splitNames.flatMap((name) => [name, "tokens"])], ...perTask],
          out.tableWidth,
        ),
      ].join("\n");
    });
  },
});

const solveCommand = command({
  name: "solve",
  summary: "Let the symbolic reader answer every question of bAbI files, and compare.",
  examples: [
    { line: "fwm data solve babi-v1.2/en-valid-10k", trial: "fwm data solve $BABI/en-valid-10k" },
    {
      line: "fwm data solve babi-en-valid-10k.tar.gz --split test --json",
      trial: "fwm data solve $BABI/en-valid-10k --split test --json",
    },
  ],
  args: { folder: folder({ help: "folder with qa1_test.txt …, or a .tar.gz archive" }) },
  options: { variant, split: oneOf(splitNames, { help: "default: valid and test" }), tasks },
  blocking: true,
  run: async ({ args, options, out }) => {
    const { solveFiles } = await import("../data/sources/solve.ts");
    const splits: readonly SplitName[] = options.split === undefined ? ["valid", "test"] : [options.split];
    const bar = out.progress({ label: "solving", total: splits.length * options.tasks.length });
    const solution = await solveFiles(args.folder, { ...options, splits, onFile: bar.update }).finally(
      bar.stop,
    );
    out.result(solution, () => {
      const percent = ({ questions, correct }: { questions: number; correct: number }) =>
        `${((100 * correct) / questions).toFixed(2)}%`;
      const rows = Object.entries(solution.perTask).map(([task, score]) => [
        `task ${task}`,
        score.questions,
        score.correct,
        percent(score),
      ]);
      const all = ["all", solution.questions, solution.correct, percent(solution)];
      const shown = solution.exceptions
        .slice(0, 20)
        .map(
          ({ where, question, expected, got, reason }) =>
            `${where}: ${question}? file: ${expected}, reader: ${got ?? "no answer"} (${reason})`,
        );
      const more = solution.exceptions.length - shown.length;
      return [
        table([["", "questions", "correct", ""], ...rows, all]),
        ...shown,
        ...(more > 0 ? [`and ${more} more; --json lists all`] : []),
      ].join("\n");
    });
  },
});

const generateCommand = command({
  name: "generate",
  summary: "Write new stories in bAbI's own format, as many as you like.",
  details:
    "Writes qa<task>_<split>.txt to --out. The same seed gives the same bytes; each split has stories of its own.",
  examples: [
    {
      line: "fwm data generate --stories 1000 --out babi-new",
      trial: "fwm data generate --stories 3 --out $EMPTY/a",
    },
    {
      line: "fwm data generate --task 1-3,15 --stories 100 --seed 7 --split test --out babi-new",
      trial: "fwm data generate --task 1-3,15 --stories 2 --seed 7 --split test --out $EMPTY/b",
    },
  ],
  options: {
    task: value(
      { placeholder: "tasks", default: allTasks, help: "which tasks: 1-20, 1,2,15-17" },
      parseTasks,
    ),
    stories: integer({ required: true, min: 1, help: "stories per task" }),
    seed: integer({ default: 1, help: "seed of the stories" }),
    split: oneOf(splitNames, { default: "train", help: "the split that the files are named after" }),
    out: folder({ required: true, help: "the folder to write; files that are there are left alone" }),
  },
  blocking: true,
  run: async ({ options, out }) => {
    const { generateFiles } = await import("../data/sources/generate.ts");
    const bar = out.progress({ label: "writing", total: options.task.length });
    const files = await generateFiles({ ...options, tasks: options.task, onFile: bar.update }).finally(
      bar.stop,
    );
    out.result({ out: options.out, seed: options.seed, files }, () => {
      const rows = files.map(({ name, stories, questions, bytes }) => [name, stories, questions, bytes]);
      return `${table([["file", "stories", "questions", "bytes"], ...rows])}written to ${options.out}`;
    });
  },
});

const graphsCommand = command({
  name: "graphs",
  summary:
    "Play the random graphs by chance, exploring, and by shortest paths, beside independent check values.",
  examples: [
    { line: "fwm data graphs", trial: "fwm data graphs --seeds 2 --episodes 1" },
    { line: "fwm data graphs --seeds 30 --json", trial: "fwm data graphs --seeds 2 --episodes 1 --json" },
  ],
  options: {
    seeds: integer({ min: 2, default: 12, help: "draws of 600 graphs" }),
    episodes: integer({ min: 1, default: 6, help: "episodes on each draw" }),
  },
  blocking: true,
  run: async ({ options, out }) => {
    const { checkBaselines } = await import("../environment/index.ts");
    const seeds = Array.from({ length: options.seeds }, (_, i) => 100 + i);
    const checks = checkBaselines(seeds, options.episodes);
    out.result({ checks }, () =>
      table([
        ["baseline", "rules", "mean total", "± s.e.", "check value"],
        ...checks.map(({ baseline, rules, mean, standardError, expected }) => [
          baseline,
          rules,
          mean.toFixed(2),
          standardError.toFixed(2),
          expected?.toFixed(1) ?? "",
        ]),
      ]),
    );
  },
});

const prepareCommands = group({
  name: "prepare",
  summary: "Turn files into data that is ready to train on.",
  commands: [prepareCatbabiCommand, prepareStoriesCommand, ...prepareTextCommands],
});

/** The `data` commands. */
export const dataCommands = group({
  name: "data",
  summary: "Prepare text and bAbI stories; count, solve and generate stories.",
  commands: [prepareCommands, statsCommand, solveCommand, generateCommand, graphsCommand],
});

/** What a reader of the numbers must know about the data. */
function warnAbout(
  about: {
    readonly missing: readonly string[];
    readonly partial: readonly { name: string; stories: number; official: number }[];
    readonly filled: readonly { task: number; split: string; stories: number }[];
    readonly unverified?: readonly string[];
    readonly files?: readonly { name: string; state: string }[];
  },
  out: Output,
): void {
  const some = (names: readonly string[]) =>
    names.length > 6 ? `${names.slice(0, 6).join(", ")} and ${names.length - 6} more` : names.join(", ");
  if (about.missing.length > 0) out.warn(`missing task files: ${some(about.missing)}`);
  if (about.partial.length > 0) {
    const list = about.partial.map(
      ({ name, stories, official }) => `${name} (${stories} of ${official} stories)`,
    );
    out.warn(`used in their place: ${some(list)}`);
  }
  for (const { task, split, stories } of about.filled) {
    out.warn(`task ${task} ${split}: ${thousands(stories)} stories are generated, not bAbI's own`);
  }
  const unverified =
    about.unverified ??
    (about.files ?? []).filter(({ state }) => state === "unverified").map(({ name }) => name);
  if (unverified.length > 0) out.warn(`not the official files: ${some(unverified)}`);
}
