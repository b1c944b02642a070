/**
 * Runs for MLflow, over its REST interface 2.0. A run is found again by a tag, so that exporting it twice, or while it
 * still trains, adds only what is new.
 */
import { basename } from "node:path";
import { setTimeout } from "node:timers/promises";
import { z } from "zod";
import { DataError, FwmError, UsageError } from "../errors.ts";
import { flatten } from "../store/flatten.ts";
import { readMetrics } from "../store/metrics.ts";
import type { RunListing } from "../store/runRecord.ts";

/** What MLflow takes in one request of `log-batch`. */
export const mlflowLimits = {
  /** Metrics, parameters and tags together, and metrics alone. */
  entries: 1000,
  params: 100,
  tags: 100,
  bytes: 1_000_000,
  /** Characters of a name, and of a parameter's or tag's text. */
  key: 250,
  param: 6000,
  tag: 5000,
} as const;

/** Where a server is, and who asks. */
export interface MlflowAddress {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads the server's address; user and password may stand in it, or in the variables that MLflow's own client reads. */
export function mlflowAddress(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): MlflowAddress {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new UsageError("--mlflow: not a URL", { hint: "for example --mlflow http://127.0.0.1:5000" });
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new UsageError(`--mlflow: ${url.protocol}// is not a tracking server`, {
      hint: "give http:// or https://",
    });
  }
  const user = decodeURIComponent(url.username) || env.MLFLOW_TRACKING_USERNAME;
  const password = decodeURIComponent(url.password) || env.MLFLOW_TRACKING_PASSWORD;
  const token = env.MLFLOW_TRACKING_TOKEN;
  const basic = Buffer.from(`${user ?? ""}:${password ?? ""}`).toString("base64");
  url.username = "";
  url.password = "";
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  const authorization = user || password ? `Basic ${basic}` : token ? `Bearer ${token}` : undefined;
  return { url, headers: authorization ? { authorization } : {} };
}

/** A value at a step. */
interface Metric {
  readonly key: string;
  /** NaN and infinities as words. */
  readonly value: number | string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  readonly step: number;
}

/** A parameter or tag. */
interface Label {
  readonly key: string;
  readonly value: string;
}

/** The body of a `log-batch` request. */
export interface LogBatch {
  readonly metrics: readonly Metric[];
  readonly params: readonly Label[];
  readonly tags: readonly Label[];
}

/** Requests that hold all of this, each within the limits. */
export function logBatches({ metrics, params, tags }: LogBatch): LogBatch[] {
  const { entries, params: mostParams, tags: mostTags } = mlflowLimits;
  const empty: LogBatch = { metrics: [], params: [], tags: [] };
  return [
    ...chunks(params, mostParams).map((some) => ({ ...empty, params: some })),
    ...chunks(tags, mostTags).map((some) => ({ ...empty, tags: some })),
    ...chunks(metrics, entries).map((some) => ({ ...empty, metrics: some })),
  ];
}

/** Pieces of at most so many items, and of fewer bytes than a request may have. */
function chunks<T>(items: readonly T[], most: number): T[][] {
  const found: T[][] = [];
  // What is around the items in a request takes less than this.
  const room = mlflowLimits.bytes - 1000;
  let size = 0;
  for (const item of items) {
    const own = Buffer.byteLength(JSON.stringify(item)) + 1;
    const current = found.at(-1);
    if (!current || current.length >= most || size + own > room) {
      found.push([item]);
      size = own;
    } else {
      current.push(item);
      size += own;
    }
  }
  return found;
}

/** What is logged of a run. */
export async function logOf({ name, path, record, state }: RunListing): Promise<LogBatch> {
  const start = Date.parse(record.created);
  const metrics = (await readMetrics(path)).flatMap(({ step, split, values, times }) => {
    const { at, ...speeds } = times ?? {};
    const timestamp = at === undefined ? start : Math.round(1000 * at);
    return Object.entries({ ...values, ...speeds }).map(([measure, value]) => ({
      key: metricKey(`${measure}/${split}`),
      value: Number.isFinite(value) ? value : String(value),
      ...{ timestamp, step },
    }));
  });
  const labels = (values: Readonly<Record<string, unknown>>, longest: number): Label[] =>
    Object.entries(values)
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([key, value]) => ({ key: metricKey(key), value: shortened(String(value), longest) }));
  return {
    metrics,
    params: labels({ seed: record.seed, ...flatten(record.settings) }, mlflowLimits.param),
    tags: labels(
      {
        ...{
          "fwm.id": idOf(record),
          "fwm.run": name,
          "fwm.experiment": record.experiment,
          "fwm.state": state,
        },
        ...{ "fwm.version": record.packageVersion, "fwm.commit": record.gitCommit, "fwm.note": record.note },
        ...Object.fromEntries(
          Object.entries(record.summary).map(([key, value]) => [`fwm.summary.${key}`, value]),
        ),
      },
      mlflowLimits.tag,
    ),
  };
}

/** A run is known by what it is of and when it began. */
function idOf({ experiment, seed, created }: RunListing["record"]): string {
  return `${experiment} ${seed} ${created}`;
}

/** MLflow allows letters, digits and `_-. /:` in names. */
function metricKey(text: string): string {
  return shortened(text.replace(/[^\w\-. /:]/g, "_"), mlflowLimits.key);
}

function shortened(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
}

const created = z.object({ experiment_id: z.string() });
const named = z.object({ experiment: created });
const oneRun = z.object({ run: z.object({ info: z.object({ run_id: z.string() }) }) });
const someRuns = z.object({ runs: z.array(oneRun.shape.run).default([]) });

const statuses: Readonly<Record<string, string>> = {
  running: "RUNNING",
  finished: "FINISHED",
  interrupted: "KILLED",
  diverged: "FAILED",
  failed: "FAILED",
};

/** Logs runs to a server: into the MLflow experiment `experiment`, or each into the one named like its own. */
export async function exportToMlflow(
  address: MlflowAddress,
  runs: readonly RunListing[],
  { experiment, onRun }: { readonly experiment?: string; readonly onRun?: (run: RunListing) => void },
): Promise<{ runs: number; requests: number }> {
  let requests = 0;
  const call = async <T>(
    method: "GET" | "POST",
    path: string,
    schema: z.ZodType<T>,
    body: object,
  ): Promise<T> => {
    requests++;
    return request(address, method, path, schema, body);
  };
  const experiments = new Map<string, string>();
  for (const run of runs) {
    const { record } = run;
    const name = experiment ?? record.experiment;
    let id = experiments.get(name);
    if (id === undefined) experiments.set(name, (id = await experimentId(call, name)));
    const filter = `tags."fwm.id" = '${idOf(record).replaceAll("'", "")}'`;
    const found = await call("POST", "runs/search", someRuns, {
      experiment_ids: [id],
      filter,
      max_results: 1,
    });
    const start_time = Date.parse(record.created);
    const tags = [{ key: "fwm.id", value: idOf(record) }];
    const fresh = { experiment_id: id, run_name: basename(run.name), start_time, tags };
    const { info } = found.runs[0] ?? (await call("POST", "runs/create", oneRun, fresh)).run;
    for (const batch of logBatches(await logOf(run))) {
      await call("POST", "runs/log-batch", z.unknown(), { run_id: info.run_id, ...batch });
    }
    const isOver = run.state !== "running";
    await call("POST", "runs/update", z.unknown(), {
      ...{ run_id: info.run_id, status: statuses[run.state] },
      ...(isOver ? { end_time: Date.parse(record.updated) } : {}),
    });
    onRun?.(run);
  }
  return { runs: runs.length, requests };
}

async function experimentId(
  call: <T>(method: "GET" | "POST", path: string, schema: z.ZodType<T>, body: object) => Promise<T>,
  name: string,
): Promise<string> {
  try {
    const path = `experiments/get-by-name?experiment_name=${encodeURIComponent(name)}`;
    return (await call("GET", path, named, {})).experiment.experiment_id;
  } catch (error) {
    if (!(error instanceof MlflowError) || error.code !== "RESOURCE_DOES_NOT_EXIST") throw error;
    return (await call("POST", "experiments/create", created, { name })).experiment_id;
  }
}

/** A request that the server answered with an error. */
class MlflowError extends FwmError {
  override readonly name = "MlflowError";

  constructor(
    what: string,
    readonly code: string,
    details: Readonly<Record<string, unknown>>,
  ) {
    super(what, details);
  }
}

/** A server that is busy is asked again, so often and after so many milliseconds. */
const pauses = [500, 2000, 5000];

async function request<T>(
  { url, headers }: MlflowAddress,
  method: "GET" | "POST",
  path: string,
  schema: z.ZodType<T>,
  body: object,
): Promise<T> {
  const target = new URL(`api/2.0/mlflow/${path}`, url);
  for (let attempt = 0; ; attempt++) {
    const response = await fetch(target, {
      method,
      headers: { ...headers, "content-type": "application/json" },
      ...(method === "POST" ? { body: JSON.stringify(body) } : {}),
      // Where the runs go was said: a server does not send them elsewhere.
      redirect: "error",
      signal: AbortSignal.timeout(60_000),
    }).catch((error: unknown) => {
      const { message, cause } = error as { message: string; cause?: { message?: string } };
      throw new FwmError(`${url.host}: no answer: ${cause?.message ?? message}`, {
        hint: "check the address, and that the tracking server runs",
      });
    });
    const isBusy = response.status === 429 || response.status >= 500;
    if (isBusy && attempt < pauses.length) {
      await response.body?.cancel();
      await setTimeout(pauses[attempt]);
      continue;
    }
    const answer = (await response.json().catch(() => undefined)) as unknown;
    if (!response.ok) {
      const said = z
        .object({ error_code: z.string().default(""), message: z.string().default("") })
        .safeParse(answer);
      throw new MlflowError(
        `${url.host}: ${path.split("?")[0]}: status ${response.status}`,
        said.data?.error_code ?? "",
        {
          reason: said.data?.message.slice(0, 500),
          hint:
            response.status === 401 || response.status === 403
              ? "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
              : undefined,
        },
      );
    }
    const parsed = schema.safeParse(answer);
    if (parsed.success) return parsed.data;
    throw new DataError(`${url.host}: ${path.split("?")[0]}: not an answer of MLflow`, {
      hint: "give the address of a tracking server, without /api or /#/",
    });
  }
}
