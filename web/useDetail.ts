/** Looks something up by name, and again whenever its stamp changes. */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "./api.ts";

/** What was found, or why it was not; both undefined while the first look-up lasts. */
export interface Detail<T> {
  readonly found: Signal<T | undefined>;
  readonly error: Signal<unknown>;
}

/** The answer of `route` about `name`; what is shown stays until the next one is there. */
export function useDetail<T>(route: "run" | "sweep", name: string, stamp: string): Detail<T> {
  const found = useSignal<T | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  useEffect(() => {
    const stop = new AbortController();
    call<T>(route, { query: { [route]: name }, signal: stop.signal }).then(
      (answer) => {
        found.value = answer;
        error.value = undefined;
      },
      (reason: unknown) => {
        if (!stop.signal.aborted) error.value = reason;
      },
    );
    return () => stop.abort();
  }, [route, name, stamp, found, error]);
  return { found, error };
}
