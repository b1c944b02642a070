/** What a visitor chooses, checked, and as it stands in the address. No schema library: this is part of the first page. */
import { formatTasks, parseTasks } from "../../src/data/catbabi.ts";

/** A visitor's choices. */
export interface Choices {
  /** Tasks of the generator, such as "1-2,15". */
  readonly tasks: string;
  /** Width of the LSTM and of the embedding. */
  readonly hidden: number;
  /** D: width of keys and values. */
  readonly memory: number;
  /** N_r: reads in a row. */
  readonly reads: number;
  readonly batch: number;
  /** Tokens per row and step. */
  readonly window: number;
  /** Steps until the learning rate has decayed; training can go on after them. */
  readonly steps: number;
  readonly rate: number;
  readonly seed: number;
  /** Whether an LSTM of the same width learns the same stories beside it. */
  readonly lstm: boolean;
}

/** The choices that are numbers. */
export type NumberChoice = { [K in keyof Choices]: Choices[K] extends number ? K : never }[keyof Choices];

/** Ends of every number. They keep a step within a second or two on a phone. */
const limits: Readonly<Record<NumberChoice, readonly [least: number, most: number]>> = {
  hidden: [4, 256],
  memory: [2, 48],
  reads: [1, 6],
  batch: [1, 128],
  window: [10, 200],
  steps: [10, 100_000],
  rate: [1e-5, 0.1],
  seed: [0, 0xffffffff],
};

/** The quickstart's stories and sizes: where a fact has to be found, and two have to be chained. */
export const defaultChoices: Choices = {
  tasks: "1-2",
  hidden: 64,
  memory: 16,
  reads: 3,
  batch: 32,
  window: 100,
  steps: 800,
  rate: 6e-3,
  seed: 1,
  lstm: true,
};

/** The systems that can be trained here. */
export const systemNames = ["fwm", "lstm"] as const;
/** Name of a system that can be trained here. */
export type SystemName = (typeof systemNames)[number];

/** The systems that learn. */
export function systemsOf({ lstm }: Choices): readonly SystemName[] {
  return lstm ? systemNames : ["fwm"];
}

/** What the systems are called in charts and headings. */
export const systemTitles: Readonly<Record<SystemName, string>> = { fwm: "Fast Weight Memory", lstm: "LSTM" };

/** Choices out of anything: numbers may be texts, as in an address; what is missing or out of range is as by default. */
export function choicesFrom(given: Readonly<Record<string, unknown>>): Choices {
  const numbers = (Object.keys(limits) as NumberChoice[]).map((name) => {
    const value = given[name];
    const [least, most] = limits[name];
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    const fits =
      typeof number === "number" &&
      number >= least &&
      number <= most &&
      (name === "rate" || Number.isInteger(number));
    return [name, fits ? number : defaultChoices[name]] as const;
  });
  return {
    ...defaultChoices,
    ...Object.fromEntries(numbers),
    tasks: tasksFrom(given.tasks),
    lstm: given.lstm === undefined ? defaultChoices.lstm : String(given.lstm) === "true",
  };
}

function tasksFrom(text: unknown): string {
  try {
    return typeof text === "string" ? formatTasks(parseTasks(text)) : defaultChoices.tasks;
  } catch {
    return defaultChoices.tasks;
  }
}

/** The choices as an address has them: only those that are not as by default. */
export function choicesTo(choices: Choices): Record<keyof Choices, string | undefined> {
  const entries = Object.entries(choices).map(([name, value]) => [
    name,
    value === defaultChoices[name as keyof Choices] ? undefined : String(value),
  ]);
  return Object.fromEntries(entries) as Record<keyof Choices, string | undefined>;
}

/** Whether two sets of choices are the same. */
export function sameChoices(a: Choices, b: Choices): boolean {
  return (Object.keys(defaultChoices) as (keyof Choices)[]).every((name) => a[name] === b[name]);
}
