/** Training on random graphs: act in an episode, learn from it; evaluate on graphs that are not trained on. */
import { z } from "zod";
import { sampleGraphSets } from "../../environment/index.ts";
import { DataError } from "../../errors.ts";
import { buildAgent } from "../../model/agentRegistry.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import { mean } from "../../statistics.ts";
import type { LoadedModel } from "../../store/modelFolder.ts";
import { A2cTrainer } from "../../train/a2cTrainer.ts";
import { GroupedA2cTrainer } from "../../train/agentGroups.ts";
import type { AgentTrainer, UpdateRates } from "../../train/agentTrainer.ts";
import type { StepReport, Values } from "../../train/loop.ts";
import { baseRate } from "../../train/optimizerSettings.ts";
import { scheduleFactor } from "../../train/schedules.ts";
import type { Session, SessionContext, SessionSnapshot } from "../kind.ts";
import { checkSystem, fittingWeights, toHost, toTensors } from "../tensors.ts";
import { type AgentEnvironment, agentSizes, makeEnvironment } from "./environments.ts";
import { groupCount, openGroups, trainerSettings } from "./groups.ts";
import type { MetarlSettings } from "./settings.ts";

/** Samples the graphs and builds the agent that settings describe. */
export function openMetarl(settings: MetarlSettings, context: Omit<SessionContext, "env">): MetarlSession {
  return new MetarlSession(settings, context);
}

/** An agent under training, with its graphs. */
export class MetarlSession implements Session {
  readonly data = { notes: [] };
  readonly trainer: AgentTrainer;
  readonly environments: Readonly<Record<"train" | "valid", AgentEnvironment>>;
  /** Episodes on validation graphs so far: each has places and actions of its own. */
  private evaluated = 0;

  constructor(
    private readonly settings: MetarlSettings,
    { threads, device }: Omit<SessionContext, "env">,
  ) {
    const { task, system, training } = settings;
    const graphs = sampleGraphSets(task.graphSeed, training.agents);
    const environment = (split: "train" | "valid"): AgentEnvironment =>
      makeEnvironment(task, graphs[split], training.seed, split);
    this.environments = { train: environment("train"), valid: environment("valid") };
    const agent = buildAgent(system, agentSizes);
    const groups = device === "cuda" ? 1 : groupCount(agent, training.agents, threads);
    const options = { runtime: nodeRuntime, ...(threads ? { threads } : {}), ...(device ? { device } : {}) };
    this.trainer =
      groups === 1
        ? new A2cTrainer(agent, trainerSettings(settings), options)
        : new GroupedA2cTrainer(agent, trainerSettings(settings), openGroups(settings, groups), {
            ...options,
            threads: 1,
          });
  }

  async step(episode: number): Promise<StepReport> {
    const rates = this.ratesAt(episode);
    const meanReturn = await this.trainer.rollout(this.environments.train, episode);
    const { nonFinite, ...values } = await this.trainer.update(rates);
    return {
      means: { return: meanReturn, ...values },
      latest: { learningRate: rates.learningRate },
      work: 1,
      ...(nonFinite === undefined ? {} : { nonFinite }),
    };
  }

  private ratesAt(step: number): UpdateRates {
    const { optimizer, schedule, entropyCoef, finalEntropyRatio, episodes: steps } = this.settings.training;
    return {
      learningRate: baseRate(optimizer, false) * scheduleFactor(schedule, { step, steps }),
      entropyCoef: entropyCoef * (1 - (1 - finalEntropyRatio) * (step / steps)),
    };
  }

  async evaluate(signal: AbortSignal, onProgress?: () => Promise<void>): Promise<Values | undefined> {
    const { evalEpisodes } = this.settings.training;
    const returns: number[] = [];
    for (let i = 0; i < evalEpisodes; i++) {
      if (signal.aborted) return undefined;
      returns.push(await this.trainer.evaluate(this.environments.valid, this.evaluated + i));
      await onProgress?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.evaluated += evalEpisodes;
    return { return: mean(returns) };
  }

  init(folder: LoadedModel): void {
    checkSystem(folder, this.settings.system.name);
    this.trainer.init(fittingWeights(folder, this.trainer.agent.parameters), folder.path);
  }

  async restore({ path, model, optimizer, state }: Parameters<Session["restore"]>[0]): Promise<void> {
    this.evaluated = evaluatedIn(state, path);
    await this.trainer.restore(new Map([...toHost(model), ...toHost(optimizer)]), path);
  }

  snapshot(): SessionSnapshot {
    const { model, optimizer } = this.trainer.snapshot();
    return { model: toTensors(model), optimizer: toTensors(optimizer), state: { evaluated: this.evaluated } };
  }

  release(): Promise<void> {
    return this.trainer.release();
  }
}

const stateSchema = z.strictObject({ evaluated: z.int().min(0) });

function evaluatedIn(state: unknown, path: string): number {
  const parsed = stateSchema.safeParse(state);
  if (parsed.success) return parsed.data.evaluated;
  throw new DataError(`${path}/trainer_state.json: not the state of a meta-RL run`, {
    reason: z.prettifyError(parsed.error),
    hint: "resume from another checkpoint with --from",
  });
}
