/** Sweeps over a real Redis: whatever is killed, cut or started again, every member has one result, and the right one. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Queue } from "bullmq";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import "./preload.ts";
import type { SweepResult } from "../../src/report/sweep.ts";
import { loadCheckpoint } from "../../src/store/checkpoint.ts";
import { readRun } from "../../src/store/runRecord.ts";
import { run } from "../cli/support.ts";
import { skipUnless } from "../support/skip.ts";
import {
  appears,
  buildProgram,
  endAll,
  filed,
  freePort,
  password,
  redisServer,
  start,
  startNetwork,
  startRedis,
} from "./support.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-queue-test-"));
const results = join(scratch, "results");
let port: number;
let stopRedis: (() => Promise<void>) | undefined;

const isThere = redisServer !== "";

beforeAll(async () => {
  if (!isThere) return;
  await buildProgram(join(scratch, "program"));
  port = await freePort();
  stopRedis = await startRedis(port);
});

afterAll(async () => {
  endAll();
  await stopRedis?.();
  rmSync(scratch, { recursive: true, force: true });
});

/** Each test has a database of its own. */
let databases = 0;
const address = (at = port, database = databases): string =>
  `redis://:${password}@127.0.0.1:${at}/${database}`;

const pause = (milliseconds: number): string[] => ["--set", `training.pause=${milliseconds}`];

/** The line of a sweep over rates. */
function sweepLine(name: string, rates: string, extra: readonly string[] = []): string[] {
  return [
    ...["sweep", "toy-weight", "--vary", `training.rate=${rates}`, "--name", name],
    ...["--out", join(scratch, name), "--results", results, ...extra],
  ];
}

/** A sweep over the queue; its address comes by the environment, as a careful person gives it. */
const sweep = (name: string, rates: string, extra: readonly string[] = [], at = address()) =>
  start(sweepLine(name, rates, extra), { FWM_QUEUE: at });

const worker = (extra: readonly string[] = [], at = address()) =>
  start([
    "worker",
    "--queue",
    at,
    "--threads",
    "1",
    "--lock",
    "2",
    "--scratch",
    join(scratch, "worker"),
    ...extra,
  ]);

/** What the same sweep gives on one machine. */
async function embedded(name: string, rates: string, extra: readonly string[] = []): Promise<object> {
  const { code, stderr } = await run(sweepLine(`${name}-alone`, rates, extra));
  expect(code, stderr).toBe(0);
  return filed(join(results, `${name}-alone.json`));
}

async function stop(...workers: readonly ReturnType<typeof worker>[]): Promise<void> {
  for (const { child } of workers) child.kill("SIGTERM");
  for (const { ended } of workers) await ended;
}

const resultOf = (name: string): object => filed(join(results, `${name}.json`));

const why = "no redis-server: scripts/install-redis.mjs installs it";

describe("a sweep over a queue", skipUnless(isThere, why), () => {
  test("gives the result of one machine; weights come on request; the password appears nowhere; hostile tasks are refused", async () => {
    databases++;
    const queue = new Queue("fwm", { connection: { host: "127.0.0.1", port, password, db: databases } });
    const settings = {
      task: { name: "toy", target: 3 },
      system: { name: "weight" },
      training: {
        seed: 1,
        steps: 60,
        rate: 0.2,
        pause: 0,
        logEvery: 10,
        evalEvery: 20,
        saveEvery: 5,
        patience: 0,
      },
    };
    const good = {
      ...{
        format: "fwm-task-1",
        packageVersion: "0.1.0",
        sweep: "evil",
        member: "base",
        experiment: "toy-weight",
      },
      ...{ settings, steps: 60, pauses: false, weights: false },
    };
    const hostile: [string, object, RegExp][] = [
      ["another version", { ...good, packageVersion: "9.9.9" }, /9\.9\.9/],
      ["an unknown experiment", { ...good, experiment: "none" }, /no experiment "none"/],
      ["a folder above", { ...good, member: "../../etc" }, /not a task/],
      ["a hidden folder", { ...good, sweep: ".ssh" }, /not a task/],
      ["a command", { ...good, command: "rm -rf /" }, /not a task/],
      ["settings of another kind", { ...good, experiment: "metarl-fwm" }, /not those of metarl-fwm/],
      [
        "data from anywhere",
        {
          ...good,
          experiment: "catbabi-qa-fwm",
          settings: { ...(await catbabi()), task: { ...(await catbabi()).task, data: "/etc" } },
        },
        /names no folder/,
      ],
      ["more steps than it has", { ...good, steps: 100 }, /do not fit/],
      ["no task at all", ["format"], /not a task/],
      ["very much", { ...good, member: "x".repeat(200_000) }, /too large/],
    ];
    for (const [id, data] of hostile) await queue.add("member", data, { jobId: id });

    const workers = [worker(), worker()];
    const running = sweep("plain", "0.1,0.2,0.3", ["--weights"]);
    expect(await running.ended, running.output()).toBe(0);
    expect(resultOf("plain")).toEqual(await embedded("plain", "0.1,0.2,0.3"));
    // Who made it, and how, is the line without the queue.
    const document = JSON.parse(readFileSync(join(results, "plain.json"), "utf8")) as SweepResult;
    expect(document.command).toBe(
      "fwm sweep toy-weight --vary training.rate=0.1,0.2,0.3 --name plain --out plain --results results --weights",
    );
    const weights = async (name: string) =>
      (await loadCheckpoint(join(scratch, name, "rate=0.2"), { which: "best" })).model;
    expect(await weights("plain")).toEqual(await weights("plain-alone"));

    for (const [id, , message] of hostile) {
      const job = await queue.getJob(id);
      expect([await job!.getState(), job!.attemptsMade], id).toEqual(["failed", 1]);
      expect(job!.failedReason, id).toMatch(/^refused by /);
      expect(job!.failedReason, id).toMatch(message);
    }
    await queue.close();
    await stop(...workers);
    const said = [running, ...workers].map(({ output }) => output()).join("");
    expect(said).toContain("task a command: refused by");
    expect(said).not.toContain(password);
    for (const file of readdirSync(scratch, { recursive: true, encoding: "utf8", withFileTypes: true })) {
      if (file.isFile())
        expect(readFileSync(join(file.parentPath, file.name), "latin1")).not.toContain(password);
    }
    expect(existsSync(join(scratch, "evil"))).toBe(false);
  });

  test("a wrong password is an error at once, and is not repeated", async () => {
    for (const argv of [["worker"], sweepLine("denied", "0.1")]) {
      const { code, stderr } = await run(argv, { env: { FWM_QUEUE: `redis://:hunter2@127.0.0.1:${port}` } });
      expect([code, stderr]).toEqual([2, expect.stringMatching(/redis:\/\/:\*\*\*@127.*WRONGPASS/)]);
      expect(stderr).not.toContain("hunter2");
    }
    expect(existsSync(join(scratch, "denied"))).toBe(false);
  });

  test("a worker that does not know the experiment refuses, and the member's record says why", async () => {
    databases++;
    const stranger = start(["worker", "--queue", address()], {}, { knowsToy: false });
    const running = sweep("unknown", "0.1");
    expect(await running.ended, running.output()).toBe(0);
    const record = await readRun(join(scratch, "unknown", "rate=0.1"));
    expect([record.state, record.note]).toEqual([
      "failed",
      expect.stringMatching(/^refused by .*there is no experiment "toy-weight" here/),
    ]);
    await stop(stranger);
    // With one that knows it, the same line trains it.
    const only = worker();
    const again = sweep("unknown", "0.1", ["--weights"]);
    expect(await again.ended, again.output()).toBe(0);
    expect(await readRun(join(scratch, "unknown", "rate=0.1"))).toMatchObject({
      state: "finished",
      note: null,
    });
    await stop(only);
  });

  test("TLS: a certificate that is trusted is enough, one that is not is an error", async ({ skip }) => {
    const [key, certificate] = [join(scratch, "key.pem"), join(scratch, "certificate.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    const made = spawnSync("openssl", [
      ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject],
      ...["-keyout", key, "-out", certificate],
    ]);
    if (made.status !== 0) skip("no openssl");
    const own = await freePort();
    const end = await startRedis(own, [
      ...["--port", "0", "--tls-port", String(own), "--tls-auth-clients", "no"],
      ...["--tls-cert-file", certificate, "--tls-key-file", key],
    ]);
    const argv = ["worker", "--idle", "1"];
    const env = { FWM_QUEUE: `rediss://:${password}@localhost:${own}` };
    const trusting = start(argv, { ...env, NODE_EXTRA_CA_CERTS: certificate });
    const [wary, plain] = [
      start(argv, env),
      start(argv, { FWM_QUEUE: `redis://:${password}@localhost:${own}` }),
    ];
    expect(await trusting.ended, trusting.output()).toBe(0);
    expect([await wary.ended, wary.output()]).toEqual([2, expect.stringMatching(/self.signed certificate/)]);
    plain.child.kill("SIGTERM");
    await plain.ended;
    expect(plain.output()).not.toContain("waiting for tasks");
    await end();
  });

  test("a worker that is killed loses nothing: another one resumes from the common folder", async () => {
    databases++;
    const share = join(scratch, "shared");
    const running = sweep("killed", "0.1,0.2", pause(40));
    const first = worker(["--share", share]);
    await appears(join(share, "killed", "rate=0.1", "checkpoint-10"));
    first.child.kill("SIGKILL");
    const second = worker(["--share", share]);
    expect(await running.ended, running.output()).toBe(0);
    expect(resultOf("killed")).toEqual(await embedded("killed", "0.1,0.2"));
    const { resumed } = await readRun(join(scratch, "killed", "rate=0.1"));
    expect(resumed).toHaveLength(1);
    expect(resumed[0]!.step).toBeGreaterThanOrEqual(10);
    await stop(second);
  });

  test("a sweep that is killed, and started again twice at once, has each result once", async () => {
    databases++;
    const first = sweep("twice", "0.1,0.2,0.3", pause(20));
    const only = worker();
    await first.says("rate=0.1: finished");
    first.child.kill("SIGKILL");
    await first.ended;
    const [a, b] = [sweep("twice", "0.1,0.2,0.3", pause(20)), sweep("twice", "0.1,0.2,0.3", pause(20))];
    expect([await a.ended, await b.ended], a.output() + b.output()).toEqual([0, 0]);
    expect(resultOf("twice")).toEqual(await embedded("twice", "0.1,0.2,0.3"));
    expect(only.output().match(/: trains to/g)).toHaveLength(3);
    await stop(only);
  });

  test("Redis that is not there yet is waited for; one that comes back empty gets its tasks again", async () => {
    const own = await freePort();
    const at = address(own, 0);
    const running = sweep("restarted", "0.1,0.2", pause(20), at);
    const only = worker([], at);
    await running.says("not there yet");
    await only.says("not there yet");
    let end = await startRedis(own);
    await only.says("rate=0.1: trains");
    await end();
    end = await startRedis(own);
    expect(await running.ended, running.output() + only.output()).toBe(0);
    expect(resultOf("restarted")).toEqual(await embedded("restarted", "0.1,0.2"));
    // Without Redis a worker can be stopped all the same.
    await end();
    only.child.kill("SIGTERM");
    expect(await only.ended, only.output()).toBe(143);
  });

  test("a worker that is cut off stops, another one takes over, and there is one result", async () => {
    databases++;
    const share = join(scratch, "cut-off");
    const network = await startNetwork(port);
    const running = sweep("cut", "0.1", pause(100));
    const lost = worker(["--share", share], address(network.port));
    await appears(join(share, "cut", "rate=0.1", "checkpoint-5"));
    network.cut();
    const other = worker(["--share", share]);
    await lost.says("goes back to the queue");
    await other.says("rate=0.1: done");
    network.mend();
    expect(await running.ended, running.output()).toBe(0);
    expect(resultOf("cut")).toEqual(await embedded("cut", "0.1"));
    // The one that was cut off works again.
    await stop(other);
    const again = sweep("mended", "0.4");
    expect(await again.ended, again.output() + lost.output()).toBe(0);
    await stop(lost);
    await network.close();
  });

  test("a member that crashes is tried twice and keeps its last words; one that diverges is not tried again", async () => {
    databases++;
    const only = worker();
    const running = start(
      [
        ...["sweep", "toy-weight", "--vary", "task.target=-1,2,1e39", "--name", "crash"],
        ...["--out", join(scratch, "crash"), "--results", results],
      ],
      { FWM_QUEUE: address() },
    );
    expect(await running.ended, running.output()).toBe(0);
    const { members } = resultOf("crash") as SweepResult;
    expect(members.map(({ state }) => state)).toEqual(["failed", "finished", "diverged"]);
    expect(members[0]!.note).toMatch(/ended by SIGKILL: out of luck at step 7 \(tried 2 times\)$/);
    expect(members[2]!.note).toMatch(/diverged at step 1/);
    const begun = only
      .output()
      .match(/target=.*: trains/g)!
      .map((line) => line.slice(7, -8));
    expect(begun.sort()).toEqual(["-1", "-1", "1e39", "2"]);
    expect((await readRun(join(scratch, "crash", "target=-1"))).state).toBe("failed");
    await stop(only);
  });

  test("^C: a worker gives its member back, a sweep takes back what has not begun and can be started again", async () => {
    databases++;
    const running = sweep("stopped", "0.1,0.2,0.3", pause(20));
    const first = worker();
    await first.says("rate=0.1: trains");
    await setTimeout(700);
    first.child.kill("SIGINT");
    expect(await first.ended, first.output()).toBe(130);
    expect(first.output()).toContain("goes back to the queue");
    running.child.kill("SIGINT");
    expect(await running.ended, running.output()).toBe(130);
    expect(running.output()).toContain("stopped; resume with: fwm sweep toy-weight");
    const queue = new Queue("fwm", { connection: { host: "127.0.0.1", port, password, db: databases } });
    expect(await queue.getJobCountByTypes("wait", "prioritized", "active", "delayed")).toBe(0);
    await queue.close();
    const second = worker(["--idle", "2"]);
    const again = sweep("stopped", "0.1,0.2,0.3", pause(20));
    expect(await again.ended, again.output()).toBe(0);
    expect(resultOf("stopped")).toEqual(await embedded("stopped", "0.1,0.2,0.3"));
    expect(await second.ended, second.output()).toBe(0);
    expect(second.output()).toContain("no member for 2 seconds");
  });

  test("rounds: the same members go on as on one machine; asha keeps the best", async () => {
    databases++;
    const share = join(scratch, "rounds-share");
    const workers = [worker(["--share", share]), worker(["--share", share])];
    const rates = "0.02,0.1,0.3";
    const rounds = ["--rounds", "20,60", "--keep", "1"];
    const running = sweep("rounds", rates, [...rounds, "--weights"]);
    expect(await running.ended, running.output()).toBe(0);
    expect(resultOf("rounds")).toEqual(await embedded("rounds", rates, rounds));
    const best = (name: string) => loadCheckpoint(join(scratch, name, "rate=0.3"), { which: "best" });
    const [got, want] = [await best("rounds"), await best("rounds-alone")];
    expect([got.step, got.model]).toEqual([want.step, want.model]);
    const asha = sweep("asha", rates, ["--rounds", "20,60", "--asha", "3"]);
    expect(await asha.ended, asha.output()).toBe(0);
    const { members } = resultOf("asha") as SweepResult;
    expect(members.map(({ state }) => state)).toEqual(["pruned", "pruned", "finished"]);
    // It went on from where it stood.
    expect((await readRun(join(scratch, "asha", "rate=0.3"))).resumed.map(({ step }) => step)).toEqual([20]);
    await stop(...workers);
  });
});

/** Good settings of another kind. */
async function catbabi(): Promise<{ task: object }> {
  const { default: experiment } = await import("../../experiments/catbabi-qa-fwm.ts");
  return experiment.settings;
}
