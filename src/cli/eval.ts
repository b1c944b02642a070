/** `fwm eval`: what a saved model reaches beside the paper's numbers: answers by task, or an agent's reward. */
import { command } from "./command.ts";
import { folder, integer, oneOf } from "./params.ts";
import { publishedFor, scoreModel, showScore } from "./score.ts";
import { usualEpisodes } from "./scoreAgent.ts";

/** The `eval` command. */
export const evalCommand = command({
  name: "eval",
  summary: "Evaluate a run or model: right answers on a split, or the reward of an agent.",
  details:
    "Answers, by the paper's protocol: the whole split once, the state carried throughout. Test is one single stream " +
    "(batch 1). It begins in the state training left row 0 in (--state train, as the paper says) or in zeros " +
    "(--state zero, as the authors' program does; always so for a model folder without training state). " +
    "Agents (metarl-…) play --episodes on every test graph, or on those they were trained on (--split train), with " +
    "their weights as they are.",
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
      line: "fwm eval runs/catbabi-qa-fwm-seed1 --split test --state zero --threads 2",
      trial: "fwm eval $RUN --split valid --batch 32 --state zero --threads 2",
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
    split: oneOf(["valid", "test", "train"], {
      help: "what to evaluate on; default: valid, and test for agents; train is for agents",
    }),
    batch: integer({ min: 1, max: 4096, help: "answers: rows; default: 1 for test, 128 for valid" }),
    state: oneOf(["zero", "train"], {
      help: "answers: where the stream begins; default: train where it was saved",
    }),
    data: folder({ help: "answers: prepared data, if not in the usual place" }),
    episodes: integer({
      min: 1,
      max: 100_000,
      help: `agents: episodes on every graph; default: ${usualEpisodes}`,
    }),
    seed: integer({ max: 0xffffffff, help: "agents: seed of places and sampled actions; default: 1" }),
    timer: oneOf(["kept", "reset"], {
      help: "agents: whether success sets the count of failures back; default: as it was trained",
    }),
    checkpoint: oneOf(["best", "last"], { help: "of a run: which checkpoint; default: best, else last" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
  },
  run: async ({ args, options: { checkpoint, ...options }, out, env }) => {
    const { loadModelFolder } = await import("../store/modelFolder.ts");
    const model = await loadModelFolder(args.model, checkpoint ? { which: checkpoint } : {});
    const score = await scoreModel(model, options, env, out);
    if ("remarks" in score) for (const remark of score.remarks) out.note(`note: ${remark}`);
    out.result({ ...score, paper: publishedFor(score) }, () => showScore(score));
  },
});
