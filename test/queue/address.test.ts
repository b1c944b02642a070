/** The queue's address, on the line and in messages; what the commands refuse before they connect. */
import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { hideQueue, withoutQueue } from "../../src/cli/queueParam.ts";
import { loadBullmq, parseQueueUrl, reachRedis } from "../../src/queue/connection.ts";
import { run } from "../cli/support.ts";
import { freePort } from "./support.ts";

const parse = (url: string) => parseQueueUrl(url, "--queue");

describe("a URL of Redis", () => {
  test.each([
    ["redis://head", { host: "head", port: 6379, db: 0 }, "redis://head"],
    ["redis://head:7000/3", { host: "head", port: 7000, db: 3 }, "redis://head:7000/3"],
    ["redis://:p%40ss@head", { password: "p@ss" }, "redis://:***@head"],
    [
      "rediss://ann:secret@head:6380",
      { username: "ann", tls: { servername: "head" } },
      "rediss://ann:***@head:6380",
    ],
    ["redis://[::1]:7000", { host: "::1", port: 7000 }, "redis://[::1]:7000"],
  ])("%s", (url, options, shown) => {
    const address = parse(url);
    expect(address.options).toMatchObject(options);
    expect(address.shown).toBe(shown);
  });

  test("without TLS there is none, and a password is hidden in whatever is said", () => {
    expect(parse("redis://head").options.tls).toBeUndefined();
    expect(parse("redis://:p%40ss@head").hide("p@ss is wrong: redis://:p%40ss@head")).toBe(
      "*** is wrong: redis://:***@head",
    );
  });

  test.each([
    ["head:6379:secret", /not a URL|not Redis/],
    ["http://:secret@head", /http:\/\/ is not Redis/],
    ["postgres://:secret@head/fwm", /PostgreSQL is not supported/],
    ["redis://:secret@head/name", /not an address/],
    ["redis://:secret@head?tls=1", /not an address/],
  ])("%s is refused, without its password", (url, message) => {
    expect(() => parse(url)).toThrow(message);
    expect(() => parse(url)).not.toThrow("secret");
  });
});

test("what is recorded has no queue, what is printed no password", () => {
  const line = ["fwm", "sweep", "x", "--queue", "redis://ann:secret@head:1", "--seeds", "1"];
  expect(withoutQueue(line)).toEqual(["fwm", "sweep", "x", "--seeds", "1"]);
  expect(withoutQueue(["fwm", "worker", "--queue=redis://:a@b"])).toEqual(["fwm", "worker"]);
  expect(hideQueue(line)[4]).toBe("redis://***@head:1");
  expect(hideQueue(["fwm", "--queue=redis://:a@b/c@d"])[1]).toBe("--queue=redis://***@b/c@d");
});

test("packages that are not installed are named, with the line that installs them", async () => {
  const absent = Object.assign(new Error("Cannot find package 'bullmq' imported from x"), {
    code: "ERR_MODULE_NOT_FOUND",
  });
  const loading = loadBullmq("fwm worker", () => Promise.reject(absent));
  await expect(loading).rejects.toThrow(
    /fwm worker needs bullmq and ioredis[\s\S]*npm install bullmq ioredis/,
  );
});

describe("reaching Redis", () => {
  const never = new AbortController().signal;

  test("a server that does not answer is left at the signal", async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as { port: number };
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 100);
    await reachRedis(parse(`redis://127.0.0.1:${port}`), controller.signal, () => undefined);
    silent.close();
  });

  test("a host that does not exist is an error", async () => {
    const reached = reachRedis(parse("redis://no-such-host.invalid"), never, () => undefined);
    await expect(reached).rejects.toThrow(/no-such-host\.invalid/);
  });

  test("one that is not there yet is waited for, until the signal", async () => {
    const controller = new AbortController();
    const said: string[] = [];
    await reachRedis(parse(`redis://127.0.0.1:${await freePort()}`), controller.signal, (text) => {
      said.push(text);
      controller.abort();
    });
    expect(said).toEqual([expect.stringMatching(/not there yet \(.*ECONNREFUSED.*\); waiting for it/)]);
  });
});

describe("what a person may get wrong", () => {
  const sweep = ["sweep", "catbabi-qa-fwm", "--smoke", "--seeds", "1"];
  test.each([
    ["a worker without a queue", ["worker"], /--queue is missing[\s\S]*FWM_QUEUE/],
    ["an address that is none", ["worker", "--queue", "head"], /--queue: not a URL/],
    ["a sweep with such an address", [...sweep, "--queue", "ftp://x"], /is not Redis/],
    ["data by the sweep", [...sweep, "--queue", "redis://x", "--data", "y"], /every worker has its own data/],
    ["threads by the sweep", [...sweep, "--queue", "redis://x", "--threads", "1"], /fwm worker --threads/],
    ["weights without a queue", [...sweep, "--weights"], /--weights goes with --queue/],
  ])("%s", async (_, argv, message) => {
    const { code, stderr, stdout } = await run(argv);
    expect(stderr).toMatch(message);
    expect([code, stdout]).toEqual([2, ""]);
  });
});
