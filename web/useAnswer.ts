/** The answer of a model to a story, asked again whenever either changes and typing has stopped. */
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { AskAnswer, ModelRef } from "../src/studio/api.ts";
import { useBackend } from "./backend.ts";

/** Where a question stands. */
export interface Asking {
  /** The newest answer, kept until the next one is there, so that nothing on the page jumps. */
  readonly answer?: AskAnswer;
  readonly error?: unknown;
  readonly isWaiting: boolean;
}

/** Milliseconds without typing after which the model is asked. */
const pause = 60;

/** Asks. `revision` changes where the same model would answer differently: it has been trained on. */
export function useAnswer(
  model: ModelRef | undefined,
  story: string,
  { writes = false, revision = 0 }: { writes?: boolean; revision?: number } = {},
): ReadonlySignal<Asking> {
  const backend = useBackend();
  const state = useSignal<Asking>({ isWaiting: true });
  const { id, checkpoint } = model ?? {};
  useEffect(() => {
    if (id === undefined || story.trim() === "") {
      state.value = { isWaiting: false };
      return;
    }
    const stop = new AbortController();
    state.value = { ...state.peek(), isWaiting: true };
    const timer = setTimeout(() => {
      backend
        .ask({ model: { id, ...(checkpoint ? { checkpoint } : {}) }, story, top: 5, writes }, stop.signal)
        .then(
          (answer) => {
            if (!stop.signal.aborted) state.value = { answer, isWaiting: false };
          },
          (error: unknown) => {
            if (!stop.signal.aborted) state.value = { error, isWaiting: false };
          },
        );
    }, pause);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [backend, id, checkpoint, story, writes, revision, state]);
  return state;
}
