/** Agents by name: what settings may say, and what is built of them. */
import { z } from "zod";
import { type Agent, fwmAgent, lstmAgent } from "./agents.ts";
import { fwmVariants, keysOf } from "./fwm.ts";
import { size } from "./sequence.ts";

const fwmSchema = z.strictObject({
  name: z.literal("fwm"),
  hidden: size,
  /** D: width of keys and values. */
  memory: size.max(1024),
  /** N_r: reads in a row. */
  reads: z.int().min(1).max(16),
  /** Which text of the equations; see docs/fwm.md. */
  variant: z.enum(keysOf(fwmVariants)),
});

const lstmSchema = z.strictObject({ name: z.literal("lstm"), hidden: size });

/** Settings of any agent, told apart by their name. */
export const agentSchema = z.discriminatedUnion("name", [fwmSchema, lstmSchema]);

/** Settings of an agent. */
export type AgentSettings = z.infer<typeof agentSchema>;

/** The agent that settings describe, for observations and actions of these sizes. */
export function buildAgent(
  settings: AgentSettings,
  sizes: { readonly observation: number; readonly actions: number },
): Agent {
  switch (settings.name) {
    case "fwm":
      return fwmAgent({ ...sizes, ...settings, variant: fwmVariants[settings.variant] });
    case "lstm":
      return lstmAgent({ ...sizes, ...settings });
  }
}
