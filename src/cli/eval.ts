/** `fwm eval`: what a saved model reaches beside the paper's numbers, as its kind of experiment measures it. */
import { findExperiment } from "../experiment/registry.ts";
import { command } from "./command.ts";
import { evaluateWithProgress, evaluationParams } from "./evaluation.ts";
import { file, folder, oneOf, threadCount } from "./params.ts";
import { checkWritable, reporter, writeJson } from "./writeResult.ts";

/** The `eval` command. */
export const evalCommand = command({
  name: "eval",
  summary: "Evaluate a run or model: accuracy of answers on a split, or the return of an agent.",
  details:
    "catbAbI, by the paper's protocol: the whole split once, the state carried throughout. Test is one single stream " +
    "(batch 1). It starts in the state training left row 0 in (--state train, as the paper says) or in zeros " +
    "(--state zero, as the authors' program does; always so for a model folder without training state). " +
    "--suite stretch asks harder questions than bAbI in the place of a split: facts up to 160 sentences back, more objects, " +
    "longer ways and chains, with the model's confidence (docs/infinite-catbabi.md). " +
    "Agents (metarl-…) act for --episodes on every test graph, or on those of another --split, with their weights " +
    "as they are.",
  examples: [
    {
      line: "fwm eval runs/catbabi-qa-fwm-seed1 --split test",
      trial: "fwm eval $RUN --split test --batch 64",
    },
    {
      line: "fwm eval runs/catbabi-qa-fwm-seed1 --split valid --json",
      trial: "fwm eval $RUN --split valid --batch 16 --json",
    },
    {
      line: "fwm eval runs/catbabi-qa-fwm-seed1 --split test --state zero --threads 1",
      trial: "fwm eval $RUN --split valid --batch 32 --state zero --threads 1",
    },
    {
      line: "fwm eval models/catbabi-qa --suite stretch --out results/stretch-catbabi-qa.json",
      trial: "fwm eval $RUN --suite stretch --batch 200 --out $EMPTY/stretch.json",
    },
    {
      line: "fwm eval runs/metarl-fwm-seed1",
      trial: "fwm eval $AGENT --episodes 2",
    },
    {
      line: "fwm eval runs/metarl-fwm-seed1 --split train --episodes 50 --json",
      trial: "fwm eval $AGENT --split train --episodes 2 --json",
    },
  ],
  args: { model: folder({ help: "run, checkpoint or model folder; of a run its best checkpoint" }) },
  options: {
    ...evaluationParams(),
    checkpoint: oneOf(["best", "last"], { help: "of a run: which checkpoint; default: best, else last" }),
    out: file({ help: "also write it as a result file: with command, commit and machine" }),
    threads: threadCount(),
  },
  run: async ({ args, options: { checkpoint, threads, out: path, ...chosen }, out, env }) => {
    if (path !== undefined) await checkWritable(path);
    const { loadModelFolder } = await import("../store/modelFolder.ts");
    const model = await loadModelFolder(args.model, checkpoint ? { which: checkpoint } : {});
    const { kind, evaluation } = await evaluateWithProgress(model, chosen, { threads, env, out });
    const paper = findExperiment(evaluation.experiment)?.paper;
    const { notes } = evaluation as { readonly notes?: readonly string[] };
    for (const note of notes ?? []) out.note(`note: ${note}`);
    const scored = { ...evaluation, paper: kind.published(evaluation, paper) };
    if (path !== undefined) {
      const { evaluationFile } = await import("../experiment/evaluationFile.ts");
      await writeJson(path, await evaluationFile(scored, reporter(threads)));
    }
    out.result(
      scored,
      () => kind.show(evaluation, paper) + (path === undefined ? "" : `written to ${path}\n`),
    );
  },
});
