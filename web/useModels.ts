/** The models that a page can choose from. */
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useCallback, useEffect } from "preact/hooks";
import type { ModelEntry, ModelRef, ModelUse } from "../src/studio/api.ts";
import { useBackend } from "./backend.ts";

/** What is known of the models. */
export interface Models {
  readonly list?: readonly ModelEntry[];
  readonly error?: unknown;
}

/** The models of a use, and a way to look again. */
export function useModels(use: ModelUse): { models: ReadonlySignal<Models>; reload: () => void } {
  const backend = useBackend();
  const models = useSignal<Models>({});
  const reload = useCallback(() => {
    models.value = {};
    backend.models().then(
      (all) => {
        models.value = { list: all.filter((model) => model.use === use) };
      },
      (error: unknown) => {
        models.value = { error };
      },
    );
  }, [backend, use, models]);
  useEffect(reload, [reload]);
  return { models, reload };
}

/** A model as the address names it: `id`, or `id@checkpoint`. */
export function parseRef(text: string | undefined): ModelRef | undefined {
  if (!text) return undefined;
  const at = text.lastIndexOf("@");
  return at > 0 ? { id: text.slice(0, at), checkpoint: text.slice(at + 1) } : { id: text };
}

/** The opposite of `parseRef`. */
export function showRef(ref: ModelRef | undefined): string | undefined {
  return ref && (ref.checkpoint ? `${ref.id}@${ref.checkpoint}` : ref.id);
}
