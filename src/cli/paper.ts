/** `fwm paper`: the paper's tables and figures from result files; never trains. */
import { readFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { DataError } from "../errors.ts";
import { errorCode } from "../store/atomic.ts";
import { shippedModels } from "../store/shippedModels.ts";
import { command } from "./command.ts";
import { file, flag, folder } from "./params.ts";
import { checkWritable, writeResult } from "./writeResult.ts";

/** The `paper` command. */
export const paperCommand = command({
  name: "paper",
  summary: "Write the paper's tables and figures from the result files, ours beside the paper's.",
  details:
    "Reads every file of --results and asks the shipped model for one figure; trains nothing. Writes the page, the SVG " +
    "figures in the folder figures of --results, and in --readme the tables between its two marks. What was not run says " +
    "so. --check writes nothing and fails if something would change.",
  examples: [
    {
      line: "fwm paper",
      trial: "fwm paper --results $EMPTY --out $EMPTY/docs/results.md --readme $EMPTY/README.md",
    },
    {
      line: "fwm paper --check",
      trial: "fwm paper --results $EMPTY --out $EMPTY/docs/results.md --readme $EMPTY/README.md --json",
    },
  ],
  args: {},
  options: {
    results: folder({ default: "results", help: "folder of the result files" }),
    out: file({ default: "docs/results.md", help: "the page" }),
    readme: file({
      default: "README.md",
      help: "a page with tables between the two marks; left alone without them",
    }),
    check: flag({ help: "compare with what is there instead of writing" }),
  },
  run: async ({ options: { results, out, readme, check }, out: output }) => {
    if (!check) await checkWritable(out);
    const { readResults } = await import("../experiment/paper/read.ts");
    const { buildPaper, withTables } = await import("../experiment/paper/document.ts");
    const { traceTransitive } = await import("../experiment/paper/transitive.ts");
    const found = await readResults(results);
    const trace = await traceTransitive(shippedModels.answers);
    const from = (page: string): string => relative(dirname(page), results).split(sep).join("/") || ".";
    const paper = await buildPaper(found, trace, { folder: from(out), readmeFolder: from(readme) });
    const old = await textOf(readme);
    const table = old === undefined ? undefined : withTables(old, paper.readme);
    const files = new Map([
      [out, paper.page],
      ...[...paper.figures].map(([name, svg]) => [join(results, "figures", name), svg] as const),
      ...(table === undefined ? [] : [[readme, table] as const]),
    ]);
    const changed: string[] = [];
    for (const [path, content] of files) if ((await textOf(path)) !== content) changed.push(path);
    if (check && changed.length > 0) {
      throw new DataError(`${changed[0]}: not what the result files give`, {
        changed: changed.join(", "),
        hint: "write it again with: fwm paper",
      });
    }
    if (!check) for (const path of changed) await writeResult(path, files.get(path)!);
    output.result({ page: out, files: [...files.keys()], changed }, () =>
      [
        `${out}: ${found.runs.length} runs, ${found.sweeps.length} sweeps, ${found.stretches.length} evaluations`,
        ...(changed.length === 0 ? ["nothing has changed"] : changed.map((path) => `written ${path}`)),
      ].join("\n"),
    );
  },
});

/** The text of a file; undefined where there is none. */
async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  });
}
