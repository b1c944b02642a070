/** Every experiment by name: file name, command-line name and row of the results are one string. */
import type { AnyExperiment } from "../src/experiment/kinds.ts";
import type { MetarlExperiment } from "../src/experiment/metarlSettings.ts";
import type { Experiment } from "../src/experiment/settings.ts";
import catbabiLmFwm from "./catbabi-lm-fwm.ts";
import catbabiLmFwmDecay from "./catbabi-lm-fwm-decay.ts";
import catbabiLmFwmMixed from "./catbabi-lm-fwm-mixed.ts";
import catbabiQaFwm from "./catbabi-qa-fwm.ts";
import catbabiQaFwmDecay from "./catbabi-qa-fwm-decay.ts";
import catbabiQaFwmMixed from "./catbabi-qa-fwm-mixed.ts";
import catbabiQaLstm from "./catbabi-qa-lstm.ts";
import metarlFwm from "./metarl-fwm.ts";
import metarlFwmCorrected from "./metarl-fwm-corrected.ts";
import metarlFwmTuned from "./metarl-fwm-tuned.ts";
import metarlLstm512 from "./metarl-lstm-512.ts";
import metarlLstm512Tuned from "./metarl-lstm-512-tuned.ts";
import metarlLstm1024 from "./metarl-lstm-1024.ts";
import metarlLstm2048 from "./metarl-lstm-2048.ts";
import metarlLstm4096 from "./metarl-lstm-4096.ts";
import { quickstartFwm, quickstartLstm } from "./quickstart.ts";

/** The experiments on catbAbI. */
export const experiments = {
  "catbabi-qa-fwm": catbabiQaFwm,
  "catbabi-qa-fwm-decay": catbabiQaFwmDecay,
  "catbabi-qa-fwm-mixed": catbabiQaFwmMixed,
  "catbabi-lm-fwm": catbabiLmFwm,
  "catbabi-lm-fwm-decay": catbabiLmFwmDecay,
  "catbabi-lm-fwm-mixed": catbabiLmFwmMixed,
  "catbabi-qa-lstm": catbabiQaLstm,
  "quickstart-fwm": quickstartFwm,
  "quickstart-lstm": quickstartLstm,
} as const satisfies Record<string, Experiment>;

/** The experiments in meta-reinforcement learning. */
export const metarlExperiments = {
  "metarl-fwm": metarlFwm,
  "metarl-fwm-corrected": metarlFwmCorrected,
  "metarl-fwm-tuned": metarlFwmTuned,
  "metarl-lstm-512": metarlLstm512,
  "metarl-lstm-512-tuned": metarlLstm512Tuned,
  "metarl-lstm-1024": metarlLstm1024,
  "metarl-lstm-2048": metarlLstm2048,
  "metarl-lstm-4096": metarlLstm4096,
} as const satisfies Record<string, MetarlExperiment>;

const all: Readonly<Record<ExperimentName, AnyExperiment>> = { ...experiments, ...metarlExperiments };

/** The name of an experiment of either kind. */
export type ExperimentName = keyof typeof experiments | keyof typeof metarlExperiments;

/** The names of all experiments. */
export const experimentNames = Object.keys(all) as ExperimentName[];

/** The experiment of a name; undefined where a run or model names one that is not here. */
export function findExperiment(name: ExperimentName): AnyExperiment;
export function findExperiment(name: string): AnyExperiment | undefined;
export function findExperiment(name: string): AnyExperiment | undefined {
  return (all as Readonly<Record<string, AnyExperiment>>)[name];
}
