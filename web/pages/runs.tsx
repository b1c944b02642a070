/** Runs: all of them in a live table, many of them compared, and training started, stopped and resumed. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { RunSummary } from "../../src/studio/api.ts";
import { ScrollArea } from "../components/scrollArea.tsx";
import { Empty, Loading } from "../components/states.tsx";
import { about, connection, damaged, follow, kindOf, runs } from "../live.ts";
import { href, query, setQuery } from "../router.ts";
import { Compare } from "../training/compare.tsx";
import { NewRun } from "../training/newRun.tsx";
import { RunPanel, StateBadge } from "../training/runPanel.tsx";
import {
  age,
  columnsOf,
  headline,
  rowsOf,
  showChanged,
  showMeasure,
  type TableRow,
} from "../training/view.ts";
import "../style/runs.css";

/** The page. */
export default function RunsPage() {
  useEffect(follow, []);
  const all = runs.value;
  const isNew = query.value.get("new") === "1";
  const open = query.value.get("run");
  return (
    <>
      <div class="page-head">
        <h1>Runs</h1>
        <p>
          {about.value ? <code>{about.value.runsFolder}</code> : null}
          {all ? ` · ${all.size.toLocaleString("en")} ${all.size === 1 ? "run" : "runs"}` : ""}
        </p>
        <span class="grow" />
        <Connection />
        <button
          type="button"
          aria-expanded={isNew}
          onClick={() => setQuery({ new: isNew ? undefined : "1" })}
        >
          New run
        </button>
      </div>
      {isNew ? <NewRun /> : null}
      {!all ? (
        <Loading
          what={connection.value === "lost" ? "The studio does not answer; trying again" : "Looking for runs"}
        />
      ) : all.size === 0 ? (
        <Empty title="No runs yet">
          <p>
            Start one here with New run, or in a terminal: <code>fwm train catbabi-qa-fwm</code>. It appears
            by itself.
          </p>
        </Empty>
      ) : (
        <>
          <RunTable all={all} />
          {open !== undefined && all.has(open) ? <RunPanel key={open} run={all.get(open)!} /> : null}
          <Compare all={all} selected={selectedRuns(all)} />
        </>
      )}
      <Damaged />
    </>
  );
}

/** Whether what is shown is live. */
function Connection() {
  const look = { connecting: "", open: "good", lost: "bad" }[connection.value];
  const words = { connecting: "connecting", open: "live", lost: "connection lost, trying again" }[
    connection.value
  ];
  return (
    <span class={`badge ${look}`} role="status">
      {words}
    </span>
  );
}

/** Folders that could not be read as runs. */
function Damaged() {
  if (damaged.value.length === 0) return null;
  return (
    <details class="notice">
      <summary>
        {damaged.value.length} {damaged.value.length === 1 ? "folder is" : "folders are"} no whole runs
      </summary>
      <ul>
        {damaged.value.map(({ name, problem }) => (
          <li key={name}>
            <code>{name}</code>: {problem}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** The runs that are compared: those in the address, else the newest few of one kind. */
function selectedRuns(all: ReadonlyMap<string, RunSummary>): string[] {
  const chosen = query.value.get("sel");
  if (chosen !== undefined) return chosen === "-" ? [] : chosen.split("\n").filter((name) => all.has(name));
  const newest = [...all.values()]
    .filter(({ metricsVersion }) => metricsVersion > 0)
    .sort((a, b) => b.created.localeCompare(a.created));
  // Measures of another kind of experiment would not fit into one chart.
  return newest
    .filter(({ kind }) => kind === newest[0]!.kind)
    .slice(0, 5)
    .map(({ name }) => name);
}

/** Rows that are shown at first, and with every wish for more. */
const pageSize = 100;

function RunTable({ all }: { all: ReadonlyMap<string, RunSummary> }) {
  const state = query.value;
  const filter = state.get("filter") ?? "";
  const sort = state.get("sort") ?? "updated";
  const descending = (state.get("order") ?? (sort === "updated" ? "down" : "up")) === "down";
  const openedText = state.get("open") ?? "";
  const shown = useSignal(pageSize);
  const columns = columnsOf(about.value);
  const known = columns.some(({ key }) => key === sort) ? sort : "updated";
  const rows = useMemo(
    () =>
      rowsOf(
        all.values(),
        { filter, sort: known, descending, opened: new Set(openedText === "" ? [] : openedText.split("\n")) },
        about.value,
      ),
    [all, filter, known, descending, openedText, about.value],
  );
  const selected = new Set(selectedRuns(all));
  const choose = (names: readonly string[], isChosen: boolean): void => {
    const next = new Set(selected);
    for (const name of names) {
      if (isChosen) next.add(name);
      else next.delete(name);
    }
    setQuery({ sel: [...next].join("\n") || "-" });
  };
  const matching = rows.flatMap((row) => (row.kind === "run" ? (row.inSweep ? [] : [row.run]) : row.members));
  return (
    <section class="panel" aria-label="All runs">
      <div class="row">
        <label class="field filter">
          <span class="visually-hidden">Filter</span>
          <input
            type="search"
            placeholder="Filter: name, system, state, setting"
            value={filter}
            onInput={({ currentTarget }) => setQuery({ filter: currentTarget.value })}
          />
        </label>
        <span class="muted numbers" role="status">
          {selected.size} compared
        </span>
        <button
          type="button"
          disabled={matching.length === 0}
          onClick={() =>
            choose(
              matching.slice(0, 200).map(({ name }) => name),
              true,
            )
          }
        >
          Compare {filter === "" ? "all" : `${matching.length} found`}
        </button>
        <button type="button" disabled={selected.size === 0} onClick={() => setQuery({ sel: "-" })}>
          Compare none
        </button>
      </div>
      <div class="table-box">
        <ScrollArea label="Table of runs">
          <table class="runs">
            <thead>
              <tr>
                <th>
                  <span class="visually-hidden">Compare</span>
                </th>
                {columns.map(({ key, label, number }) => (
                  <th
                    key={key}
                    class={number ? "number" : undefined}
                    aria-sort={key === known ? (descending ? "descending" : "ascending") : undefined}
                  >
                    <button
                      type="button"
                      class="plain sort"
                      onClick={() =>
                        setQuery({
                          sort: key,
                          order: key === known ? (descending ? "up" : "down") : number ? "down" : "up",
                        })
                      }
                    >
                      {label}
                      <span aria-hidden="true">{key === known ? (descending ? " ↓" : " ↑") : ""}</span>
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, shown.value).map((row) =>
                row.kind === "run" ? (
                  <RunRow
                    key={row.run.name}
                    run={row.run}
                    inSweep={row.inSweep}
                    isChosen={selected.has(row.run.name)}
                    onChoose={(isChosen) => choose([row.run.name], isChosen)}
                  />
                ) : (
                  <SweepRow
                    key={`sweep ${row.name}`}
                    row={row}
                    chosen={row.members.filter(({ name }) => selected.has(name)).length}
                    onChoose={(isChosen) =>
                      choose(
                        row.members.map(({ name }) => name),
                        isChosen,
                      )
                    }
                    onOpen={() => {
                      const opened = new Set(openedText === "" ? [] : openedText.split("\n"));
                      if (!opened.delete(row.name)) opened.add(row.name);
                      setQuery({ open: [...opened].join("\n") });
                    }}
                  />
                ),
              )}
            </tbody>
          </table>
          {rows.length === 0 ? <p class="muted none">No run fits the filter.</p> : null}
        </ScrollArea>
      </div>
      {rows.length > shown.value ? (
        <div>
          <button
            type="button"
            onClick={() => {
              shown.value += 5 * pageSize;
            }}
          >
            Show more ({(rows.length - shown.value).toLocaleString("en")} left)
          </button>
        </div>
      ) : null}
    </section>
  );
}

function RunRow(props: {
  run: RunSummary;
  inSweep: boolean;
  isChosen: boolean;
  onChoose: (isChosen: boolean) => void;
}) {
  const { run, inSweep, isChosen, onChoose } = props;
  const isOpen = query.value.get("run") === run.name;
  const shown = headline(run, about.value);
  const kind = kindOf(run.kind);
  return (
    <tr class={isOpen ? "open" : undefined}>
      <td>
        <input
          type="checkbox"
          checked={isChosen}
          aria-label={`Compare ${run.name}`}
          onChange={({ currentTarget }) => onChoose(currentTarget.checked)}
        />
      </td>
      <td class={inSweep ? "name member" : "name"}>
        <a
          href={href("runs", { ...Object.fromEntries(query.value), run: isOpen ? undefined : run.name })}
          aria-expanded={isOpen}
        >
          {inSweep ? run.name.slice(run.sweep!.length + 1) : run.name}
        </a>
      </td>
      <td>{run.experiment}</td>
      <td>{run.system}</td>
      <td class="number">{run.seed}</td>
      <td>
        <StateBadge state={run.state} />
      </td>
      <td class="number">
        {run.step.toLocaleString("en")}
        {run.steps === null ? "" : <span class="muted"> / {run.steps.toLocaleString("en")}</span>}
      </td>
      <td class="number">
        {shown?.value === undefined ? (
          <span class="muted">–</span>
        ) : (
          <>
            {showMeasure(shown.measure, shown.value)} <small>{shown.measure.label}</small>
          </>
        )}
      </td>
      <td class="number">
        {run.speed === null ? (
          <span class="muted">–</span>
        ) : (
          <>
            {Number(run.speed.toPrecision(3)).toLocaleString("en")} <small>{kind?.speed.label ?? ""}</small>
          </>
        )}
      </td>
      <td class="changed" title={showChanged(run.changed)}>
        {showChanged(run.changed)}
      </td>
      <td class="muted">{age(Date.now() - Date.parse(run.updated))}</td>
    </tr>
  );
}

function SweepRow(props: {
  row: Extract<TableRow, { kind: "sweep" }>;
  chosen: number;
  onChoose: (isChosen: boolean) => void;
  onOpen: () => void;
}) {
  const { row, chosen, onChoose, onOpen } = props;
  const shown = row.best && headline(row.best, about.value);
  const running = row.members.filter(({ state }) => state === "running").length;
  const first = row.members[0]!;
  return (
    <tr class="sweep">
      <td>
        <input
          type="checkbox"
          checked={chosen === row.members.length}
          indeterminate={chosen > 0 && chosen < row.members.length}
          aria-label={`Compare all of ${row.name}`}
          onChange={({ currentTarget }) => onChoose(currentTarget.checked)}
        />
      </td>
      <td class="name">
        <button type="button" class="plain fold" aria-expanded={row.isOpen} onClick={onOpen}>
          <span aria-hidden="true">{row.isOpen ? "▾" : "▸"}</span> {row.name}
        </button>{" "}
        <a href={href("sweep", { name: row.name })}>sweep of {row.members.length}</a>
      </td>
      <td>{first.experiment}</td>
      <td>{first.system}</td>
      <td />
      <td>{running > 0 ? <span class="badge accent">{running} running</span> : null}</td>
      <td />
      <td class="number">
        {shown?.value === undefined ? null : (
          <>
            {showMeasure(shown.measure, shown.value)} <small>{shown.measure.label}</small>
          </>
        )}
      </td>
      <td />
      <td class="changed muted">{row.best ? `best: ${row.best.name.slice(row.name.length + 1)}` : ""}</td>
      <td class="muted">
        {age(Date.now() - Math.max(...row.members.map(({ updated }) => Date.parse(updated))))}
      </td>
    </tr>
  );
}
