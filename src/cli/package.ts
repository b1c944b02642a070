/** `fwm package`: a run's best checkpoint as a model folder to ship, with a model card. */
import { basename } from "node:path";
import type { PublishedScore, RunResult } from "../report/result.ts";
import { command } from "./command.ts";
import { knownExperiment } from "./knownExperiment.ts";
import { folder, integer, oneOf } from "./params.ts";
import { isReward, scoreLine, scoreModel } from "./score.ts";
import { publishedReward } from "./scoreAgent.ts";
import { thousands } from "./table.ts";

/** The `package` command. */
export const packageCommand = command({
  name: "package",
  summary: "Make a model folder to ship of a run: weights, vocabulary and a model card.",
  details: "The best checkpoint is scored first; the card says on what, and all that is known of the run.",
  examples: [
    {
      line: "fwm package runs/catbabi-qa-fwm-seed1 --out my-model",
      trial: "fwm package $RUN --out $EMPTY/shipped --split valid --batch 16",
    },
  ],
  args: { run: folder({ help: "run folder" }) },
  options: {
    out: folder({ required: true, help: "the model folder to write; it must be absent or empty" }),
    split: oneOf(["valid", "test"], { default: "test", help: "what the model is scored on" }),
    batch: integer({ min: 1, help: "rows; default: 1 for test, 128 for valid" }),
    episodes: integer({ min: 1, max: 10_000, help: "agents: episodes on every graph; default: 10" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
  },
  run: async ({ args, options, out, env }) => {
    const { checkFree, loadModelFolder, saveModelFolder } = await import("../store/modelFolder.ts");
    const { collectResult } = await import("../report/result.ts");
    const { agentCard, modelCard } = await import("../report/card.ts");
    const { readRun } = await import("../store/runRecord.ts");
    await checkFree(options.out);
    const { experiment } = await readRun(args.run);
    const model = await loadModelFolder(args.run);
    const score = await scoreModel(model, options, env, out);
    const result = await collectResult<unknown>(args.run, {
      known: await knownExperiment(experiment),
      reportedBy: ["fwm", ...process.argv.slice(2)],
    });
    const weights = Object.values(model.model).reduce((total, { data }) => total + data.length, 0);
    const about = { name: basename(options.out), weights, step: model.step ?? null };
    const card = isReward(score)
      ? agentCard(result, score, publishedReward(score), about)
      : modelCard(result as RunResult<PublishedScore>, score, about);
    const path = await saveModelFolder(options.out, {
      config: model.config,
      model: model.model,
      ...(model.step === undefined ? {} : { step: model.step }),
      files: { ...model.files, "README.md": card },
    });
    const use = isReward(score) ? "watch it: fwm rollout" : "ask it: fwm ask";
    out.result({ path, weights, score }, () =>
      [`${path}: ${thousands(weights)} weights`, scoreLine(score), `${use} ${options.out}`].join("\n"),
    );
  },
});
