/** `fwm package`: a run's best checkpoint as a model folder to ship, with a model card. */
import { basename } from "node:path";
import { DataError } from "../errors.ts";
import { formatChain, provenanceFile } from "../report/chain.ts";
import { thousands } from "../report/table.ts";
import { parseJsonObject } from "../store/json.ts";
import { readIfPresent } from "../store/read.ts";
import { command } from "./command.ts";
import { evaluateWithProgress, evaluationParams } from "./evaluation.ts";
import { folder, oneOf, texts, threadCount } from "./params.ts";
import { shellLine } from "./shell.ts";
import { checkWritable } from "./writeResult.ts";

/** The `package` command. */
export const packageCommand = command({
  name: "package",
  summary: "Make a model folder to ship of a run: weights, vocabulary and a model card.",
  details:
    "The best checkpoint is evaluated first; the card says on what, and all that is known of the run. With --weights " +
    "float16 the file has half the size, and the score is that of the rounded weights.",
  examples: [
    {
      line: "fwm package runs/catbabi-qa-fwm-seed1 --out my-model",
      trial: "fwm package $RUN --out $EMPTY/shipped --split valid --batch 16",
    },
    {
      line: "fwm package runs/catbabi-qa-fwm-seed1 --out my-model --weights float16",
      trial: "fwm package $RUN --out $EMPTY/shipped-half --split valid --batch 16 --weights float16",
    },
  ],
  args: { run: folder({ help: "run folder" }) },
  options: {
    ...evaluationParams({ onSplit: true }),
    further: texts({
      placeholder: "file.json",
      help: "a further evaluation for the card: a file of fwm eval --suite stretch --out",
    }),
    out: folder({ required: true, help: "the model folder to write; it must be absent or empty" }),
    weights: oneOf(["float32", "float16"], { default: "float32", help: "how the weights are stored" }),
    threads: threadCount(),
  },
  run: async ({
    args,
    options: { out: path, threads, further, weights: precision, ...chosen },
    out,
    env,
  }) => {
    const { checkFree, loadModelFolder, saveModelFolder } = await import("../store/modelFolder.ts");
    const { reportedRun } = await import("../experiment/report.ts");
    const { chainOf } = await import("../experiment/lineage.ts");
    await checkWritable(path);
    await checkFree(path);
    const evaluations = await Promise.all(further.map(readScore));
    const { result } = await reportedRun(args.run, ["fwm", ...process.argv.slice(2)]);
    const { narrowWeights, widenWeights } = await import("../store/float16.ts");
    const trained = await loadModelFolder(args.run);
    const stored = precision === "float16" ? narrowWeights(trained.model) : trained.model;
    // What is evaluated are the numbers that are shipped.
    const model = { ...trained, model: widenWeights(stored) };
    const options = { ...chosen, split: chosen.split ?? "test" };
    const { kind, evaluation } = await evaluateWithProgress(model, options, { threads, env, out });
    const weights = Object.values(model.model).reduce((total, { data }) => total + data.length, 0);
    const about = {
      name: basename(path),
      weights,
      step: model.step ?? null,
      precision,
      further: evaluations,
    };
    const chain = await chainOf(trained);
    const written = await saveModelFolder(path, {
      config: model.config,
      model: stored,
      ...(model.step === undefined ? {} : { step: model.step }),
      files: {
        ...model.files,
        [provenanceFile]: formatChain(chain),
        "README.md": kind.card(result, evaluation, about),
      },
    });
    out.result({ path: written, weights, precision, score: evaluation }, () =>
      [
        `${written}: ${thousands(weights)} parameters, ${precision}`,
        kind.showLine(evaluation, result.paper ?? undefined),
        `use it: ${kind.use} ${shellLine(path)}`,
      ].join("\n"),
    );
  },
});

/** The evaluation in a file of `fwm eval --out`. */
async function readScore(path: string): Promise<object> {
  const bytes = await readIfPresent(path);
  const { score } = bytes ? parseJsonObject(bytes, { file: path }) : {};
  if (typeof score === "object" && score !== null) return score;
  throw new DataError(`${path}: no evaluation is here`, { hint: "write one with fwm eval --out" });
}
