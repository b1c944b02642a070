/** A trained agent as it was saved: read from its folder, checked, and made ready to act. */
import { observationSize } from "../environment/index.ts";
import { stateAttrs } from "../graph/index.ts";
import { nodeRuntime } from "../runtime/node.ts";
import { State } from "../runtime/state.ts";
import { type LoadedModel, loadModelFolder } from "../store/modelFolder.ts";
import { expectTensors } from "../store/safetensors.ts";
import { Actor } from "../train/actor.ts";
import { type AgentConfig, buildAgent, parseAgentConfig } from "./metarl.ts";
import { agentFormat } from "./settings.ts";

/** An agent out of a folder. */
export interface SavedAgent {
  readonly folder: LoadedModel;
  readonly config: AgentConfig;
  /** So many agents with its weights, ready to act; to be released by the caller. */
  actor(agents: number, threads?: number): Actor;
}

/** Whether a folder holds an agent, and not a model that answers. */
export function isAgent({ config }: LoadedModel): boolean {
  return config.format === agentFormat;
}

/** Reads an agent from a run, checkpoint or model folder; of a run the best checkpoint unless told. */
export async function loadAgent(
  from: string | LoadedModel,
  { which }: { readonly which?: "best" | "last" } = {},
): Promise<SavedAgent> {
  const folder = typeof from === "string" ? await loadModelFolder(from, which ? { which } : {}) : from;
  const config = parseAgentConfig(folder.config, `${folder.path}/config.json`);
  const agent = buildAgent(config.system);
  const wanted = agent.parameters.map((tensor) => {
    const { name, shape } = stateAttrs(tensor)!;
    return [name, { dtype: "f32" as const, shape }] as const;
  });
  expectTensors(folder.model, Object.fromEntries(wanted), { file: `${folder.path}/model.safetensors` });
  return {
    folder,
    config,
    actor(agents, threads) {
      const state = new State();
      const sizes = { agents, steps: config.task.length, observation: observationSize };
      const options = { runtime: nodeRuntime, ...(threads ? { threads } : {}) };
      const actor = new Actor(agent, sizes, state, options);
      for (const [name] of wanted) state.set(name, folder.model[name]!.data as Float32Array);
      return actor;
    },
  };
}
