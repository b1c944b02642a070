/** What the page and its worker say to each other. */
import type { AskAnswer, AskRequest, ModelEntry } from "../../src/studio/api.ts";
import type { Choices, SystemName } from "./choices.ts";
import type { Point, StepValues } from "./trainingSession.ts";

/** How training stands. */
export type Phase = "idle" | "compiling" | "training" | "paused" | "failed";

/** What the worker tells about itself, a few times a second while it trains. */
export interface Status {
  readonly phase: Phase;
  /** Why it failed, or why it paused by itself. */
  readonly reason: string | null;
  readonly choices: Choices | null;
  /** Number of weights of the memory's system. */
  readonly weights: number | null;
  readonly step: number;
  /** Seconds of training, pauses left out. */
  readonly seconds: number;
  readonly stepsPerSecond: number | null;
  /** The last step, by system. */
  readonly last: Readonly<Record<string, StepValues>>;
  readonly threads: number;
  /** Step of the checkpoint in this browser's storage, or why there is none. */
  readonly saved: { readonly step: number } | { readonly problem: string } | null;
  /** Whether training was taken up from that checkpoint. */
  readonly restored: boolean;
}

/** The evaluations of every system. */
export type Curves = Readonly<Partial<Record<SystemName, readonly Point[]>>>;

/** The files of a model folder, by name. */
export type FolderFiles = Readonly<Record<string, Uint8Array<ArrayBuffer>>>;

/** What the page can ask of the worker: argument and answer. */
export interface Calls {
  /** Takes up the checkpoint of this browser if it was made with these choices, or with any if none are given. */
  restore(choices: Choices | null): boolean;
  /** Leaves what there was and prepares new training. */
  start(choices: Choices): void;
  /** The same, from the weights of a model folder; returns the choices it stands for. */
  load(files: FolderFiles): Choices;
  play(none: null): void;
  /** Stops after the present step and saves; the reason is shown. */
  pause(reason: string | null): void;
  /** One step, then pauses. */
  step(none: null): void;
  /** Removes the checkpoint. */
  forget(none: null): void;
  models(none: null): readonly ModelEntry[];
  vocabulary(none: null): readonly string[];
  ask(request: AskRequest): AskAnswer;
  /** The model folder of a system as it is now. */
  folder(system: SystemName): FolderFiles;
  /** Its `.onnx` file, one step of a stream. */
  onnx(system: SystemName): Uint8Array<ArrayBuffer>;
}

/** The name of a call. */
export type CallName = keyof Calls;

/** A call on its way to the worker. */
export interface CallMessage {
  readonly id: number;
  readonly name: CallName;
  readonly argument: unknown;
}

/** What comes from the worker: an answer, or news. */
export type WorkerMessage =
  | { readonly kind: "answer"; readonly id: number; readonly value: unknown }
  | {
      readonly kind: "refusal";
      readonly id: number;
      readonly message: string;
      readonly unknownWords: Readonly<Record<string, readonly string[]>>;
    }
  | { readonly kind: "status"; readonly status: Status }
  | { readonly kind: "curves"; readonly curves: Curves };
