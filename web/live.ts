/** The runs and jobs of the studio as they are now: one connection that the server tells every change on. */
import { signal } from "@preact/signals";
import {
  type About,
  type Job,
  type JobsAnswer,
  type RunSummary,
  type RunsAnswer,
  routes,
} from "../src/studio/api.ts";
import { call } from "./api.ts";

/** All runs by name; undefined before the first answer. */
export const runs = signal<ReadonlyMap<string, RunSummary> | undefined>(undefined);
/** Folders that are no whole runs. */
export const damaged = signal<RunsAnswer["damaged"]>([]);
/** Training processes of the studio. */
export const jobs = signal<readonly Job[]>([]);
/** What the studio is; undefined before the first answer. */
export const about = signal<About | undefined>(undefined);
/** Whether the studio is heard from. */
export const connection = signal<"connecting" | "open" | "lost">("connecting");

let source: EventSource | undefined;

/** Connects, once; every page that shows runs calls this. */
export function follow(): void {
  if (source) return;
  askAbout();
  source = new EventSource(routes.events.path);
  source.addEventListener("open", () => {
    connection.value = "open";
    askAbout();
  });
  // The browser connects again by itself, and says what it has seen last.
  source.addEventListener("error", () => {
    connection.value = "lost";
    if (source?.readyState !== EventSource.CLOSED) return;
    source = undefined;
    setTimeout(follow, 2_000);
  });
  source.addEventListener("runs", ({ data }: MessageEvent<string>) => take(JSON.parse(data) as RunsAnswer));
  source.addEventListener("jobs", ({ data }: MessageEvent<string>) => {
    jobs.value = (JSON.parse(data) as JobsAnswer).jobs;
  });
}

function askAbout(): void {
  if (about.peek()) return;
  call<About>("about").then(
    (answer) => {
      about.value = answer;
    },
    () => undefined,
  );
}

function take({ whole, runs: changed, removed, damaged: problems }: RunsAnswer): void {
  const next = new Map(whole ? [] : runs.peek());
  for (const run of changed) next.set(run.name, run);
  for (const name of removed) next.delete(name);
  runs.value = next;
  damaged.value = problems;
}

/** The kind of a run, if it is known. */
export function kindOf(kind: string | null): About["kinds"][number] | undefined {
  return about.value?.kinds.find(({ name }) => name === kind);
}
