/** The studio's routes: each checks its request, asks the part that knows, and answers JSON. */
import { type Context, Hono } from "hono";
import { type SSEStreamingApi, streamSSE } from "hono/streaming";
import type { z } from "zod";
import { shellLine } from "../../cli/shell.ts";
import { allKinds, experimentNames, findExperiment, kindOf } from "../../experiment/registry.ts";
import {
  type About,
  type JobsAnswer,
  type KindInfo,
  type MetricsAnswer,
  type ModelRef,
  type RunDetail,
  type RunMetrics,
  routes,
} from "../api.ts";
import { compareRuns, settingsOf, tokensPerStep } from "./compare.ts";
import { type GuardOptions, guarded, limitedBody, secured } from "./guard.ts";
import type { Jobs } from "./jobs.ts";
import { MetricsLogs } from "./metricsLog.ts";
import type { ModelPool, ModelQuestion } from "./modelPool.ts";
import { checkpointsOf, findModelFolder, listModels } from "./models.ts";
import type { PageFile } from "./pages.ts";
import { bodies, checked, failureOf, missing, queries, Refusal } from "./requests.ts";
import type { IndexedRun, RunIndex } from "./runIndex.ts";
import { sweepOf, sweepsOf } from "./sweeps.ts";

/** What the routes work with. */
export interface AppParts {
  readonly index: RunIndex;
  readonly pool: ModelPool;
  readonly jobs: Jobs;
  readonly feed: ChangeFeed;
  readonly pages: ReadonlyMap<string, PageFile>;
  readonly guard: GuardOptions;
  readonly version: string;
  /** The folder of runs as it was given. */
  readonly shown: string;
  /** Told of errors that are ours. */
  readonly onError: (error: unknown) => void;
}

/** Pages that may follow the changes at the same time. */
const mostFollowers = 64;
/** How old, in milliseconds, the listing may be that a request is answered from. */
const freshness = 500;

/** Whoever wants to know that something may have changed. */
export class ChangeFeed {
  private readonly listeners = new Set<() => void>();

  /** Number of listeners. */
  get size(): number {
    return this.listeners.size;
  }

  /** Calls `listener` after every change until the returned function is called. */
  follow(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Says that something may have changed. */
  notify(): void {
    for (const listener of this.listeners) listener();
  }
}

/** The application: a function from request to answer. */
export function studioApp(parts: AppParts): Hono {
  const { index, jobs, guard, onError } = parts;
  const app = new Hono();
  const logs = new MetricsLogs();
  app.use(secured);
  app.use(guarded(guard));
  app.use("/api/*", limitedBody);
  app.onError((error, context) => {
    const { status, body } = failureOf(error);
    if (status === 500) onError(error);
    return context.json(body, status as 500);
  });

  app.get(routes.about.path, (context) => context.json(about(parts)));
  app.get(routes.runs.path, async (context) => {
    const { since } = query(context, queries.since);
    await index.refresh(freshness);
    return context.json(index.changes(since));
  });
  app.get(routes.events.path, (context) => events(context, parts));
  app.get(routes.run.path, async (context) => {
    const run = await theRun(index, query(context, queries.run).run);
    return context.json(await detail(run, logs, parts.shown));
  });
  app.post(routes.metrics.path, async (context) => {
    const { runs, ...wanted } = await body(context, bodies.metrics);
    await index.refresh(freshness);
    const found: RunMetrics[] = [];
    const gone: string[] = [];
    for (const { name, cursor } of runs) {
      const run = index.find(name);
      if (run) found.push(await metricsOf(run, logs, { ...wanted, cursor }));
      else gone.push(name);
    }
    return context.json({ runs: found, missing: gone } satisfies MetricsAnswer);
  });
  app.post(routes.compare.path, async (context) => {
    const { runs } = await body(context, bodies.compare);
    await index.refresh(freshness);
    return context.json(
      await compareRuns(
        runs.map((name) => requireRun(index, name)),
        logs,
      ),
    );
  });
  app.get(routes.sweeps.path, async (context) => {
    await index.refresh(freshness);
    return context.json({ sweeps: sweepsOf(index.all()) });
  });
  app.get(routes.sweep.path, async (context) => {
    const { sweep } = query(context, queries.sweep);
    await index.refresh(freshness);
    const found = sweepOf(sweep, index.all());
    if (!found) throw missing("sweep");
    return context.json(found);
  });

  app.get(routes.models.path, async (context) => {
    await index.refresh(freshness);
    return context.json({ models: await listModels(index) });
  });
  app.post(routes.vocabulary.path, async (context) => {
    const { model } = await body(context, bodies.vocabulary);
    return jsonText(context, await askModel(context, parts, model, { kind: "vocabulary" }));
  });
  app.post(routes.ask.path, async (context) => {
    const { model, story, top = 5, writes = false } = await body(context, bodies.ask);
    return jsonText(context, await askModel(context, parts, model, { kind: "ask", story, top, writes }));
  });
  app.post(routes.rollout.path, async (context) => {
    const { model, seed } = await body(context, bodies.rollout);
    return jsonText(context, await askModel(context, parts, model, { kind: "rollout", seed }));
  });
  app.post(routes.passage.path, async (context) => {
    const { model, text } = await body(context, bodies.passage);
    return jsonText(context, await askModel(context, parts, model, { kind: "passage", text }));
  });
  app.post(routes.generate.path, async (context) => {
    const { model, ...options } = await body(context, bodies.generate);
    return jsonText(context, await askModel(context, parts, model, { kind: "generate", ...options }));
  });

  app.post(routes.trainCheck.path, async (context) =>
    context.json(await jobs.plan(await body(context, bodies.train))),
  );
  app.post(routes.trainStart.path, async (context) =>
    context.json(await jobs.start(await body(context, bodies.train))),
  );
  app.post(routes.trainResume.path, async (context) => {
    const request = await body(context, bodies.resume);
    return context.json(jobs.resume(await theRun(index, request.run), request));
  });
  app.post(routes.trainStop.path, async (context) =>
    context.json(jobs.stop((await body(context, bodies.stop)).run)),
  );
  app.get(routes.jobs.path, (context) => context.json({ jobs: jobs.list() } satisfies JobsAnswer));

  app.get("*", (context) => page(context, parts.pages));
  app.all("*", () => {
    throw missing("address");
  });
  return app;
}

/** A query that fits its schema; a name that is given twice is refused. */
function query<T>(context: Context, schema: z.ZodType<T>): T {
  const given = context.req.queries();
  const single = Object.fromEntries(
    Object.entries(given).map(([name, values]) => [name, values.length === 1 ? values[0] : values]),
  );
  return checked(schema, single);
}

/** A body that fits its schema. */
async function body<T>(context: Context, schema: z.ZodType<T>): Promise<T> {
  const text = await context.req.text();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Refusal(400, "usage", "the request is not valid JSON");
  }
  return checked(schema, value);
}

function requireRun(index: RunIndex, name: string): IndexedRun {
  const run = index.find(name);
  if (!run) throw missing("run");
  return run;
}

async function theRun(index: RunIndex, name: string): Promise<IndexedRun> {
  await index.refresh(freshness);
  return requireRun(index, name);
}

/** Asks the model that a request names; the answer is JSON text, with what the listing knows of the model at its end. */
async function askModel(
  context: Context,
  { index, pool }: AppParts,
  model: ModelRef,
  question: ModelQuestion,
): Promise<string> {
  const { folder, system, experiment, step } = await findModelFolder(index, model);
  const json = await pool.ask(folder, question, context.req.raw.signal);
  // An answer of a model is an object, and large: it is handed on as it came.
  return `${json.slice(0, -1)},${JSON.stringify({ system, experiment, step }).slice(1)}`;
}

/** An answer that is JSON text already. */
function jsonText(context: Context, text: string): Response {
  return context.body(text, 200, { "Content-Type": "application/json" });
}

function about({ version, shown }: AppParts): About {
  return {
    version,
    runsFolder: shown,
    kinds: allKinds().map(
      ({ name, unit, measures, best, headline, speed }): KindInfo => ({
        name,
        unit,
        measures: Object.fromEntries(
          Object.entries(measures).map(([measure, { percent = false, ...rest }]) => [
            measure,
            { ...rest, percent },
          ]),
        ),
        best,
        headline,
        speed,
      }),
    ),
    experiments: experimentNames().map((name) => {
      const { description, settings } = findExperiment(name)!;
      const kind = kindOf(settings);
      return {
        name,
        description,
        kind: kind.name,
        system: settings.system.name,
        steps: kind.steps(settings),
      };
    }),
  };
}

async function detail(run: IndexedRun, logs: MetricsLogs, shown: string): Promise<RunDetail> {
  const { summary, record, path } = run;
  const { environment, gitCommit, packageVersion, resumed, command } = record;
  const isDone = summary.state === "running" || summary.state === "finished";
  return {
    run: summary,
    description: findExperiment(summary.experiment)?.description ?? summary.experiment,
    settings: settingsOf(record),
    command: shellLine(...command),
    resumeCommand: isDone ? null : shellLine("fwm", "train", "--resume", `${shown}/${summary.name}`),
    checkpoints: await checkpointsOf(path),
    environment,
    commit: gitCommit,
    packageVersion,
    resumed: resumed.map(({ at, step }) => ({ at, step })),
    hours: (await logs.of(path)).totalHours,
  };
}

async function metricsOf(
  { summary, record, path }: IndexedRun,
  logs: MetricsLogs,
  wanted: Parameters<Awaited<ReturnType<MetricsLogs["of"]>>["points"]>[0],
): Promise<RunMetrics> {
  const log = await logs.of(path);
  return {
    name: summary.name,
    tokensPerStep: tokensPerStep(record),
    available: log.available,
    ...log.points(wanted),
  };
}

/** Tells a page of every change from its cursor on, until it leaves. */
function events(context: Context, { index, jobs, feed }: AppParts): Response {
  let { since } = query(context, queries.since);
  // A browser that connects again says what it has seen last.
  since = context.req.header("last-event-id") ?? since;
  if (feed.size >= mostFollowers) throw new Refusal(503, "busy", "too many pages follow the studio already");
  return streamSSE(context, async (stream: SSEStreamingApi) => {
    let wake: () => void = () => undefined;
    let isPending = true;
    let jobsTold = "";
    const leave = feed.follow(() => {
      isPending = true;
      wake();
    });
    stream.onAbort(() => wake());
    try {
      while (!stream.aborted) {
        if (!isPending) await new Promise<void>((resolve) => (wake = resolve));
        if (stream.aborted) return;
        isPending = false;
        const changes = index.changes(since);
        if (changes.cursor !== since) {
          await stream.writeSSE({ event: "runs", id: changes.cursor, data: JSON.stringify(changes) });
        }
        since = changes.cursor;
        const now = JSON.stringify({ jobs: jobs.list() } satisfies JobsAnswer);
        if (now !== jobsTold) await stream.writeSSE({ event: "jobs", data: now });
        jobsTold = now;
      }
    } finally {
      leave();
    }
  });
}

/** A file of the front-end: `/` is the studio, `/playground` the playground. */
function page(context: Context, pages: ReadonlyMap<string, PageFile>): Response {
  const { path } = context.req;
  if (path === "/playground") return context.redirect("/playground/", 308);
  const file = pages.get(path.endsWith("/") ? `${path}index.html` : path);
  if (!file) {
    if (path !== "/") throw missing("page");
    return context.text("The pages of the studio are not built yet: npm run build\n", 503);
  }
  context.header("Cache-Control", file.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  context.header("ETag", file.etag);
  if (context.req.header("if-none-match") === file.etag) return context.body(null, 304);
  context.header("Content-Type", file.type);
  context.header("Vary", "Accept-Encoding");
  const zips = /\bgzip\b/.test(context.req.header("accept-encoding") ?? "");
  if (!zips || !file.compressible) return context.body(new Uint8Array(file.read()));
  context.header("Content-Encoding", "gzip");
  return context.body(new Uint8Array(file.readCompressed()));
}
