/** Models in child processes: a queue with limits, and children that come, go and fail. */
import { type ChildProcess, spawn } from "node:child_process";
import { afterEach, expect, test } from "vitest";
import { DataError, UsageError } from "../../src/errors.ts";
import { ModelPool, type PoolOptions } from "../../src/studio/server/modelPool.ts";
import { Refusal, UnknownWords } from "../../src/studio/server/requests.ts";
import { isAlive } from "./support.ts";

/** A child that answers as its folder's name says, without a model. */
const program = `
  const folder = process.argv[1];
  process.on("message", ({ id, story }) => {
    if (story === "crash") process.exit(3);
    if (story === "hang") return;
    if (story === "usage") return process.send({ id, failure: { name: "UsageError", message: "your mistake" } });
    if (story === "data") return process.send({ id, failure: { name: "DataError", message: "bad file" } });
    if (story === "word") return process.send({ id, failure: { name: "UsageError", message: "?", suggestions: [["a", ["b"]]] } });
    setTimeout(() => process.send({ id, json: JSON.stringify({ folder, story, pid: process.pid }) }), story === "slow" ? 60 : 0);
  });
  process.on("disconnect", () => process.exit());
`;

let pool: ModelPool;
let started: string[] = [];
function open(options: PoolOptions = {}): ModelPool {
  started = [];
  pool = new ModelPool({
    ...options,
    start(folder): ChildProcess {
      started.push(folder);
      return spawn(process.execPath, ["-e", program, folder], {
        stdio: ["ignore", "ignore", "ignore", "ipc"],
      });
    },
  });
  return pool;
}
afterEach(() => pool.close());

const ask = async (folder: string, story: string, signal?: AbortSignal) =>
  JSON.parse(await pool.ask(folder, { kind: "ask", story, top: 1, writes: false }, signal)) as {
    folder: string;
    story: string;
    pid: number;
  };

test("one process per model answers everything, in the order it was asked", async () => {
  open();
  const done: string[] = [];
  const stories = Array.from({ length: 300 }, (_, i) => `story ${i}`);
  const answers = await Promise.all(
    stories.map(async (story) => {
      const answer = await ask("a", story);
      done.push(answer.story);
      return answer;
    }),
  );
  expect(answers.map(({ story }) => story)).toEqual(stories);
  expect(done).toEqual(stories);
  expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1);
  expect(started).toEqual(["a"]);
});

test("as many models as there is room for; the one not used for longest goes", async () => {
  open({ models: 2 });
  const a = await ask("a", "1");
  await ask("b", "1");
  await ask("a", "2");
  expect((await ask("c", "1")).folder).toBe("c");
  expect(pool.state.pids).toHaveLength(2);
  expect((await ask("a", "3")).pid).toBe(a.pid);
  await ask("b", "2");
  expect(started).toEqual(["a", "b", "c", "b"]);
});

test("more models than room at once: all are answered", async () => {
  open({ models: 2 });
  const folders = ["a", "b", "c", "d", "a", "d"];
  const answers = await Promise.all(folders.map((folder) => ask(folder, "slow")));
  expect(answers.map(({ folder }) => folder)).toEqual(folders);
  expect(pool.state.pids.length).toBeLessThanOrEqual(2);
});

test("a model that nobody asks goes after a while", async () => {
  open({ keep: 30 });
  const { pid } = await ask("a", "1");
  await expect.poll(() => isAlive(pid), { timeout: 30_000 }).toBe(false);
  expect((await ask("a", "2")).pid).not.toBe(pid);
});

test("a queue that is full says so at once", async () => {
  open({ waiting: 3 });
  const waiting = [ask("a", "slow"), ask("a", "1"), ask("a", "2"), ask("a", "3")];
  await expect(ask("a", "4")).rejects.toMatchObject({ status: 503, kind: "busy" });
  expect(await Promise.all(waiting)).toHaveLength(4);
});

test("what waits for a caller that has gone is not computed", async () => {
  open();
  const gone = new AbortController();
  const first = ask("a", "slow");
  const second = ask("a", "1", gone.signal);
  const third = ask("a", "2");
  gone.abort();
  await expect(second).rejects.toBeInstanceOf(Refusal);
  expect((await first).story).toBe("slow");
  expect((await third).story).toBe("2");
});

test("a child that ends or hangs fails its own question alone, and the next has a new one", async () => {
  // Long enough for a child to start on a busy machine.
  open({ timeout: 4_000 });
  const [crashed, after] = await Promise.allSettled([ask("a", "crash"), ask("a", "1")]);
  expect(crashed).toMatchObject({
    status: "rejected",
    reason: { message: "the model's process ended unexpectedly" },
  });
  expect(after).toMatchObject({ status: "fulfilled", value: { story: "1" } });
  const [hung, next] = await Promise.allSettled([ask("b", "hang"), ask("b", "2")]);
  expect(hung).toMatchObject({
    status: "rejected",
    reason: { message: expect.stringContaining("took longer") as string },
  });
  expect(next).toMatchObject({ status: "fulfilled", value: { story: "2" } });
});

test("errors keep their kind, and unknown words their suggestions", async () => {
  open();
  await expect(ask("a", "usage")).rejects.toBeInstanceOf(UsageError);
  await expect(ask("a", "data")).rejects.toBeInstanceOf(DataError);
  const error: unknown = await ask("a", "word").catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UnknownWords);
  expect([...(error as UnknownWords).suggestions]).toEqual([["a", ["b"]]]);
});

test("closing refuses what waits and ends every child", async () => {
  open();
  const { pid } = await ask("a", "1");
  const refused = Promise.allSettled([ask("a", "hang"), ask("a", "2")]);
  await pool.close();
  expect((await refused).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(isAlive(pid)).toBe(false);
  await expect(ask("a", "3")).rejects.toMatchObject({ status: 503 });
});
