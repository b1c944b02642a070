/**
 * Dynamic evaluation (Krause, Kahembwe, Murray and Renals, ICML 2018): the weights follow the text that is read. Each
 * segment is scored with the weights as they are, then its gradient changes them, so nothing is learned from a word
 * before it was predicted.
 *
 *   code      equation                                              meaning
 *   g         ∇ of the mean loss of a segment                       state carried, gradients not
 *   rms       √(1/n Σ g²)                                           of the training split: n windows of 100 columns
 *   m         mean over the tensors of a model of mean(rms)
 *   step      s = g/(rms + ε),  s ← s min(1, 100/rms(s))            per tensor, rms(s) over its entries
 *   weights   w ← w + min(λ rms/m, 1) (w_0 - w) - η s               w_0 the trained weights
 *
 * η is the rate, λ the decay towards the trained weights. There is no dropout.
 *
 * Departures from the released program: it has no limit on a step. Steps of an LSTM are 5 to 20 in this measure and never
 * meet the limit; a memory that reads where nothing is written has gradients thousands of times the usual, and one of them
 * would spoil the weights for good. And it takes the statistics of the whole training split, here of at most
 * `statisticsWindows` windows. The time of an update is that of going through all weights, so the rule is
 * w ← keep w + pull - scale g, with what does not change computed beforehand.
 */
import { grad } from "../../compile/grad.ts";
import { evaluationBatches, type TextBatch } from "../../data/text/columns.ts";
import type { TokenStream } from "../../data/text/prepared.ts";
import {
  add,
  div,
  input,
  mean,
  min,
  mul,
  sqrt,
  state,
  stateAttrs,
  sub,
  type Tensor,
} from "../../graph/index.ts";
import type { SequenceModel } from "../../model/sequence.ts";
import { ProgramCache } from "../../runtime/cache.ts";
import { type CompileOptions, compile, type Program, type ProgramSpec } from "../../runtime/program.ts";
import { State } from "../../runtime/state.ts";
import { lossWindow } from "../../train/sequenceWindow.ts";
import { usualSegment } from "./options.ts";
import { type Score, Total, tokenBatch } from "./score.ts";

/** How fast the weights follow, and how fast they return. */
export interface DynamicSettings {
  /** η: learning rate. */
  readonly rate: number;
  /** λ: decay towards the trained weights. */
  readonly decay: number;
}

/** ε of the released program. */
const epsilon = 2e-5;

/** Largest step of a tensor: the root of the mean square of g/(rms + ε). */
const largestStep = 100;

/** Columns of the training split that gradients are averaged over, and most windows of them. */
const statisticsColumns = 100;
const statisticsWindows = 400;

/** The settings of the released program, for segments of `usualSegment`; both go by the length of a segment. */
const publishedDynamic: DynamicSettings = { rate: 5e-5, decay: 2e-3 };

/** What may be tried when the settings are tuned, the published ones among them. */
export const dynamicGrid = {
  rate: [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 4e-4],
  decay: [5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2],
} as const satisfies Readonly<Record<keyof DynamicSettings, readonly number[]>>;

/** Tokens of the validation split that settings are tuned on. */
export const dynamicTuningTokens = 30_000;

/** A model whose weights follow the text. */
export class DynamicEvaluator {
  private readonly programs = new ProgramCache();
  private readonly state = new State();
  /** Root mean squares of the gradients by name, once they are measured. */
  private readonly rms = new Map<string, Float32Array>();
  /** m of the equations. */
  private meanRms = 0;
  private rate = 0;

  constructor(
    private readonly model: SequenceModel,
    private readonly weights: ReadonlyMap<string, Float32Array>,
    private readonly options: Omit<CompileOptions, "state">,
  ) {
    for (const parameter of model.parameters) this.state.declare(stateAttrs(parameter)!);
  }

  /** Measures the size of gradients on training text; before anything is read. */
  async measure(batches: Iterable<TextBatch>, onWindow?: () => void): Promise<void> {
    let windows = 0;
    for (const cut of batches) {
      if (cut.isFirst) this.begin(cut.batch);
      const program = await this.program("statistics", cut);
      await program.run(inputsOf(cut));
      windows++;
      await turn();
      onWindow?.();
    }
    const means = this.model.parameters.map((parameter) => {
      const sums = this.state.get(nameOf(kept("scale", parameter))).data as Float32Array;
      const rms = sums.map((sum) => Math.sqrt(sum / windows));
      this.rms.set(nameOf(parameter), rms);
      return rms.reduce((total, value) => total + value, 0) / rms.length;
    });
    this.meanRms = means.reduce((a, b) => a + b, 0) / means.length;
  }

  /** Starts a text: the trained weights, the system's own start state, and how fast the weights follow from here on. */
  start({ rate, decay }: DynamicSettings): void {
    this.begin(1);
    this.rate = rate;
    for (const parameter of this.model.parameters) {
      const [trained, rms] = [this.weights.get(nameOf(parameter))!, this.rms.get(nameOf(parameter))!];
      const back = (i: number): number => Math.min((decay * rms[i]!) / (this.meanRms || 1), 1);
      this.put(kept("keep", parameter), (i) => 1 - back(i));
      this.put(kept("pull", parameter), (i) => back(i) * trained[i]!);
      this.put(kept("scale", parameter), (i) => rate / (rms[i]! + epsilon));
    }
  }

  private put(tensor: Tensor, value: (i: number) => number): void {
    this.state.declare(stateAttrs(tensor)!);
    const data = this.state.get(nameOf(tensor)).data as Float32Array;
    for (let i = 0; i < data.length; i++) data[i] = value(i);
  }

  private begin(batch: number): void {
    for (const [name, values] of this.weights) this.state.set(name, values);
    for (const { name, shape, initial } of this.model.recurrent) {
      this.state.reset({
        ...{ name: prefixOf(batch) + name, shape: shape(batch), dtype: "f32" },
        initial: initial ?? { kind: "zeros" },
      });
    }
  }

  /** The losses of a segment, [T, B], before its gradient changed the weights; overwritten by the next one. */
  async run(cut: TextBatch): Promise<Float32Array> {
    const program = await this.program("follow", cut);
    const { losses } = await program.run({ ...inputsOf(cut), limit: largestStep * this.rate });
    return losses as Float32Array;
  }

  private program(form: "statistics" | "follow", cut: TextBatch): Promise<Program> {
    return this.programs.get(`${form} ${cut.batch}x${cut.window}`, () =>
      compile(this.spec(form, cut), { ...this.options, state: this.state }),
    );
  }

  private spec(form: "statistics" | "follow", cut: TextBatch): ProgramSpec {
    const { parameters } = this.model;
    const how = { training: false, exact: true };
    const { loss, losses, updates } = lossWindow(this.model, tokenBatch(cut), prefixOf(cut.batch), how);
    const gradients = grad(loss, parameters);
    if (form === "statistics") {
      const squares = parameters.map((parameter, i) => {
        // The sums stand where the scale stands later.
        const sums = kept("scale", parameter);
        return [sums, add(sums, mul(gradients[i]!, gradients[i]!))] as const;
      });
      return { name: "statistics", outputs: {}, updates: [...updates, ...squares] };
    }
    const limit = input("limit", []);
    const followed = parameters.map((parameter, i) => {
      const returned = add(mul(kept("keep", parameter), parameter), kept("pull", parameter));
      const step = mul(kept("scale", parameter), gradients[i]!);
      // A step of zeros is divided by next to nothing, and stays one.
      const factor = min(div(limit, add(sqrt(mean(mul(step, step))), 1e-30)), 1);
      return [parameter, sub(returned, mul(step, factor))] as const;
    });
    return { name: "dynamic", outputs: { losses }, updates: [...updates, ...followed] };
  }

  /** Frees all compiled programs. */
  async release(): Promise<void> {
    await this.programs.release();
  }
}

/** Windows of the training split that the size of gradients is measured on. */
export function* statisticsBatches(train: TokenStream, segment: number): Generator<TextBatch> {
  // A short text gets fewer columns, so that each has many segments: gradients at its start are unlike the others.
  const batch = Math.max(1, Math.min(statisticsColumns, Math.floor(Math.sqrt(train.length / segment))));
  let windows = 0;
  for (const cut of evaluationBatches(train, { batch, window: segment })) {
    if (windows++ === statisticsWindows) return;
    yield cut;
  }
}

/** Scores a split, or its first tokens, segment by segment with weights that follow it. */
export async function scoreDynamic(
  evaluator: DynamicEvaluator,
  stream: TokenStream,
  {
    segment,
    settings,
    onWindow,
  }: { segment: number; settings: DynamicSettings; onWindow?: (() => void) | undefined },
): Promise<Score> {
  const total = new Total();
  evaluator.start(settings);
  for (const cut of evaluationBatches(stream, { batch: 1, window: segment })) {
    total.add(cut, await evaluator.run(cut));
    await turn();
    onWindow?.();
  }
  return total.score();
}

/**
 * Searches from the published settings on, along one of the two at a time: the rate, the decay, and the rate again. Each
 * time downwards as long as the loss falls, and upwards if it did not fall at once.
 */
export async function tuneDynamic(
  segment: number,
  lossAt: (settings: DynamicSettings) => Promise<number>,
): Promise<{ best: DynamicSettings; tried: (DynamicSettings & { loss: number })[] }> {
  const scaled = (value: number): number => Number(((value * segment) / usualSegment).toPrecision(6));
  const grid = { rate: dynamicGrid.rate.map(scaled), decay: dynamicGrid.decay.map(scaled) };
  const tried: (DynamicSettings & { loss: number })[] = [];
  const attempt = async (settings: DynamicSettings): Promise<number> => {
    const known = tried.find(({ rate, decay }) => rate === settings.rate && decay === settings.decay);
    if (known) return known.loss;
    const found = await lossAt(settings);
    // Weights that followed too fast have none.
    const loss = Number.isFinite(found) ? found : Number.POSITIVE_INFINITY;
    tried.push({ ...settings, loss });
    return loss;
  };
  const best = () => tried.reduce((a, b) => (b.loss < a.loss ? b : a));
  await attempt({ rate: scaled(publishedDynamic.rate), decay: scaled(publishedDynamic.decay) });
  for (const name of ["rate", "decay", "rate"] as const) {
    const { loss: start, ...from } = best();
    const at = grid[name].indexOf(from[name]);
    for (const way of [grid[name].slice(0, at).reverse(), grid[name].slice(at + 1)]) {
      let last = start;
      for (const value of way) {
        const loss = await attempt({ ...from, [name]: value });
        if (loss >= last) break;
        last = loss;
      }
      if (last < start) break;
    }
  }
  const { loss: _, ...settings } = best();
  return { best: settings, tried };
}

function inputsOf(cut: TextBatch) {
  const { tokens, mask, targets, lossMask } = tokenBatch(cut);
  return { tokens, mask: mask!, targets, lossMask };
}

function prefixOf(batch: number): string {
  return `stream${batch}.`;
}

function nameOf(tensor: Tensor): string {
  return stateAttrs(tensor)!.name;
}

/** What is kept beside a parameter, a number for each weight. */
function kept(what: "keep" | "pull" | "scale", parameter: Tensor): Tensor {
  return state(`${what}.${nameOf(parameter)}`, parameter.shape);
}

/** The event loop gets a turn, so that ^C and the progress bar are alive between blocking windows. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
