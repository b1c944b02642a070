/** What a runtime does: make a session of an encoded model, run it, let it go. One interface, Node and browser. */
import type { HostTensor } from "./host.ts";

/** Where a model runs. `cuda` is opt-in and never falls back silently. */
export type Device = "cpu" | "cuda" | "wasm";

/** How a session runs. */
export interface SessionOptions {
  /** Threads inside one operator; default: the machine's cores, in a browser at most four of them. */
  readonly threads?: number;
  readonly device?: Device;
  /** For programs that run in turn: threads that wait for work rest between runs, so the other has the cores. */
  readonly stopSpinning?: boolean;
  /** Keep memory for the next tensors instead of giving it back (Node only); default true. Large ones fit together badly. */
  readonly arena?: boolean;
  /** Writes a chrome-trace profile of every operator under this prefix (Node only). */
  readonly profile?: string;
}

/** A model ready to run. */
export interface Session {
  /** Runs once: reads `feeds`, writes the named outputs into `into`. */
  run(feeds: ReadonlyMap<string, HostTensor>, into: ReadonlyMap<string, HostTensor>): Promise<void>;
  /** Frees the session's memory. It cannot run afterwards. */
  release(): Promise<void>;
}

/** A way to run models. */
export interface Runtime {
  readonly name: string;
  createSession(model: Uint8Array, options?: SessionOptions): Promise<Session>;
}
