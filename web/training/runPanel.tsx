/** One run in full: how it stands, its settings, its checkpoints, and what can be done with it. */
import { useSignal } from "@preact/signals";
import type { Job, RunDetail, RunSummary } from "../../src/studio/api.ts";
import { call } from "../api.ts";
import { ScrollArea } from "../components/scrollArea.tsx";
import { Failed, Loading } from "../components/states.tsx";
import { jobs, kindOf } from "../live.ts";
import { href, setQuery } from "../router.ts";
import { useDetail } from "../useDetail.ts";
import { showMeasure } from "./view.ts";

const looks: Readonly<Record<RunSummary["state"], string>> = {
  running: "accent",
  finished: "good",
  interrupted: "warn",
  diverged: "bad",
  failed: "bad",
};

/** How a run stands. */
export function StateBadge({ state }: { state: RunSummary["state"] }) {
  return <span class={`badge ${looks[state]}`}>{state}</span>;
}

/** The panel of a run. */
export function RunPanel({ run }: { run: RunSummary }) {
  const { name, state, kind, note, trainedHere } = run;
  // Checkpoints and hours change while it trains: it is looked up again with every evaluation.
  const stamp = `${state} ${run.bestStep} ${JSON.stringify(run.last)}`;
  const { found: detail, error } = useDetail<RunDetail>("run", name, stamp);
  const measures = Object.entries(kindOf(kind)?.measures ?? {});
  const found = detail.value;
  return (
    <section class="panel run-panel" aria-label={`Run ${name}`}>
      <div class="panel-head">
        <h2>
          {name} <StateBadge state={state} />
        </h2>
        <div class="row">
          <Actions run={run} />
          <button type="button" class="plain" onClick={() => setQuery({ run: undefined })}>
            Close
          </button>
        </div>
      </div>
      {note ? <p class="notice warn">{note}</p> : null}
      {error.value ? <Failed what="The run could not be read" error={error.value} /> : null}
      <JobTail run={name} trainedHere={trainedHere} />
      {found ? (
        <>
          <p class="muted">
            {found.description} · {found.hours} h of training · version {found.packageVersion}
            {found.commit ? `, commit ${found.commit.slice(0, 9)}` : ""}
            {found.resumed.length > 0 ? ` · resumed ${found.resumed.length} times` : ""}
          </p>
          <table class="numbers measures">
            <thead>
              <tr>
                <th>validation</th>
                <th class="number">
                  best{run.bestStep === null ? "" : `, step ${run.bestStep.toLocaleString("en")}`}
                </th>
                <th class="number">last</th>
              </tr>
            </thead>
            <tbody>
              {measures.map(([key, measure]) => (
                <tr key={key}>
                  <th>{measure.label}</th>
                  <td class="number">
                    {run.best[key] === undefined ? "–" : showMeasure(measure, run.best[key])}
                  </td>
                  <td class="number">
                    {run.last[key] === undefined ? "–" : showMeasure(measure, run.last[key])}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          <CopyLine label="Command" line={found.command} />
          {found.resumeCommand ? (
            <CopyLine label="To resume it in a terminal" line={found.resumeCommand} />
          ) : null}
          <div>
            <h3>Checkpoints</h3>
            {found.checkpoints.length === 0 ? (
              <p class="muted">None yet.</p>
            ) : (
              <p class="row">
                {found.checkpoints.map(({ name: checkpoint, step, best, last }) => (
                  <a key={checkpoint} class="button" href={useOf(run, checkpoint)}>
                    step {step.toLocaleString("en")}
                    {best ? " (best)" : last ? " (last)" : ""}
                  </a>
                ))}
              </p>
            )}
          </div>
          <details>
            <summary>All settings</summary>
            <dl class="settings">
              {Object.entries(found.settings).map(([key, value]) => (
                <div key={key} class={key in run.changed ? "changed" : undefined}>
                  <dt>{key}</dt>
                  <dd>{value === "" ? "–" : value}</dd>
                </div>
              ))}
            </dl>
          </details>
          <details>
            <summary>Machine</summary>
            <dl class="settings">
              {Object.entries(found.environment).map(([key, value]) => (
                <div key={key}>
                  <dt>{key}</dt>
                  <dd>{value ?? "–"}</dd>
                </div>
              ))}
            </dl>
          </details>
        </>
      ) : error.value ? null : (
        <Loading what="Reading the run" />
      )}
    </section>
  );
}

/** The page that uses a model of this run's kind. */
function useOf({ kind, name }: RunSummary, checkpoint: string): string {
  const page = kind === "metarl" ? "agent" : kind === "text" ? "text" : "ask";
  return href(page, { model: `run:${name}@${checkpoint}` });
}

/** Stop and resume. */
function Actions({ run }: { run: RunSummary }) {
  const busy = useSignal(false);
  const error = useSignal<unknown>(undefined);
  const act = (route: "trainStop" | "trainResume"): void => {
    busy.value = true;
    error.value = undefined;
    call<Job>(route, { body: { run: run.name } })
      .catch((reason: unknown) => {
        error.value = reason;
      })
      .finally(() => {
        busy.value = false;
      });
  };
  const job = jobs.value.find((each) => each.run === run.name);
  const isStopping = job?.state === "stopping";
  const canResume = run.state === "interrupted" || run.state === "failed";
  return (
    <>
      {error.value ? <Failed what="That did not work" error={error.value} /> : null}
      {run.trainedHere ? (
        <button type="button" disabled={busy.value || isStopping} onClick={() => act("trainStop")}>
          {isStopping ? "Saving …" : "Stop and save"}
        </button>
      ) : run.state === "running" ? (
        <small>trained by another process; stop it there</small>
      ) : null}
      {canResume && !run.trainedHere ? (
        <button type="button" class="primary" disabled={busy.value} onClick={() => act("trainResume")}>
          Resume
        </button>
      ) : null}
    </>
  );
}

/** What the run's process said last, if it is the studio's. */
function JobTail({ run, trainedHere }: { run: string; trainedHere: boolean }) {
  const job = jobs.value.find((each) => each.run === run);
  if (!job || job.tail.length === 0) return null;
  const failed = job.exitCode !== null && job.exitCode !== 0 && job.exitCode !== 130;
  return (
    <details open={failed || trainedHere}>
      <summary>{failed ? `Ended with code ${job.exitCode}` : "What it says"}</summary>
      <ScrollArea label="Output of the run">
        <pre>{job.tail.slice(-12).join("\n")}</pre>
      </ScrollArea>
    </details>
  );
}

/** A line of a shell, and a button that copies it. */
export function CopyLine({ label, line }: { label: string; line: string }) {
  const copied = useSignal(false);
  const copy = (): void => {
    navigator.clipboard.writeText(line).then(
      () => {
        copied.value = true;
        setTimeout(() => {
          copied.value = false;
        }, 2_000);
      },
      () => undefined,
    );
  };
  return (
    <div class="copy-line">
      <span class="muted">{label}</span>
      <code>{line}</code>
      <button type="button" onClick={copy}>
        {copied.value ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
