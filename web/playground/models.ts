/** The models that answer in the playground: those in training, as they are now or were at an evaluation, and the shipped one. */

import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { type FwmModel, modelFromBytes } from "../../src/inference/model.ts";
import { traceStory } from "../../src/inference/storyTrace.ts";
import { plainWords } from "../../src/inference/text.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import type { Tensors } from "../../src/store/safetensors.ts";
import type { AskAnswer, AskRequest, CheckpointInfo, ModelEntry } from "../../src/studio/api.ts";
import type { SystemName } from "./choices.ts";
import type { TrainingSession } from "./trainingSession.ts";
import { vocabularyFile } from "./trainingSession.ts";

/** Where the shipped model's files are. */
export interface ShippedModel {
  readonly config: string;
  readonly safetensors: string;
  readonly vocab: string;
}

/** Snapshots that are kept; beyond, every other one goes. */
const mostSnapshots = 60;
/** Compiled models that are kept. */
const mostModels = 4;

/** What the systems are called. */
export const systemLabels: Readonly<Record<SystemName, string>> = {
  fwm: "the memory in training",
  lstm: "the LSTM in training",
};

/** The id of the shipped model. */
export const shippedId = "shipped:catbabi-qa";

/** The models, and the weights at earlier steps. */
export class PlaygroundModels {
  private session: TrainingSession | undefined;
  private readonly snapshots = new Map<number, Readonly<Record<string, Tensors>>>();
  private readonly compiled = new Map<string, Promise<FwmModel>>();

  constructor(
    private readonly options: { readonly runtime: Runtime; readonly threads: number },
    private readonly shipped: ShippedModel,
  ) {}

  /** Takes another session; the snapshots of the one before go. */
  async use(session: TrainingSession | undefined): Promise<void> {
    this.session = session;
    this.snapshots.clear();
    await this.trim(0, (key) => key !== shippedId);
  }

  /** Keeps the weights as they are now. */
  snapshot(): void {
    const { session } = this;
    if (!session) return;
    this.snapshots.set(
      session.step,
      Object.fromEntries(session.systems.map((name) => [name, session.weights(name)])),
    );
    if (this.snapshots.size <= mostSnapshots) return;
    [...this.snapshots.keys()].forEach((step, i, all) => {
      if (i % 2 === 1 && i < all.length - 1) this.snapshots.delete(step);
    });
  }

  /** What can be asked. */
  list(): ModelEntry[] {
    const { session } = this;
    const own = (session?.systems ?? []).map(
      (name): ModelEntry => ({
        id: `trained:${name}`,
        label: systemLabels[name],
        use: "answers",
        system: name,
        experiment: "playground",
        memory: name === "fwm",
        checkpoints: this.checkpoints(name),
      }),
    );
    return [
      ...own,
      {
        id: shippedId,
        label: "catbabi-qa, trained on all twenty tasks",
        use: "answers",
        system: "fwm",
        experiment: "catbabi-qa-fwm-mixed",
        memory: true,
        checkpoints: [],
      },
    ];
  }

  private checkpoints(name: SystemName): CheckpointInfo[] {
    const session = this.session!;
    const curve = session.curve(name);
    const best = curve.reduce<(typeof curve)[number] | undefined>(
      (top, point) => (top === undefined || point.accuracy > top.accuracy ? point : top),
      undefined,
    );
    const steps = [...this.snapshots.keys()].filter((step) => step !== session.step);
    return [...steps, session.step].map((step) => ({
      name: `step-${step}`,
      step,
      best: step === best?.step,
      last: step === session.step,
    }));
  }

  /** The words that may be typed. */
  words(): readonly string[] {
    return plainWords(catbabiVocabulary);
  }

  /** Reads a story and answers its questions. */
  async ask({ model: { id, checkpoint }, story, top, writes }: AskRequest): Promise<AskAnswer> {
    const { model, step } = await this.model(id, checkpoint);
    const start = performance.now();
    const { writes: written, ...trace } = await traceStory(model, story, top === undefined ? {} : { top });
    return {
      ...trace,
      ...(writes && written ? { writes: written } : {}),
      system: model.config.system.name,
      step,
      ms: performance.now() - start,
    };
  }

  private async model(
    id: string,
    checkpoint: string | undefined,
  ): Promise<{ model: FwmModel; step: number | null }> {
    if (id === shippedId) return { model: await this.keep(id, () => this.loadShipped()), step: null };
    const { session } = this;
    const name = id.replace(/^trained:/, "") as SystemName;
    if (!session?.systems.includes(name)) throw new Error(`${id}: there is no such model here`);
    const asked = checkpoint?.startsWith("step-") ? Number(checkpoint.slice(5)) : session.step;
    const known = this.snapshots.has(asked) ? asked : session.step;
    const model = await this.keep(`${id}@${known}`, () => {
      const weights = this.snapshots.get(known)?.[name] ?? session.weights(name);
      return modelFromBytes(
        { config: session.config(name), safetensors: weights, vocab: vocabularyFile },
        this.options,
      );
    });
    return { model, step: known };
  }

  private async keep(key: string, make: () => FwmModel | Promise<FwmModel>): Promise<FwmModel> {
    const found = this.compiled.get(key) ?? Promise.resolve(make());
    this.compiled.delete(key);
    this.compiled.set(key, found);
    try {
      const model = await found;
      await this.trim(mostModels, () => true);
      return model;
    } catch (error) {
      this.compiled.delete(key);
      throw error;
    }
  }

  private async trim(most: number, mayGo: (key: string) => boolean): Promise<void> {
    for (const [key, model] of [...this.compiled]) {
      if (this.compiled.size <= most) return;
      if (!mayGo(key)) continue;
      this.compiled.delete(key);
      await model.then(
        (loaded) => loaded.release(),
        () => undefined,
      );
    }
  }

  private async loadShipped(): Promise<FwmModel> {
    const bytes = async (address: string): Promise<ArrayBuffer> => {
      const response = await fetch(address).catch(() => undefined);
      if (!response?.ok) throw new Error("The shipped model could not be loaded. Are you offline?");
      return response.arrayBuffer();
    };
    const [config, safetensors, vocab] = await Promise.all([
      bytes(this.shipped.config),
      bytes(this.shipped.safetensors),
      bytes(this.shipped.vocab),
    ]);
    return modelFromBytes({ config, safetensors, vocab }, { ...this.options, name: "catbabi-qa" });
  }
}
