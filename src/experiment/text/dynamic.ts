/**
 * Dynamic evaluation (Krause, Kahembwe, Murray and Renals, ICML 2018): the weights follow the text that is read. Each
 * segment is scored with the weights as they are, then its gradient changes them, so nothing is learned from a word
 * before it was predicted.
 *
 *   code      equation                                              meaning
 *   g         ∇ of the mean loss of a segment                       state carried, gradients not
 *   rms       √(1/n Σ g²)                                           of the training split: n windows of 100 columns
 *   m         mean over the tensors of a model of mean(rms)
 *   weights   w ← w + min(λ rms/m, 1) (w_0 - w) - η g/(rms + ε)     w_0 the trained weights
 *
 * η is the rate, λ the decay towards the trained weights. There is no dropout. As in the released program; it takes the
 * statistics of the whole training split, here of at most `statisticsWindows` windows. The time of an update is that of
 * going through all weights, so the rule is w ← keep w + pull - scale g, with what does not change computed beforehand.
 */
import { grad } from "../../compile/grad.ts";
import { evaluationBatches, type TextBatch } from "../../data/text/columns.ts";
import type { TokenStream } from "../../data/text/prepared.ts";
import { add, mul, state, stateAttrs, sub, type Tensor } from "../../graph/index.ts";
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

/** Columns of the training split that gradients are averaged over, and most windows of them. */
const statisticsColumns = 100;
const statisticsWindows = 400;

/** What is tried when the settings are tuned, for segments of `usualSegment`; both go by the length of a segment. */
export const dynamicGrid = {
  rate: [2e-5, 5e-5, 1e-4, 2e-4, 4e-4],
  decay: [5e-4, 1e-3, 2e-3, 5e-3, 1e-2],
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
    const { losses } = await program.run(inputsOf(cut));
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
    const followed = parameters.map((parameter, i) => {
      const returned = add(mul(kept("keep", parameter), parameter), kept("pull", parameter));
      return [parameter, sub(returned, mul(kept("scale", parameter), gradients[i]!))] as const;
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
 * Searches the rate with the middle decay, upwards until the loss increases, then the decay with the best rate:
 * downwards from the middle, and upwards if that made it worse. The best of all that was tried comes with it.
 */
export async function tuneDynamic(
  segment: number,
  lossAt: (settings: DynamicSettings) => Promise<number>,
): Promise<{ best: DynamicSettings; tried: (DynamicSettings & { loss: number })[] }> {
  const scale = segment / usualSegment;
  const [rates, decays] = [dynamicGrid.rate, dynamicGrid.decay].map((values) =>
    values.map((value) => Number((value * scale).toPrecision(6))),
  ) as [number[], number[]];
  const tried: (DynamicSettings & { loss: number })[] = [];
  const best = () => tried.reduce((a, b) => (b.loss < a.loss ? b : a));
  /** Goes along some settings as long as each is better than the one before. */
  const climb = async (candidates: readonly DynamicSettings[], before: number): Promise<void> => {
    let last = before;
    for (const candidate of candidates) {
      const found = await lossAt(candidate);
      // Weights that followed too fast.
      const loss = Number.isFinite(found) ? found : Number.POSITIVE_INFINITY;
      tried.push({ ...candidate, loss });
      if (loss >= last) return;
      last = loss;
    }
  };
  const middle = Math.floor(decays.length / 2);
  await climb(
    rates.map((rate) => ({ rate, decay: decays[middle]! })),
    Number.POSITIVE_INFINITY,
  );
  const { rate, loss } = best();
  const from = (values: readonly number[]) =>
    climb(
      values.map((decay) => ({ rate, decay })),
      loss,
    );
  await from(decays.slice(0, middle).reverse());
  if (best().decay === decays[middle]) await from(decays.slice(middle + 1));
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
