/**
 * The systems that the paper compares the memory with, and the memory's nearest descendant, on catbAbI: at the paper's
 * sizes, and small, at the memory's number of weights, so that a laptop can compare like with like.
 *
 * Sizes, batch, optimizer and rates are the paper's where it gives them; docs/systems.md says what is a guess.
 */
import {
  type CatbabiExperiment,
  type CatbabiPaper,
  type CatbabiSettings,
  catbabiExperiment,
  catbabiTask,
  releasedTraining,
} from "../src/experiment/catbabi/settings.ts";
import { deltaNetDefaults } from "../src/model/deltaNetModel.ts";
import { jbfwDefaults } from "../src/model/jbfwModel.ts";
import { lstmBaseline, lstmDefaults } from "../src/model/lstmModel.ts";
import { mnmDefaults } from "../src/model/mnmModel.ts";
import { transformerXlDefaults } from "../src/model/transformerXlModel.ts";
import qa from "./catbabi-qa-fwm.ts";

interface Rate {
  readonly learningRate: number;
  readonly warmup?: number;
}

/** One system: its settings at both sizes, how it is trained, and what the paper reports (section 4.1, table 1). */
interface Compared {
  readonly title: string;
  readonly system: CatbabiSettings["system"];
  /** About the memory's 693,985 weights; absent where `system` has that size already. */
  readonly small?: CatbabiSettings["system"];
  readonly smoke: object;
  readonly rate: Rate;
  /** Of the small one, where it is another. */
  readonly smallRate?: Rate;
  readonly paper?: Readonly<Record<"qa" | "lm", readonly [accuracyPercent: number, perplexity: number]>> & {
    readonly weights: number;
    readonly stateVariables: number;
  };
}

const compared: Readonly<Record<string, Compared>> = {
  lstm: {
    title: "LSTM, four residual layers",
    system: lstmBaseline,
    small: { ...lstmBaseline, layers: 2, hidden: 186 },
    smoke: { embedding: 16, hidden: 16, layers: 2 },
    rate: { learningRate: 1e-3 },
    paper: { qa: [80.88, 1.93], lm: [80.15, 1.84], weights: 8e6, stateVariables: 4096 },
  },
  txl: {
    title: "Transformer-XL",
    system: transformerXlDefaults,
    // A cache of one window: three times the memory's operations per token, where one of 1200 has eight times.
    small: { ...transformerXlDefaults, embedding: 128, hidden: 128, heads: 4, inner: 544, memory: 200 },
    smoke: { embedding: 16, hidden: 16, heads: 2, inner: 32, layers: 2, memory: 100 },
    rate: { learningRate: 2.5e-4, warmup: 1000 },
    // The rate goes by the inverse of the width, 128 instead of 512.
    smallRate: { learningRate: 1e-3, warmup: 200 },
    paper: { qa: [87.66, 1.5], lm: [90.23, 1.39], weights: 10.5e6, stateVariables: 4.3e6 },
  },
  mnm: {
    title: "metalearned neural memory",
    system: mnmDefaults,
    small: { ...mnmDefaults, hidden: 198, memory: 64 },
    smoke: { embedding: 16, hidden: 16, memory: 8 },
    rate: { learningRate: 1e-3 },
    paper: { qa: [88.97, 2.5], lm: [69.3, 2.6], weights: 1.1e6, stateVariables: 30.5e3 },
  },
  jbfw: {
    title: "Ba's fast weights",
    system: jbfwDefaults,
    small: { ...jbfwDefaults, hidden: 604 },
    smoke: { embedding: 16, hidden: 16 },
    rate: { learningRate: 2.5e-4 },
    paper: { qa: [13.22, 31.19], lm: [0, 160.3], weights: 548e3, stateVariables: 263e3 },
  },
  "delta-net": {
    title: "delta network",
    system: deltaNetDefaults,
    smoke: { embedding: 16, hidden: 16, heads: 2, inner: 24, layers: 2 },
    rate: { learningRate: 1e-3, warmup: 200 },
  },
};

function publishedOf(paper: NonNullable<Compared["paper"]>, mode: "qa" | "lm"): CatbabiPaper {
  const { weights, stateVariables } = paper;
  const [accuracyPercent, perplexity] = paper[mode];
  return { accuracy: accuracyPercent / 100, perplexity, weights, stateVariables };
}

function define(mode: "qa" | "lm", size: "small" | "paper", of: Compared): CatbabiExperiment {
  const { title, system, small, smoke, paper } = of;
  const { learningRate, warmup = 0 } = size === "small" ? (of.smallRate ?? of.rate) : of.rate;
  const isPapers = size === "paper" && paper !== undefined;
  const words = mode === "qa" ? "question answering" : "language-model mode";
  return catbabiExperiment({
    description: `catbAbI, ${words}, ${title}${isPapers ? "" : ", at the memory's number of weights"}`,
    settings: {
      task: { ...catbabiTask, mode },
      system: size === "small" ? small! : system,
      training: {
        ...releasedTraining,
        batch: 64,
        steps: 60_000,
        optimizer: { ...releasedTraining.optimizer, learningRate },
        schedule: { name: "constant", warmup },
      },
    },
    smoke: { ...qa.smoke, system: smoke },
    ...(isPapers ? { paper: publishedOf(paper, mode) } : {}),
  });
}

const modes = ["qa", "lm"] as const;

/** `catbabi-qa-txl`, `catbabi-lm-txl`, `catbabi-qa-txl-small` and so on. */
export const systemExperiments: Readonly<Record<string, CatbabiExperiment>> = Object.fromEntries(
  Object.entries(compared).flatMap(([name, of]) =>
    modes.flatMap((mode) => [
      [`catbabi-${mode}-${name}`, define(mode, "paper", of)] as const,
      ...(of.small ? [[`catbabi-${mode}-${name}-small`, define(mode, "small", of)] as const] : []),
    ]),
  ),
);

/** A plain LSTM of the memory's width: what the memory is worth. */
export const oneLayerLstm = catbabiExperiment({
  description: "catbAbI, question answering, one LSTM layer of the FWM's width",
  settings: { task: catbabiTask, system: lstmDefaults, training: releasedTraining },
  smoke: { ...qa.smoke, system: { embedding: 32, hidden: 32 } },
});
