/**
 * Where the pages Ask and Memory get their data: the studio's server, or a worker in the page. The shapes are those of
 * the studio's API, so that a page does not know which it has.
 */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { AskAnswer, AskRequest, ModelEntry } from "../src/studio/api.ts";

/** What answers the pages. A call whose signal is aborted rejects with an `AbortError`. */
export interface Backend {
  /** The models there are. */
  models(): Promise<readonly ModelEntry[]>;
  /** The words a model knows. */
  vocabulary(model: AskRequest["model"]): Promise<readonly string[]>;
  ask(request: AskRequest, signal: AbortSignal): Promise<AskAnswer>;
}

/** A failure that is the user's to mend: its message says how. */
export class BackendError extends Error {
  override readonly name = "BackendError";

  constructor(
    message: string,
    /** Of words that the model does not know: each with the nearest known ones. */
    readonly unknownWords: Readonly<Record<string, readonly string[]>> = {},
  ) {
    super(message);
  }
}

/** The backend of the pages inside. */
export const BackendContext = createContext<Backend | null>(null);

/** The backend; pages are never shown without one. */
export function useBackend(): Backend {
  const backend = useContext(BackendContext);
  if (!backend) throw new Error("internal: the page has no backend");
  return backend;
}
