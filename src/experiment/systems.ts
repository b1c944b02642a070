/** Systems by name: settings become a model. */
import { fwmVariants } from "../model/fwm.ts";
import { fwmModel } from "../model/fwmModel.ts";
import { lstmModel } from "../model/lstmModel.ts";
import type { SequenceModel } from "../model/sequence.ts";
import type { SystemSettings } from "./settings.ts";

/** The model that settings describe. */
export function buildSystem(system: SystemSettings): SequenceModel {
  switch (system.name) {
    case "fwm":
      return fwmModel({ ...system, variant: { ...fwmVariants[system.variant], keys: system.keys } });
    case "lstm":
      return lstmModel(system);
  }
}

/** Number of trained weights. */
export function countWeights({ parameters }: Pick<SequenceModel, "parameters">): number {
  return parameters.reduce((total, { shape }) => total + shape.reduce((a, b) => a * b, 1), 0);
}
