/** Every system by name. A new one is a file beside this one and a line here. */
import { z } from "zod";
import { UsageError } from "../errors.ts";
import { awdFwmSystem } from "./awdFwm.ts";
import { awdLstmSystem } from "./awdLstm.ts";
import { awdTxlSystem } from "./awdTxl.ts";
import { deltaNetSystem } from "./deltaNetModel.ts";
import { fwmSystem } from "./fwmModel.ts";
import { jbfwSystem } from "./jbfwModel.ts";
import { lstmSystem } from "./lstmModel.ts";
import { mnmSystem } from "./mnmModel.ts";
import type { SequenceModel, System, Work } from "./sequence.ts";
import { transformerXlSystem } from "./transformerXlModel.ts";

/** The systems that read a stream of tokens. */
const builtIn = {
  "awd-fwm": awdFwmSystem,
  "awd-lstm": awdLstmSystem,
  "awd-txl": awdTxlSystem,
  fwm: fwmSystem,
  lstm: lstmSystem,
  "transformer-xl": transformerXlSystem,
  mnm: mnmSystem,
  jbfw: jbfwSystem,
  "delta-net": deltaNetSystem,
} as const;

/** Settings of one of the systems that come with the package. */
export type SystemSettings = z.infer<(typeof builtIn)[keyof typeof builtIn]["schema"]>;

const systems = new Map<string, System>(Object.entries(builtIn));

/** Whether settings were parsed: the union of all schemas is made then, once, and later systems would not be in it. */
let settled = false;

/** Adds a system of one's own. Once any settings have been parsed it is too late, and a `UsageError`. */
export function registerSystem<C extends { readonly name: string }>(name: string, system: System<C>): void {
  if (settled) {
    throw new UsageError(`registerSystem: ${name} comes too late, settings were already parsed`, {
      hint: "register systems at the start of the program, before models are loaded or settings parsed",
    });
  }
  systems.set(name, system);
}

/** Names of all systems. */
export function systemNames(): string[] {
  return [...systems.keys()];
}

/** Settings of any system, told apart by their name. */
export const systemSchema: z.ZodType<SystemSettings> = z.lazy(() => {
  settled = true;
  const schemas = [...systems.values()].map(({ schema }) => schema);
  return z.discriminatedUnion("name", schemas as never);
}) as never;

/** The model that settings describe. */
export function buildSystem(settings: { readonly name: string }): SequenceModel {
  return systemOf(settings.name).build(settings);
}

/** Floating-point operations of a system's forward pass over a window, counted from its equations. */
export function systemFlops(settings: { readonly name: string }, work: Work): number {
  return systemOf(settings.name).flops(settings, work);
}

function systemOf(name: string): System {
  const system = systems.get(name);
  if (!system) throw new Error(`internal: the schema let through the system ${name}`);
  return system;
}
