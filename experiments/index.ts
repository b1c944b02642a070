/** Every experiment by name: file name, command-line name and row of the results are one string. */
import type { MetarlExperiment } from "../src/experiment/metarlSettings.ts";
import type { Experiment } from "../src/experiment/settings.ts";
import catbabiLmFwm from "./catbabi-lm-fwm.ts";
import catbabiLmFwmDecay from "./catbabi-lm-fwm-decay.ts";
import catbabiQaFwm from "./catbabi-qa-fwm.ts";
import catbabiQaFwmDecay from "./catbabi-qa-fwm-decay.ts";
import catbabiQaFwmMixed from "./catbabi-qa-fwm-mixed.ts";
import catbabiQaLstm from "./catbabi-qa-lstm.ts";
import metarlFwm from "./metarl-fwm.ts";
import metarlFwmCorrected from "./metarl-fwm-corrected.ts";
import metarlLstm512 from "./metarl-lstm-512.ts";
import metarlLstm1024 from "./metarl-lstm-1024.ts";
import metarlLstm2048 from "./metarl-lstm-2048.ts";
import metarlLstm4096 from "./metarl-lstm-4096.ts";

/** The experiments on catbAbI. */
export const experiments = {
  "catbabi-qa-fwm": catbabiQaFwm,
  "catbabi-qa-fwm-decay": catbabiQaFwmDecay,
  "catbabi-qa-fwm-mixed": catbabiQaFwmMixed,
  "catbabi-lm-fwm": catbabiLmFwm,
  "catbabi-lm-fwm-decay": catbabiLmFwmDecay,
  "catbabi-qa-lstm": catbabiQaLstm,
} as const satisfies Record<string, Experiment>;

/** The experiments in meta-reinforcement learning. */
export const metarlExperiments = {
  "metarl-fwm": metarlFwm,
  "metarl-fwm-corrected": metarlFwmCorrected,
  "metarl-lstm-512": metarlLstm512,
  "metarl-lstm-1024": metarlLstm1024,
  "metarl-lstm-2048": metarlLstm2048,
  "metarl-lstm-4096": metarlLstm4096,
} as const satisfies Record<string, MetarlExperiment>;

/** Names of the experiments on catbAbI. */
export const experimentNames = Object.keys(experiments) as (keyof typeof experiments)[];

/** Names of the experiments in meta-reinforcement learning. */
export const metarlNames = Object.keys(metarlExperiments) as (keyof typeof metarlExperiments)[];
