/** Every experiment by name: file name, command-line name and row of the results are one string. */
import type { Experiment } from "../src/experiment/settings.ts";
import catbabiLmFwm from "./catbabi-lm-fwm.ts";
import catbabiQaFwm from "./catbabi-qa-fwm.ts";
import catbabiQaFwmDecay from "./catbabi-qa-fwm-decay.ts";
import catbabiQaLstm from "./catbabi-qa-lstm.ts";

/** The experiments. */
export const experiments = {
  "catbabi-qa-fwm": catbabiQaFwm,
  "catbabi-qa-fwm-decay": catbabiQaFwmDecay,
  "catbabi-lm-fwm": catbabiLmFwm,
  "catbabi-qa-lstm": catbabiQaLstm,
} as const satisfies Record<string, Experiment>;

/** Names of the experiments. */
export const experimentNames = Object.keys(experiments) as (keyof typeof experiments)[];
