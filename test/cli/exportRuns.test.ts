/** `fwm export-runs`: rows that other programs read, and MLflow by a server that enforces its limits. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LogBatch, logBatches, mlflowLimits } from "../../src/report/mlflow.ts";
import { createRun } from "../../src/store/run.ts";
import { describeEnvironment } from "../../src/store/runRecord.ts";
import { run } from "./support.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-export-runs-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const points = 700;
const extra = Object.fromEntries(
  Array.from({ length: 150 }, (_, i) => [`unit${i}`, "x".repeat(i === 0 ? 20_000 : 5000)]),
);

beforeAll(async () => {
  for (const [name, seed] of [
    ["one", 1],
    ["two", 2],
  ] as const) {
    const training = await createRun(join(scratch, "sweep", name), {
      experiment: 'odd "name", with commas',
      settings: { task: { name: "toy" }, training: { seed, rate: 0.5, list: [1, 2] }, extra },
      seed,
      command: ["fwm"],
      packageVersion: "0",
      gitCommit: null,
      environment: describeEnvironment({}),
    });
    for (let step = 1; step <= points; step++) {
      const loss = step === 2 ? Number.NaN : 1 / step;
      training.log({ step, split: "train", values: { loss, accuracy: 0.5 }, times: { tokensPerSecond: 9 } });
    }
    await training.update({ summary: { "best.loss": 0.25 } });
    await training.close(seed === 1 ? "finished" : "diverged", seed === 1 ? undefined : "loss is NaN");
  }
});

describe("rows on standard output", () => {
  test("CSV: one per value, quoted where it has to be", async () => {
    const { code, stdout } = await run(["export-runs", join(scratch, "sweep", "one")]);
    const lines = stdout.trimEnd().split("\n");
    expect(code).toBe(0);
    expect(lines[0]).toBe("run,experiment,seed,split,step,name,value,at");
    expect(lines).toHaveLength(1 + 3 * points);
    expect(lines[1]).toMatch(/^one,"odd ""name"", with commas",1,train,1,loss,1,\d+\.?\d*$/);
    expect(lines[4]).toMatch(/,train,2,loss,NaN,/);
  });

  test("JSON lines of a whole sweep, by --format or --json", async () => {
    const folder = join(scratch, "sweep");
    const byFormat = await run(["export-runs", folder, "--format", "jsonl"]);
    const byFlag = await run(["export-runs", folder, "--json"]);
    expect(byFormat.stdout).toBe(byFlag.stdout);
    const rows = byFlag.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(rows).toHaveLength(2 * 3 * points);
    expect(rows[3]).toMatchObject({ run: "one", step: 2, name: "loss", value: "NaN" });
    expect(new Set(rows.map((row) => row.run))).toEqual(new Set(["one", "two"]));
  });

  test("one row per run, with its settings", async () => {
    const { stdout } = await run(["export-runs", join(scratch), "--rows", "runs", "--json"]);
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(
      rows.map((row) => [row.run, row.state, row["settings.training.rate"], row["summary.best.loss"]]),
    ).toEqual([
      ["sweep/one", "finished", 0.5, 0.25],
      ["sweep/two", "diverged", 0.5, 0.25],
    ]);
    const csv = await run(["export-runs", join(scratch, "sweep"), "--rows", "runs"]);
    const [head, first] = csv.stdout.split("\n");
    expect(head).toContain("run,experiment,seed,state,step");
    expect(first).toMatch(/^one,/);
  });
});

interface Logged {
  readonly name: string;
  readonly tags: { key: string; value: string }[];
  readonly metrics: { key: string; value: number | string; step: number; timestamp: number }[];
  readonly params: { key: string; value: string }[];
  status: string;
  readonly points: Set<string>;
}

/** A tracking server that answers as MLflow does, and refuses what MLflow refuses. */
async function startMlflow({ busy = 0, authorization }: { busy?: number; authorization?: string } = {}) {
  const experiments = new Map<string, string>();
  const runs = new Map<string, Logged>();
  const errors: string[] = [];
  let refusals = busy;
  const handle = (path: string, body: Record<string, unknown>, size: number): [number, object] => {
    const refuse = (message: string, code = "INVALID_PARAMETER_VALUE", status = 400): [number, object] => {
      if (code !== "RESOURCE_DOES_NOT_EXIST") errors.push(`${path}: ${message}`);
      return [status, { error_code: code, message }];
    };
    if (size > 1_048_576) return refuse("request too large");
    const run = runs.get(body.run_id as string);
    switch (path) {
      case "experiments/get-by-name": {
        const id = experiments.get(body.experiment_name as string);
        if (!id) return refuse("no such experiment", "RESOURCE_DOES_NOT_EXIST", 404);
        return [200, { experiment: { experiment_id: id, name: body.experiment_name } }];
      }
      case "experiments/create":
        experiments.set(body.name as string, String(experiments.size));
        return [200, { experiment_id: experiments.get(body.name as string) }];
      case "runs/search": {
        const id = /^tags\."fwm\.id" = '([^']*)'$/.exec(body.filter as string)?.[1];
        if (id === undefined) return refuse("bad filter");
        const found = [...runs].find(([, { tags }]) =>
          tags.some(({ key, value }) => key === "fwm.id" && value === id),
        );
        return [200, found ? { runs: [{ info: { run_id: found[0] } }] } : {}];
      }
      case "runs/create": {
        const run_id = `run${runs.size}`;
        const tags = body.tags as Logged["tags"];
        runs.set(run_id, {
          name: body.run_name as string,
          tags,
          metrics: [],
          params: [],
          status: "RUNNING",
          points: new Set(),
        });
        return [200, { run: { info: { run_id } } }];
      }
      case "runs/log-batch": {
        if (!run) return refuse("no such run");
        const { metrics, params, tags } = body as unknown as LogBatch;
        if (metrics.length + params.length + tags.length > 1000) return refuse("more than 1000 entries");
        if (params.length > 100 || tags.length > 100) return refuse("too many params or tags");
        for (const { key, value } of [...params, ...tags]) {
          if (key.length > 250 || !/^[/\w.\- :]*$/.test(key)) return refuse(`bad name ${key}`);
          if (value.length > (params.length > 0 ? 6000 : 5000)) return refuse(`${key} is too long`);
        }
        for (const { key, timestamp, step } of metrics) {
          if (!/^[/\w.\- :]*$/.test(key) || !Number.isInteger(timestamp) || !Number.isInteger(step)) {
            return refuse(`bad metric ${key}`);
          }
        }
        for (const param of params) {
          const before = run.params.find(({ key }) => key === param.key);
          if (before && before.value !== param.value) return refuse(`${param.key} cannot be changed`);
          if (!before) run.params.push(param);
        }
        // The same value at the same step and moment is the same point.
        for (const metric of metrics) {
          if (!run.points.has(JSON.stringify(metric))) run.metrics.push(metric);
          run.points.add(JSON.stringify(metric));
        }
        run.tags.push(...tags);
        return [200, {}];
      }
      case "runs/update":
        if (!run) return refuse("no such run");
        run.status = body.status as string;
        return [200, { run_info: {} }];
      default:
        return refuse("no such path", "ENDPOINT_NOT_FOUND", 404);
    }
  };
  const server = createServer((request, response) => {
    const answer = async (): Promise<[number, object]> => {
      if (authorization && request.headers.authorization !== authorization) return [401, {}];
      if (refusals-- > 0) return [503, {}];
      const url = new URL(request.url!, "http://x");
      const text = await textOf(request);
      const body =
        text === "" ? Object.fromEntries(url.searchParams) : (JSON.parse(text) as Record<string, unknown>);
      return handle(url.pathname.replace("/api/2.0/mlflow/", ""), body, Buffer.byteLength(text));
    };
    void answer().then(([status, document]) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(document));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, port, runs, experiments, errors, close: () => server.close() };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}

describe("MLflow", () => {
  test("gets every value, parameter and state, within its limits; a second export makes no second run", async () => {
    const server = await startMlflow({ busy: 1 });
    const line = ["export-runs", join(scratch, "sweep"), "--mlflow", server.url, "--json"];
    const first = await run(line);
    expect([first.code, server.errors], first.stderr).toEqual([0, []]);
    expect(JSON.parse(first.stdout)).toMatchObject({ runs: 2, server: server.url });
    expect([...server.experiments.keys()]).toEqual(['odd "name", with commas']);
    const [one, two] = [...server.runs.values()];
    expect([one!.name, one!.status, two!.name, two!.status]).toEqual(["one", "FINISHED", "two", "FAILED"]);
    expect(one!.metrics).toHaveLength(3 * points);
    expect(one!.metrics[3]).toMatchObject({ key: "loss/train", step: 2, value: "NaN" });
    expect(new Set(one!.metrics.map(({ key }) => key))).toEqual(
      new Set(["loss/train", "accuracy/train", "tokensPerSecond/train"]),
    );
    const params = new Map(one!.params.map(({ key, value }) => [key, value]));
    expect(params.size).toBe(150 + 5);
    expect([
      params.get("training.rate"),
      params.get("training.list"),
      params.get("extra.unit0")!.length,
    ]).toEqual(["0.5", "[1,2]", 6000]);
    expect(two!.tags).toContainEqual({ key: "fwm.note", value: "loss is NaN" });
    expect((await run(line)).code).toBe(0);
    expect([server.runs.size, one!.metrics.length]).toEqual([2, 3 * points]);
    expect(server.errors).toEqual([]);
    server.close();
  });

  test("asks with user and password, which are not shown; refuses to go on without", async () => {
    const authorization = `Basic ${Buffer.from("ann:s3cret").toString("base64")}`;
    const server = await startMlflow({ authorization });
    const sweep = join(scratch, "sweep", "one");
    const url = server.url.replace("//", "//ann:s3cret@");
    const named = await run(["export-runs", sweep, "--mlflow", url, "--experiment", "mine"]);
    expect([named.code, [...server.experiments.keys()]]).toEqual([0, ["mine"]]);
    expect(named.stdout + named.stderr).not.toContain("s3cret");
    const env = { MLFLOW_TRACKING_USERNAME: "ann", MLFLOW_TRACKING_PASSWORD: "s3cret" };
    expect((await run(["export-runs", sweep, "--mlflow", server.url], { env })).code).toBe(0);
    const denied = await run(["export-runs", sweep, "--mlflow", server.url]);
    expect([denied.code, denied.stderr]).toEqual([
      1,
      expect.stringMatching(/status 401[\s\S]*MLFLOW_TRACKING_/),
    ]);
    server.close();
  });

  test("whatever there is to log, no request exceeds a limit, and nothing is lost", () => {
    const label = fc.record({
      key: fc.string({ maxLength: 20 }),
      value: fc.string({ maxLength: 6000, size: "max" }),
    });
    const metric = fc.record({
      key: fc.string({ maxLength: 250 }),
      value: fc.double(),
      timestamp: fc.nat(),
      step: fc.nat(),
    });
    const many = <T>(item: fc.Arbitrary<T>, times: number) =>
      fc
        .array(item, { minLength: 1, maxLength: 4 })
        .chain((items) =>
          fc.nat(times).map((count) => Array.from({ length: count }, (_, i) => items[i % items.length]!)),
        );
    fc.assert(
      fc.property(many(metric, 3000), many(label, 400), many(label, 150), (metrics, params, tags) => {
        const batches = logBatches({ metrics, params, tags });
        for (const batch of batches) {
          expect(batch.metrics.length + batch.params.length + batch.tags.length).toBeLessThanOrEqual(1000);
          expect(Math.max(batch.params.length, batch.tags.length)).toBeLessThanOrEqual(100);
          const body = JSON.stringify({ run_id: "x".repeat(32), ...batch });
          expect(Buffer.byteLength(body)).toBeLessThanOrEqual(mlflowLimits.bytes);
        }
        expect(batches.flatMap((batch) => batch.metrics)).toEqual(metrics);
        expect(batches.flatMap((batch) => batch.params)).toEqual(params);
        expect(batches.flatMap((batch) => batch.tags)).toEqual(tags);
      }),
      { numRuns: 30 },
    );
  });
});

describe("what a person may get wrong", () => {
  const one = () => join(scratch, "sweep", "one");
  test.each([
    ["no such folder", () => ["export-runs", join(scratch, "none")], /no such folder/, 3],
    ["a folder without runs", () => ["export-runs", join(one(), "train")], /no runs in it/, 3],
    [
      "an address that is none",
      () => ["export-runs", one(), "--mlflow", "localhost"],
      /--mlflow: not a URL/,
      2,
    ],
    ["another protocol", () => ["export-runs", one(), "--mlflow", "file:///x"], /not a tracking server/, 2],
    [
      "a server that is not there",
      () => ["export-runs", one(), "--mlflow", "http://127.0.0.1:9"],
      /no answer/,
      1,
    ],
    ["an experiment for nobody", () => ["export-runs", one(), "--experiment", "x"], /goes with --mlflow/, 2],
    [
      "rows for MLflow",
      () => ["export-runs", one(), "--mlflow", "http://x", "--rows", "runs"],
      /standard output/,
      2,
    ],
  ])("%s", async (_, argv, message, exit) => {
    const { code, stdout, stderr } = await run(argv());
    expect(stderr).toMatch(message);
    expect([code, stdout]).toEqual([exit, ""]);
  });

  test("a server that is something else", async () => {
    const other = createServer((_, response) => response.writeHead(200).end("<html></html>"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    const { code, stderr } = await run(["export-runs", one(), "--mlflow", `http://127.0.0.1:${port}`]);
    expect([code, stderr]).toEqual([3, expect.stringContaining("not an answer of MLflow")]);
    other.close();
  });
});
