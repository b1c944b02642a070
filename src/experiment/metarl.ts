/** A meta-reinforcement-learning experiment put together: graphs, agent, trainer, loop and run folder. */
import { z } from "zod";
import {
  actions,
  fillUniform,
  GraphEnvironment,
  type Graphs,
  observationSize,
  purpose,
  sampleGraphSets,
} from "../environment/index.ts";
import { DataError } from "../errors.ts";
import { type Agent, fwmAgent, lstmAgent } from "../model/agents.ts";
import { fwmVariants } from "../model/fwm.ts";
import { nodeRuntime } from "../runtime/node.ts";
import type { Run } from "../store/run.ts";
import type { TensorData, Tensors } from "../store/safetensors.ts";
import {
  type A2cEnd,
  type A2cProgress,
  type A2cRun,
  type A2cWatch,
  freshA2cProgress,
  type LearnRates,
  trainA2c,
  type World,
} from "../train/a2c.ts";
import { A2cTrainer } from "../train/a2cTrainer.ts";
import { actPrefix } from "../train/actor.ts";
import { adam } from "../train/optimizers.ts";
import { rateAt } from "../train/schedules.ts";
import { type AgentSettings, type MetarlSettings, metarlSchema, rulesOf } from "./metarlSettings.ts";
import {
  asHost,
  fromHost,
  type OpenContext,
  openRun,
  outcomeOf,
  type RunPlanFor,
  settingsOf,
} from "./openRun.ts";
import { agentFormat } from "./settings.ts";

/** How a command runs a meta-reinforcement-learning experiment. */
export interface MetarlContext extends OpenContext {
  readonly signal: AbortSignal;
  readonly watch?: A2cWatch;
}

/** Trains, from the beginning or from a checkpoint; the run folder holds everything. */
export async function trainMetarl(
  plan: RunPlanFor<MetarlSettings>,
  context: MetarlContext,
): Promise<A2cEnd & { folder: string }> {
  const settings = await settingsOf(plan, metarlSchema);
  const { run, checkpoint } = await openRun(plan, settings, context);
  const trainer = makeTrainer(settings, context);
  let outcome: "finished" | "interrupted" | "diverged" | "failed" = "failed";
  let note: string | undefined;
  try {
    const progress = checkpoint ? await restore(trainer, checkpoint) : freshA2cProgress;
    // A run killed between its checkpoint and its record is told of here.
    if (checkpoint) await run.update({ summary: summaryOf(progress) });
    const end = await trainA2c(
      trainer,
      makeWorlds(settings),
      runFolder(run, trainer, settings),
      { ...settings.training, rates: (episode) => ratesAt(episode, settings.training) },
      { firstStep: checkpoint?.step ?? 0, progress },
      context.signal,
      context.watch,
    );
    outcome = end.reason;
    return { ...end, folder: run.folder };
  } catch (error) {
    ({ outcome, note } = outcomeOf(error));
    throw error;
  } finally {
    await trainer.release().finally(() => run.close(outcome, note));
  }
}

/** The learning rate and the weight of the entropy at an episode; the latter falls in a line. */
function ratesAt(episode: number, training: MetarlSettings["training"]): LearnRates {
  const { steps, entropy, entropyFinal } = training;
  return {
    learningRate: rateAt(episode, steps, { ...training, warmup: 0, decayFrom: 0 }),
    entropy: entropy * (1 - (1 - entropyFinal) * (episode / steps)),
  };
}

/** The agent that settings describe. */
export function buildAgent(system: AgentSettings): Agent {
  const sizes = { observation: observationSize, actions };
  switch (system.name) {
    case "fwm":
      return fwmAgent({ ...sizes, ...system, variant: fwmVariants[system.variant] });
    case "lstm":
      return lstmAgent({ ...sizes, ...system });
  }
}

/** The agents of an experiment with fresh weights. */
export function makeTrainer(
  { task, system, training }: MetarlSettings,
  { threads, device }: Pick<OpenContext, "threads" | "device"> = {},
): A2cTrainer {
  const { beta1, beta2, eps } = training;
  return new A2cTrainer(
    buildAgent(system),
    {
      ...training,
      optimizer: adam({ beta1, beta2, eps }),
      agents: training.batch,
      steps: task.length,
      observation: observationSize,
    },
    { runtime: nodeRuntime, ...(threads ? { threads } : {}), ...(device ? { device } : {}) },
  );
}

/** The training graphs and the test graphs of an experiment, one agent on each. */
export function makeWorlds({ task, training }: MetarlSettings): { train: GraphWorld; test: GraphWorld } {
  const { train, test } = sampleGraphSets(task.graphSeed, training.batch, training.batch);
  return {
    train: makeWorld(task, train, training.seed, "train"),
    test: makeWorld(task, test, training.seed, "test"),
  };
}

/** An environment with the numbers that actions are sampled with. */
export type GraphWorld = World & { readonly environment: GraphEnvironment };

/** Some graphs as a world of a trainer; places and actions depend on `seed` and `split`. */
export function makeWorld(
  task: MetarlSettings["task"],
  graphs: Graphs,
  seed: number,
  split: "train" | "test",
): GraphWorld {
  const environment = new GraphEnvironment({
    ...rulesOf(task),
    graphs,
    seed,
    split,
    rules: task.rules,
    steps: task.length,
  });
  const use = split === "train" ? purpose.trainAction : purpose.testAction;
  return {
    environment,
    agents: environment.agents,
    steps: environment.steps,
    reset: (episode) => environment.reset(episode),
    observe: (into, offset) => environment.observe(into, offset),
    step: (chosen) => environment.step(chosen),
    meanTotal: () => environment.meanReturn(),
    draw: (into, episode, step) => fillUniform(into, seed, use, episode, step),
  };
}

/** A run folder as the loop writes to it. */
function runFolder(run: Run, trainer: A2cTrainer, settings: MetarlSettings): A2cRun {
  return {
    log: (record) => run.log(record),
    heartbeat: (step) => run.heartbeat(step),
    async save(step, { best, progress }) {
      const model: Record<string, TensorData> = {};
      const optimizer: Record<string, TensorData> = {};
      for (const [name, tensor] of trainer.state.snapshot((key) => !key.startsWith(actPrefix))) {
        (trainer.weightNames.has(name) ? model : optimizer)[name] = fromHost(tensor);
      }
      const config = agentConfig(settings, run.record.experiment);
      await run.save({ step, best, config, model, optimizer, state: { progress } });
      await run.update({ step, summary: summaryOf(progress) });
    },
  };
}

/** What lists and reports show of a run that stands there. */
function summaryOf({ reward, bestReward, bestStep }: A2cProgress) {
  return { reward, bestReward, bestStep };
}

/** Takes over the tensors of a checkpoint, and gives where the run stood. */
async function restore(
  trainer: A2cTrainer,
  checkpoint: { path: string; model: Tensors; optimizer: Tensors; state: Readonly<Record<string, unknown>> },
): Promise<A2cProgress> {
  const tensors = Object.entries({ ...checkpoint.model, ...checkpoint.optimizer });
  await trainer.adopt(new Map(tensors.map(([name, tensor]) => [name, asHost(tensor)])), checkpoint.path);
  return (checkpoint.state as { progress: A2cProgress }).progress;
}

const agentConfigSchema = z.strictObject({
  format: z.literal(agentFormat),
  version: z.literal(1),
  /** Name of the experiment it was trained by. */
  experiment: z.string(),
  /** The rules it knows, and the seed of the graphs it was trained on. */
  task: metarlSchema.shape.task,
  /** How many graphs it was trained on. */
  graphs: z.int().min(1),
  system: metarlSchema.shape.system,
});

/** What `config.json` says of an agent: enough to build it again, and to find graphs it has not seen. */
export type AgentConfig = z.infer<typeof agentConfigSchema>;

function agentConfig({ task, system, training }: MetarlSettings, experiment: string): AgentConfig {
  return { format: agentFormat, version: 1, experiment, task, graphs: training.batch, system };
}

/** Checks the content of an agent's `config.json`. */
export function parseAgentConfig(value: unknown, file: string): AgentConfig {
  const parsed = agentConfigSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { format } = (value ?? {}) as { format?: unknown };
  if (format !== agentFormat) {
    throw new DataError(`${file}: not an agent`, {
      format: JSON.stringify(format),
      hint: "give a run or model folder of an experiment metarl-…",
    });
  }
  throw new DataError(`${file}: not an agent this version understands`, {
    reason: z.prettifyError(parsed.error),
    hint: "use the version of fwm that trained it",
  });
}
