/** Calls of the studio's server, by the name of the route. */
import { type ApiFailure, type RouteName, routes } from "../src/studio/api.ts";
import { type Backend, BackendError } from "./backend.ts";

/** Calls a route: a GET with a query, or a POST with a body. What the server refuses is a `BackendError` with its words. */
export async function call<Answer>(
  route: RouteName,
  given: {
    readonly query?: Readonly<Record<string, string>>;
    readonly body?: unknown;
    readonly signal?: AbortSignal;
  } = {},
): Promise<Answer> {
  const { method, path } = routes[route];
  const search = given.query ? `?${new URLSearchParams(given.query)}` : "";
  const response = await fetch(path + search, {
    method,
    ...(method === "POST"
      ? { headers: { "content-type": "application/json" }, body: JSON.stringify(given.body) }
      : {}),
    ...(given.signal ? { signal: given.signal } : {}),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new BackendError("The studio does not answer. Is `fwm studio` still running?");
  });
  const answer = (await response.json().catch(() => undefined)) as Answer | ApiFailure | undefined;
  if (response.ok && answer !== undefined) return answer as Answer;
  const failure = (answer as ApiFailure | undefined)?.error;
  throw new BackendError(failure?.message ?? `${path}: status ${response.status}`, failure?.unknownWords);
}

/** The studio's server as the backend of Ask and Memory. */
export const studioBackend: Backend = {
  models: async () => (await call<{ models: Awaited<ReturnType<Backend["models"]>> }>("models")).models,
  vocabulary: async (model) =>
    (await call<{ words: readonly string[] }>("vocabulary", { body: { model } })).words,
  ask: (body, signal) => call("ask", { body, signal }),
};
