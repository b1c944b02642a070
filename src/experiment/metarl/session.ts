/** Training on random graphs: act in an episode, learn from it; evaluate on graphs that are not trained on. */
import { z } from "zod";
import { sampleGraphSets } from "../../environment/index.ts";
import { DataError } from "../../errors.ts";
import { buildAgent } from "../../model/agentRegistry.ts";
import { thousands } from "../../report/table.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import { mean } from "../../statistics.ts";
import type { LoadedModel } from "../../store/modelFolder.ts";
import { A2cTrainer } from "../../train/a2cTrainer.ts";
import { GroupedA2cTrainer } from "../../train/agentGroups.ts";
import type { AgentTrainer, UpdateRates } from "../../train/agentTrainer.ts";
import type { StepReport, Values } from "../../train/loop.ts";
import { baseRate } from "../../train/optimizerSettings.ts";
import { scheduleFactor } from "../../train/schedules.ts";
import { Curriculum, placeSchema } from "../curriculum.ts";
import type { Session, SessionContext, SessionSnapshot } from "../kind.ts";
import { checkSystem, fittingWeights, toHost, toTensors } from "../tensors.ts";
import { type AgentEnvironment, makeEnvironment } from "./environments.ts";
import { groupCount, openGroups, trainerSettings } from "./groups.ts";
import { agentSizesOf, type MetarlSettings } from "./settings.ts";

/** Samples the graphs and builds the agent that settings describe. */
export function openMetarl(settings: MetarlSettings, context: Omit<SessionContext, "env">): MetarlSession {
  return new MetarlSession(settings, context);
}

/** An agent under training, with its graphs. */
export class MetarlSession implements Session {
  readonly data: { readonly notes: readonly string[] };
  readonly trainer: AgentTrainer;
  readonly environments: Readonly<Record<"train" | "valid", AgentEnvironment>>;
  /** Episodes on validation graphs so far: each has places and actions of its own. */
  private evaluated = 0;
  private curriculum: Curriculum;
  /** Episodes that were lessons. */
  private lessonEpisodes = 0;

  constructor(
    private readonly settings: MetarlSettings,
    { threads, device }: Omit<SessionContext, "env">,
  ) {
    const { task, system, training } = settings;
    this.data = { notes: notesOn(settings) };
    this.curriculum = curriculumOf(task);
    const graphs = sampleGraphSets(task.graphSeed, training.agents);
    const environment = (split: "train" | "valid"): AgentEnvironment =>
      makeEnvironment(task, graphs[split], training.seed, split);
    this.environments = { train: environment("train"), valid: environment("valid") };
    const agent = buildAgent(system, agentSizesOf(task));
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
    const { stage } = this.curriculum;
    const { train } = this.environments;
    train.lesson = stage;
    const { meanReturn, answers = { correct: 0, asked: 0 } } = await this.trainer.rollout(train, episode);
    const { nonFinite, ...values } = await this.trainer.update(rates);
    this.curriculum.count(answers.correct, answers.asked);
    if (stage !== undefined) this.lessonEpisodes++;
    return {
      means: {
        return: meanReturn,
        ...values,
        ...(stage === undefined ? {} : { answers: [answers.correct, answers.asked] as const }),
      },
      latest: { learningRate: rates.learningRate, ...(stage === undefined ? {} : { stage: stage + 1 }) },
      work: 1,
      ...(nonFinite === undefined ? {} : { nonFinite }),
    };
  }

  private ratesAt(step: number): UpdateRates {
    const {
      optimizer,
      schedule,
      entropyCoef,
      finalEntropyRatio,
      teacher,
      episodes: steps,
    } = this.settings.training;
    return {
      learningRate: baseRate(optimizer, false) * scheduleFactor(schedule, { step, steps }),
      entropyCoef: entropyCoef * (1 - (1 - finalEntropyRatio) * (step / steps)),
      teacherCoef: teacher && teacher.coef * Math.max(0, 1 - (step - this.lessonEpisodes) / teacher.episodes),
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
    const { evaluated, lessons, lessonEpisodes } = stateIn(state, path);
    this.evaluated = evaluated;
    this.lessonEpisodes = lessonEpisodes;
    this.curriculum = curriculumOf(this.settings.task, lessons);
    await this.trainer.restore(new Map([...toHost(model), ...toHost(optimizer)]), path);
  }

  snapshot(): SessionSnapshot {
    const { model, optimizer } = this.trainer.snapshot();
    const { evaluated, lessonEpisodes } = this;
    const state = { evaluated, lessons: this.curriculum.saved(), lessonEpisodes };
    return { model: toTensors(model), optimizer: toTensors(optimizer), state };
  }

  release(): Promise<void> {
    return this.trainer.release();
  }
}

/** Stages of lessons, at the place where training stands. */
function curriculumOf({ lessons }: MetarlSettings["task"], place?: z.infer<typeof placeSchema>): Curriculum {
  return new Curriculum(
    lessons.map(({ until, episodes: steps }) => ({ until, steps })),
    place,
  );
}

/** What is to be known of the episodes that are learned from. */
function notesOn({ task, training: { teacher, factCoef } }: MetarlSettings): string[] {
  const stages = task.lessons.map(({ extra, until, episodes }) => {
    const edges = extra === 0 ? "four edges" : `four to ${4 + extra} edges`;
    return `${edges} are shown and ways of two asked for until ${100 * until} % are right, at most ${thousands(episodes)} episodes`;
  });
  return [
    ...(stages.length > 0 ? [`lessons come first: ${stages.join(", then ")}`] : []),
    ...(stages.length > 0 && factCoef > 0 ? ["a lesson says which writes an answer follows from"] : []),
    ...(task.rename ? ["training graphs come under other names in every episode"] : []),
    ...(teacher
      ? [
          `the explorer's advice is learned from, less and less in ${thousands(teacher.episodes)} ordinary episodes`,
        ]
      : []),
  ];
}

const stateSchema = z.strictObject({
  evaluated: z.int().min(0),
  /** Where the lessons stand; absent before there were any. */
  lessons: placeSchema.optional(),
  lessonEpisodes: z.int().min(0).default(0),
});

function stateIn(state: unknown, path: string): z.infer<typeof stateSchema> {
  const parsed = stateSchema.safeParse(state);
  if (parsed.success) return parsed.data;
  throw new DataError(`${path}/trainer_state.json: not the state of a meta-RL run`, {
    reason: z.prettifyError(parsed.error),
    hint: "resume from another checkpoint with --from",
  });
}
