/**
 * A runtime whose sessions take turns. ONNX Runtime's WebAssembly build has one stack: a session that is created or run
 * while another one is at it ends in "null function".
 */
import type { Runtime } from "../../src/runtime/runtime.ts";

/** The runtime, one thing at a time; `onCreate` is called around the creation of a session. */
export function serialRuntime(
  runtime: Runtime,
  onCreate: (change: 1 | -1) => Promise<void> | void = () => undefined,
): Runtime {
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
  return {
    name: runtime.name,
    createSession: (model, options) =>
      inTurn(async () => {
        await onCreate(1);
        try {
          const session = await runtime.createSession(model, options);
          return {
            run: (feeds, into) => inTurn(() => session.run(feeds, into)),
            release: () => inTurn(() => session.release()),
          };
        } finally {
          await onCreate(-1);
        }
      }),
  };
}
