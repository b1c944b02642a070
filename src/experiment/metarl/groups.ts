/** The agents of a run in groups: which agents are in each, and groups in threads of their own. */
import { Worker } from "node:worker_threads";
import { actions, sampleGraphSets } from "../../environment/index.ts";
import { buildAgent } from "../../model/agentRegistry.ts";
import type { Agent } from "../../model/agents.ts";
import { defaultThreads, nodeRuntime } from "../../runtime/node.ts";
import {
  type AgentGroup,
  type GroupGradients,
  type GroupMeans,
  type GroupRollout,
  LocalGroup,
  type LossRates,
  type RolloutOrder,
} from "../../train/agentGroups.ts";
import { type A2cTrainerSettings, isSmall } from "../../train/agentTrainer.ts";
import { optimizersOf } from "../../train/optimizerSettings.ts";
import { makeEnvironment } from "./environments.ts";
import { agentSizesOf, type MetarlSettings } from "./settings.ts";

/** Agents from which on a group is worth a thread. */
const leastAgents = 128;

/** Which group of how many. */
export interface GroupPlan {
  readonly settings: MetarlSettings;
  readonly index: number;
  readonly count: number;
}

/** What is asked of a group in another thread. */
export type GroupRequest =
  | { readonly call: "rollout"; readonly order: RolloutOrder }
  | { readonly call: "gradients"; readonly means: GroupMeans; readonly rates: LossRates }
  | { readonly call: "end" };

/** What it says: the result of the call, or why there is none. */
export type GroupReply =
  | { readonly result: GroupRollout | GroupGradients }
  | { readonly failed: { readonly name: string; readonly message: string } };

/** How the trainer of a run, or of one of its groups, is set up. */
export function trainerSettings(
  { task, system, training }: MetarlSettings,
  agents = training.agents,
): A2cTrainerSettings {
  return {
    ...training,
    agents,
    optimizer: optimizersOf(training.optimizer).first,
    steps: task.length,
    guided: task.lessons.length > 0,
    advised: training.teacher ? actions : 0,
    factCoef: task.lessons.length > 0 && system.name === "fwm" ? training.factCoef : 0,
    observation: agentSizesOf(task).observation,
  };
}

/** Groups that the agents of a run are best put into: one thread each, all of the same size; 1 for large agents. */
export function groupCount(agent: Agent, agents: number, threads = defaultThreads): number {
  if (!isSmall(agent)) return 1;
  let count = Math.max(1, Math.min(threads, Math.floor(agents / leastAgents)));
  while (agents % count > 0) count--;
  return count;
}

/** The groups of a run: the first in this thread, the others in threads of their own. */
export function openGroups(settings: MetarlSettings, count: number): AgentGroup[] {
  return Array.from({ length: count }, (_, index) => {
    const plan = { settings, index, count };
    return index === 0 ? localGroup(plan) : new RemoteGroup(plan);
  });
}

/** One group, in this thread. */
export function localGroup({ settings, index, count }: GroupPlan): LocalGroup {
  const { task, system, training } = settings;
  const agents = training.agents / count;
  const graphs = sampleGraphSets(task.graphSeed, training.agents);
  const part = { first: index * agents, agents };
  const environments = Object.fromEntries(
    (["train", "valid"] as const).map((split) => [
      split,
      makeEnvironment(task, graphs[split], training.seed, split, part),
    ]),
  );
  const options = { runtime: nodeRuntime, threads: 1 };
  return new LocalGroup(
    buildAgent(system, agentSizesOf(task)),
    trainerSettings(settings, agents),
    environments,
    options,
  );
}

/** A group in a thread of its own, which starts with the first call. Calls follow each other. */
class RemoteGroup implements AgentGroup {
  private worker: Worker | undefined;
  private answer: ((reply: GroupReply) => void) | undefined;
  private failure: GroupReply | undefined;

  constructor(private readonly plan: GroupPlan) {}

  rollout(order: RolloutOrder): Promise<GroupRollout> {
    return this.call({ call: "rollout", order }) as Promise<GroupRollout>;
  }

  gradients(means: GroupMeans, rates: LossRates): Promise<GroupGradients> {
    return this.call({ call: "gradients", means, rates }) as Promise<GroupGradients>;
  }

  async release(): Promise<void> {
    const { worker } = this;
    if (!worker || worker.threadId === -1) return;
    const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    worker.ref();
    worker.postMessage({ call: "end" } satisfies GroupRequest);
    await ended;
  }

  private async call(request: GroupRequest): Promise<GroupRollout | GroupGradients> {
    const worker = (this.worker ??= this.start());
    const reply =
      this.failure ??
      (await new Promise<GroupReply>((resolve) => {
        this.answer = resolve;
        worker.ref();
        worker.postMessage(request);
      }));
    if ("result" in reply) return reply.result;
    throw Object.assign(new Error(reply.failed.message), { name: reply.failed.name });
  }

  private start(): Worker {
    const worker = startWorker(this.plan);
    const fail = (name: string, message: string): void => {
      this.failure ??= { failed: { name, message } };
      this.answer?.(this.failure);
    };
    worker.on("message", (reply: GroupReply) => {
      // A program that has nothing else to do ends without asking its groups.
      worker.unref();
      this.answer?.(reply);
    });
    worker.on("error", ({ name, message }: Error) => fail(name, message));
    worker.on("exit", (code) => fail("Error", `the thread of a group of agents ended (${code})`));
    return worker;
  }
}

function startWorker(plan: GroupPlan): Worker {
  // Run from its sources, the program needs the loader that reads TypeScript in the new thread too.
  if (import.meta.url.endsWith(".ts")) {
    const entry = new URL("./groupWorker.ts", import.meta.url).href;
    const start = `import("tsx/esm/api").then(({ register }) => { register(); return import(${JSON.stringify(entry)}); })`;
    return new Worker(start, { eval: true, workerData: plan });
  }
  return new Worker(new URL("./groupWorker.js", import.meta.url), { workerData: plan });
}
