/**
 * One model in a process of its own: ONNX Runtime blocks whoever calls it, so it runs here and the server stays free.
 * The first argument is the folder; requests come as JSON, one at a time, and each is answered once.
 */
import { FwmError } from "../../errors.ts";
import type { FwmModel } from "../../inference/model.ts";
import { UnknownWordError } from "../../inference/text.ts";
import type { ModelAnswer, ModelRequest, ModelResult } from "./modelPool.ts";

const folder = process.argv[2]!;
let loaded: Promise<FwmModel> | undefined;

/** The model, loaded when something is first asked of it; one that could not be loaded is tried again. */
function model(): Promise<FwmModel> {
  loaded ??= import("../../inference/load.ts")
    .then(({ loadModel }) => loadModel(folder))
    .catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
  return loaded;
}

async function answer(request: ModelRequest): Promise<ModelResult> {
  switch (request.kind) {
    case "ask": {
      const { traceStory } = await import("../../inference/storyTrace.ts");
      const asked = await model();
      const begin = performance.now();
      const { writes, ...trace } = await traceStory(asked, request.story, { top: request.top });
      return {
        ...trace,
        ...(request.writes && writes ? { writes } : {}),
        ms: performance.now() - begin,
      };
    }
    case "vocabulary": {
      const { plainWords } = await import("../../inference/text.ts");
      return { words: plainWords((await model()).vocabulary) };
    }
    case "rollout": {
      const { rollOut } = await import("../../experiment/rollout.ts");
      const { episodes } = await rollOut(folder, { seed: request.seed, episodes: 1 });
      const { explorer, explorerSteps, ...episode } = episodes[0]!;
      return { ...episode, explorer: explorerSteps, explorerTotal: explorer };
    }
    case "passage": {
      const { passageBits } = await import("../../inference/passage.ts");
      return { words: await passageBits(await model(), request.text) };
    }
    case "generate": {
      const { id: _, kind: __, ...options } = request;
      const unknown: string[] = [];
      const draws = (await model()).generate({
        ...options,
        onUnknown: (missing) => unknown.push(...missing),
      });
      const words = [];
      for await (const word of draws) words.push(word);
      return { words, unknown };
    }
  }
}

/** What the server is told of an error: enough to say the same as the command line. */
function told(error: unknown): NonNullable<ModelAnswer["failure"]> {
  const name = error instanceof FwmError ? error.name : "Error";
  const message = error instanceof Error ? error.message : String(error);
  const suggestions = error instanceof UnknownWordError ? [...error.suggestions] : undefined;
  return { name, message, ...(suggestions ? { suggestions } : {}) };
}

/** Numbers to about six digits: more than a page shows, and half as long. Fixed digits are quicker than significant ones. */
function shortened(_key: string, value: unknown): unknown {
  if (typeof value !== "number" || Number.isInteger(value)) return value;
  return Math.abs(value) >= 1e-3 ? Math.round(value * 1e6) / 1e6 : Number(value.toPrecision(6));
}

process.on("message", (request: ModelRequest) => {
  void answer(request)
    .then(
      (result): ModelAnswer => ({ id: request.id, json: JSON.stringify(result, shortened) }),
      (error: unknown): ModelAnswer => ({ id: request.id, failure: told(error) }),
    )
    .then((reply) => process.send?.(reply));
});
// Without its server it has nobody to answer to.
process.on("disconnect", () => process.exit());
