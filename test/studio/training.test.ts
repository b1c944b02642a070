/** Training and asking through the server: a real small run, followed live, stopped, resumed; and a server that is killed. */
import type { ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type {
  ApiFailure,
  AskAnswer,
  Job,
  JobsAnswer,
  ModelsAnswer,
  RolloutAnswer,
  RunDetail,
  RunsAnswer,
  TrainPlan,
} from "../../src/studio/api.ts";
import { routes } from "../../src/studio/api.ts";
import { run } from "../cli/support.ts";
import { isAlive, type StudioProcess, scratch, send, studioProcess } from "./support.ts";

const root = scratch("training");
const runs = join(root, "runs");
let running: StudioProcess;
beforeAll(async () => {
  running = await studioProcess(runs);
});
afterAll(() => running.child.kill("SIGKILL"));

const post = (path: string, body: unknown) => send(running.port, { path, body });
const smoke = {
  experiment: "catbabi-qa-fwm",
  smoke: true,
  set: ["training.logEvery=1", "training.evalEvery=4"],
};
const stateOf = (name: string): unknown =>
  (JSON.parse(readFileSync(join(runs, name, "run.json"), "utf8")) as { state: unknown }).state;

/** Follows the events of a studio until `until` is content; gives all that came. */
function follow(
  port: number,
  until: (event: string, data: unknown) => boolean,
): Promise<[string, unknown][]> {
  return new Promise((resolve, reject) => {
    const seen: [string, unknown][] = [];
    let text = "";
    const asked = request({ port, path: routes.events.path }, (answer) => {
      expect(answer.headers["content-type"]).toContain("text/event-stream");
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        for (let end: number; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
          const block = text.slice(0, end);
          const event = /^event: (.*)$/m.exec(block)?.[1];
          if (event === undefined) continue;
          const data = JSON.parse(/^data: (.*)$/m.exec(block)![1]!) as unknown;
          seen.push([event, data]);
          if (!until(event, data)) continue;
          resolve(seen);
          asked.destroy();
          return;
        }
      });
    });
    asked.on("error", (error) => reject(error));
    asked.end();
  });
}

describe("settings are checked as the command checks them", () => {
  test("a plan shows every setting with its origin, and the line to copy", async () => {
    const plan = (await post(routes.trainCheck.path, { ...smoke, steps: 8, seed: 3 })).json<TrainPlan>();
    expect(plan).toMatchObject({ name: "catbabi-qa-fwm-smoke-seed3", problem: null });
    expect(plan.settings).toContainEqual({ key: "training.steps", value: "8", from: "flag" });
    expect(plan.settings).toContainEqual({ key: "training.evalEvery", value: "4", from: "--set" });
    expect(plan.settings).toContainEqual({ key: "system.hidden", value: "32", from: "--smoke" });
    const words = plan.command.split(" ").slice(1);
    const shown = await run([...words, "--print-config", "--json"]);
    expect(shown.code, shown.stderr).toBe(0);
  });

  test("a mistake is told in the command's own words", async () => {
    const set = ["training.bach=64"];
    const { status, json } = await post(routes.trainCheck.path, { experiment: "catbabi-qa-fwm", set });
    const { stderr } = await run(["train", "catbabi-qa-fwm", "--set", set[0]!, "--print-config"]);
    expect(status).toBe(400);
    expect(`error: ${json<ApiFailure>().error.message}`).toBe(stderr.trim());
    expect(json<ApiFailure>().error.message).toContain("did you mean  batch");
  });

  test("a page cannot choose folders to read, in whatever spelling, nor pass options", async () => {
    for (const set of ["task.data=/etc", "task={name: catbabi, data: /etc}"]) {
      const { status, json } = await post(routes.trainCheck.path, {
        experiment: "catbabi-qa-fwm",
        set: [set],
      });
      expect([status, json<ApiFailure>().error.message]).toEqual([
        400,
        expect.stringContaining("task.data: a page cannot choose folders"),
      ]);
    }
    const set = ["--out=/tmp/elsewhere"];
    expect((await post(routes.trainCheck.path, { experiment: "catbabi-qa-fwm", set })).status).toBe(400);
    expect((await post(routes.trainCheck.path, { experiment: "--help" })).status).toBe(404);
    expect(existsSync(runs) ? readdirSync(runs) : []).toEqual([]);
  });
});

describe("a run that is started from the page", () => {
  const name = "live";

  test("is followed while it trains, and stopped as by ^C", async () => {
    const following = follow(running.port, (event, data) => {
      const found = event === "runs" && (data as RunsAnswer).runs.find((each) => each.name === name);
      return Boolean(found && found.state === "running" && found.best.loss !== undefined && found.step > 0);
    });
    const { status, text, json } = await post(routes.trainStart.path, { ...smoke, steps: 100_000, name });
    expect(status, text).toBe(200);
    expect(json<Job>()).toMatchObject({ run: name, state: "starting" });
    const events = await following;
    const lines = events.flatMap(([event, data]) => (event === "runs" ? (data as RunsAnswer).runs : []));
    expect(lines.filter((each) => each.name === name).every(({ trainedHere }) => trainedHere)).toBe(true);
    expect(events.some(([event]) => event === "jobs")).toBe(true);
    // The same run twice, or another of the name, is refused.
    expect((await post(routes.trainResume.path, { run: name })).status).toBe(409);
    expect((await post(routes.trainStart.path, { ...smoke, name })).status).toBe(409);

    expect((await post(routes.trainStop.path, { run: name })).json<Job>().state).toBe("stopping");
    await follow(running.port, (event, data) =>
      event === "jobs"
        ? (data as JobsAnswer).jobs.some((job) => job.run === name && job.state === "ended")
        : false,
    );
    const [job] = (await send(running.port, { path: routes.jobs.path })).json<JobsAnswer>().jobs;
    expect(job).toMatchObject({ run: name, exitCode: 130 });
    expect(job!.tail.join("\n")).toMatch(/resume with: fwm train --resume/);
    expect(stateOf(name)).toBe("interrupted");
    expect((await post(routes.trainStop.path, { run: name })).status).toBe(409);
  });

  test("is asked at its checkpoints, as the command asks it", async () => {
    const { models } = (await send(running.port, { path: routes.models.path })).json<ModelsAnswer>();
    expect(models.slice(0, 2).map(({ id, use }) => [id, use])).toEqual([
      ["shipped:catbabi-qa", "answers"],
      ["shipped:metarl", "agent"],
    ]);
    const entry = models.find(({ id }) => id === `run:${name}`)!;
    expect(entry).toMatchObject({ use: "answers", system: "fwm", memory: true });
    const last = entry.checkpoints.find((checkpoint) => checkpoint.last)!;
    const story = "Mary went to the kitchen.\nWhere is Mary?";
    const model = { id: entry.id, checkpoint: last.name };
    const answer = (await post(routes.ask.path, { model, story, top: 3, writes: true })).json<AskAnswer>();
    expect(answer).toMatchObject({ shows: "reads", step: last.step, system: "fwm" });
    expect(answer.writes!.k1).toHaveLength(answer.tokens.length);
    const told = await run([
      "ask",
      join(runs, name, last.name),
      "--story",
      storyFile(story),
      "--top",
      "3",
      "--json",
    ]);
    const want = JSON.parse(told.stdout.split("\n")[0]!) as {
      answers: { word: string; probability: number }[];
    };
    expect(answer.questions[0]!.answers.map(({ word }) => word)).toEqual(
      want.answers.map(({ word }) => word),
    );
    const unknown = await post(routes.ask.path, { model, story: "Mary went to the kitchn. Where is Mary?" });
    expect(unknown.status).toBe(400);
    expect(unknown.json<ApiFailure>().error.unknownWords!.kitchn).toContain("kitchen");
    const plain = (await post(routes.ask.path, { model, story })).json<AskAnswer>();
    expect(plain.writes).toBeUndefined();
  });

  test("is resumed to its end", async () => {
    const look = async () => (await send(running.port, { path: `/api/run?run=${name}` })).json<RunDetail>();
    // The index of runs is looked through now and then.
    await expect
      .poll(async () => (await look()).resumeCommand, { timeout: 30_000 })
      .toBe(`fwm train --resume ${join(runs, name)}`);
    const detail = await look();
    const steps = detail.run.step + 2;
    const job = (await post(routes.trainResume.path, { run: name, steps })).json<Job>();
    expect(job.command).toBe(`fwm train --resume ${join(runs, name)} --steps ${steps}`);
    await follow(running.port, (event, data) =>
      event === "jobs"
        ? (data as JobsAnswer).jobs.some((each) => each.run === name && each.state === "ended")
        : false,
    );
    const [ended] = (await send(running.port, { path: routes.jobs.path })).json<JobsAnswer>().jobs;
    expect(ended!.exitCode, ended!.tail.join("\n")).toBe(0);
    expect(stateOf(name)).toBe("finished");
  });
});

test("an agent walks its graph with the explorer beside it", async () => {
  const model = { id: "shipped:metarl" };
  const first = (await post(routes.rollout.path, { model, seed: 5 })).json<RolloutAnswer>();
  expect(first.graph).toHaveLength(5);
  expect(first.explorer).toHaveLength(first.steps.length);
  expect(first.explorer.at(-1)!.total).toBeCloseTo(first.explorerTotal, 4);
  expect(first.steps.at(-1)!.total).toBeCloseTo(first.total, 4);
  expect(first.shortestPath).toBeGreaterThan(0);
  const again = (await post(routes.rollout.path, { model, seed: 5 })).json<RolloutAnswer>();
  expect(again).toEqual(first);
  const other = await post(routes.ask.path, { model, story: "Where is Mary?" });
  expect(other.status).toBe(422);
});

const exitOf = (child: ChildProcess): Promise<number | NodeJS.Signals | null> =>
  new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)));

describe("when the studio ends, its runs are saved as by ^C and no process is left", () => {
  test.each([
    ["SIGKILL", "SIGKILL"],
    ["SIGINT", 130],
  ] as const)("%s", async (signal, code) => {
    const name = `ended-${signal}`;
    const { child, port } = running;
    const trained = follow(port, (event, data) =>
      event === "runs"
        ? (data as RunsAnswer).runs.some((each) => each.name === name && each.step > 0)
        : false,
    );
    expect((await post(routes.trainStart.path, { ...smoke, steps: 100_000, name })).status).toBe(200);
    await trained;
    await post(routes.vocabulary.path, { model: { id: "shipped:catbabi-qa" } });
    // The process that serves has not even loaded what blocks.
    expect(readFileSync(`/proc/${child.pid}/maps`, "utf8")).not.toContain("onnxruntime");
    const children = childrenOf(child.pid!);
    expect(children.length).toBeGreaterThanOrEqual(2);
    const ended = exitOf(child);
    child.kill(signal);
    expect(await ended).toBe(code);
    await expect.poll(() => children.filter(isAlive), { timeout: 20_000 }).toEqual([]);
    expect(stateOf(name)).toBe("interrupted");
    expect(existsSync(join(runs, name, "last"))).toBe(true);
    // Started again, the studio finds the run as it was left.
    running = await studioProcess(runs);
    const again = (await send(running.port, { path: routes.runs.path })).json<RunsAnswer>();
    expect(again.runs.find((each) => each.name === name)).toMatchObject({
      state: "interrupted",
      trainedHere: false,
    });
  });
});

/** Children of a process, as the system lists them. */
function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const [, parent] = /\) \S (\d+)/.exec(readFileSync(`/proc/${name}/stat`, "utf8")) ?? [];
        return Number(parent) === pid;
      } catch {
        return false;
      }
    })
    .map(Number);
}

function storyFile(story: string): string {
  const file = join(root, "story.txt");
  writeFileSync(file, story);
  return file;
}
