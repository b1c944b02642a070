/** Sweep: how its members came out in the order they were trained, by which settings, and which of them matter. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { SweepDetail, SweepMember, SweepSummary, SweepsAnswer } from "../../src/studio/api.ts";
import { call } from "../api.ts";
import { Bars } from "../components/bars.tsx";
import { CurveChart } from "../components/curveChart.tsx";
import { ScrollArea } from "../components/scrollArea.tsx";
import { Empty, Failed, Loading } from "../components/states.tsx";
import { about, follow, kindOf, runs } from "../live.ts";
import { href, query, setQuery } from "../router.ts";
import "../style/sweep.css";
import { theme, token } from "../theme.ts";
import { Parallel } from "../training/parallel.tsx";
import { StateBadge } from "../training/runPanel.tsx";
import { showMeasure } from "../training/view.ts";
import { useDetail } from "../useDetail.ts";

/** The page. */
export default function SweepPage() {
  useEffect(follow, []);
  const sweeps = useSignal<readonly SweepSummary[] | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  // Another member, or another best value, is another list.
  const stamp = [...(runs.value?.values() ?? [])]
    .filter(({ sweep }) => sweep !== null)
    .map(({ name, state, bestStep }) => `${name} ${state} ${bestStep}`)
    .join("\n");
  useEffect(() => {
    if (runs.value === undefined) return;
    call<SweepsAnswer>("sweeps").then(
      (answer) => {
        sweeps.value = answer.sweeps;
        error.value = undefined;
      },
      (reason: unknown) => {
        error.value = reason;
      },
    );
  }, [stamp, runs.value === undefined, sweeps, error]);
  const list = sweeps.value;
  if (error.value) return <Failed what="The sweeps could not be listed" error={error.value} />;
  if (!list || !about.value) return <Loading what="Looking for sweeps" />;
  if (list.length === 0) {
    return (
      <Empty title="No sweeps">
        <p>
          A sweep trains one experiment under several settings:{" "}
          <code>fwm sweep catbabi-qa-fwm --each system.reads=1,2,3 --seeds 1,2</code>. Its members appear here
          as they are trained.
        </p>
      </Empty>
    );
  }
  const asked = query.value.get("name");
  const name = list.some((sweep) => sweep.name === asked) ? asked! : list[0]!.name;
  return (
    <>
      <div class="page-head">
        <h1>Sweep</h1>
        <label class="field">
          <span class="visually-hidden">Which sweep</span>
          <select
            value={name}
            onChange={({ currentTarget }) => setQuery({ name: currentTarget.value, measure: undefined })}
          >
            {list.map((sweep) => (
              <option key={sweep.name} value={sweep.name}>
                {sweep.name} ({sweep.members} of {sweep.experiment})
              </option>
            ))}
          </select>
        </label>
      </div>
      <Sweep key={name} name={name} stamp={stamp} />
    </>
  );
}

function Sweep({ name, stamp }: { name: string; stamp: string }) {
  const { found: detail, error } = useDetail<SweepDetail>("sweep", name, stamp);
  const pointed = useSignal<string | undefined>(undefined);
  if (error.value) return <Failed what="The sweep could not be read" error={error.value} />;
  const found = detail.value;
  if (!found) return <Loading what="Reading the sweep" />;
  const kind = kindOf(found.kind);
  if (!kind)
    return (
      <Failed what="The sweep is of a kind that this version does not know" error={found.sweep.experiment} />
    );
  const asked = query.value.get("measure") ?? "";
  const measure = Object.hasOwn(kind.measures, asked) ? asked : kind.headline;
  const info = kind.measures[measure]!;
  const states = Object.entries(found.sweep.states);
  return (
    <>
      <section class="panel" aria-label="Sweep">
        <div class="row">
          <label class="field">
            Measure
            <select
              value={measure}
              onChange={({ currentTarget }) => setQuery({ measure: currentTarget.value })}
            >
              {Object.entries(kind.measures).map(([key, { label }]) => (
                <option key={key} value={key}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          <p class="grow">
            {found.members.length} members: {states.map(([state, count]) => `${count} ${state}`).join(", ")}
          </p>
          <a
            class="button"
            href={href("runs", {
              sel: found.members.map(({ run }) => run).join("\n"),
              open: name,
              series: `valid/${measure}`,
            })}
          >
            Compare their curves
          </a>
        </div>
      </section>
      <div class="columns">
        <History members={found.members} measure={measure} info={info} />
        <Importance detail={found} measure={measure} label={info.label} />
      </div>
      <section class="panel" aria-label="Parallel coordinates">
        <div class="panel-head">
          <h2>Settings and {info.label}</h2>
          <small>
            {pointed.value ? pointed.value.slice(name.length + 1) : "a line per member; point at one"}
          </small>
        </div>
        <ScrollArea label="Lines of the members">
          <Parallel
            members={found.members}
            keys={found.keys}
            measure={measure}
            info={info}
            pointed={pointed.value}
            onPoint={(run) => {
              pointed.value = run;
            }}
          />
        </ScrollArea>
      </section>
      <Members
        detail={found}
        measure={measure}
        onPoint={(run) => (pointed.value = run)}
        pointed={pointed.value}
      />
    </>
  );
}

type Info = NonNullable<ReturnType<typeof kindOf>>["measures"][string];

/** Results in the order in which members were started, and the best so far. */
function History({
  members,
  measure,
  info,
}: {
  members: readonly SweepMember[];
  measure: string;
  info: Info;
}) {
  const look = theme.value;
  const curves = useMemo(() => {
    const done = members
      .map(({ best }, i) => ({ at: i + 1, value: best[measure] }))
      .filter((each): each is { at: number; value: number } => each.value !== undefined);
    const sign = info.better === "higher" ? 1 : -1;
    let best = Number.NaN;
    const bests = done.map(({ value }) => (best = !(sign * best >= sign * value) ? value : best));
    return [
      { name: "best so far", color: token("--series-1"), dash: [], x: done.map(({ at }) => at), y: bests },
      {
        name: "each member",
        color: token("--series-2"),
        dash: [],
        x: done.map(({ at }) => at),
        y: done.map(({ value }) => value),
        dots: true,
      },
    ];
    // The colours are the theme's.
  }, [members, measure, info, look]);
  const x = useMemo(() => ({ label: "member", log: false, percent: false }), []);
  const y = useMemo(() => ({ label: info.label, log: false, percent: info.percent }), [info]);
  return (
    <section class="panel" aria-label="History">
      <h2>History</h2>
      <CurveChart
        curves={curves}
        lines={[]}
        x={x}
        y={y}
        description={`${info.label} of ${curves[1]!.x.length} members in the order they were started`}
        fileName={`history-${measure}`}
      />
    </section>
  );
}

/** How much each setting explains. */
function Importance({ detail, measure, label }: { detail: SweepDetail; measure: string; label: string }) {
  const shares = detail.importance[measure] ?? [];
  return (
    <section class="panel" aria-label="Importance">
      <h2>Importance</h2>
      {shares.length === 0 ? (
        <p class="muted">Four members with a result are needed to say what matters.</p>
      ) : (
        <Bars
          label={`Share of the variance of ${label} that each setting explains`}
          rows={shares.length}
          bars={shares.map(({ key, importance }) => ({ label: key, value: importance }))}
        />
      )}
      <small>
        ε²: the share of the variance between the groups of a setting's values, corrected for what as many
        groups would explain by chance. Settings that act together share what they explain.
      </small>
    </section>
  );
}

function Members(props: {
  detail: SweepDetail;
  measure: string;
  pointed: string | undefined;
  onPoint: (run: string | undefined) => void;
}) {
  const { detail, measure } = props;
  const kind = kindOf(detail.kind)!;
  const sort = query.value.get("sort") ?? measure;
  const descending =
    (query.value.get("order") ?? (kind.measures[measure]!.better === "higher" ? "down" : "up")) === "down";
  const measures = Object.entries(kind.measures);
  const sorted = useMemo(() => {
    const value = (member: SweepMember): string | number | boolean | null | undefined =>
      sort === "member" ? member.member : sort in kind.measures ? member.best[sort] : member.values[sort];
    const sign = descending ? -1 : 1;
    return [...detail.members].sort((a, b) => {
      const [first, second] = [value(a) ?? null, value(b) ?? null];
      if (first === null || second === null) return Number(first === null) - Number(second === null);
      if (typeof first === "number" && typeof second === "number") return sign * (first - second);
      return sign * String(first).localeCompare(String(second), "en", { numeric: true });
    });
  }, [detail, sort, descending, kind]);
  const head = (key: string, text: string, number: boolean) => (
    <th
      key={key}
      class={number ? "number" : undefined}
      aria-sort={key === sort ? (descending ? "descending" : "ascending") : undefined}
    >
      <button
        type="button"
        class="plain sort"
        onClick={() => setQuery({ sort: key, order: key === sort && descending ? "up" : "down" })}
      >
        {text}
        <span aria-hidden="true">{key === sort ? (descending ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
  return (
    <section class="panel" aria-label="Members">
      <h2>Members</h2>
      <ScrollArea label="Table of members">
        <table class="members">
          <thead>
            <tr>
              {head("member", "Member", false)}
              <th>State</th>
              {detail.keys.map((key) => head(key, key.replace(/^(training|system|task)\./, ""), false))}
              {measures.map(([key, { label }]) => head(key, `best ${label}`, true))}
              <th class="number">at step</th>
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, 500).map((member) => (
              <tr
                key={member.run}
                class={props.pointed === member.run ? "open" : undefined}
                onPointerEnter={() => props.onPoint(member.run)}
                onPointerLeave={() => props.onPoint(undefined)}
              >
                <td>
                  <a
                    href={href("runs", { run: member.run, sel: member.run, open: member.run.split("/")[0] })}
                  >
                    {member.member}
                  </a>
                </td>
                <td>
                  <StateBadge state={member.state} />
                </td>
                {detail.keys.map((key) => (
                  <td key={key} class="mono">
                    {member.values[key] === null ? "–" : String(member.values[key])}
                  </td>
                ))}
                {measures.map(([key, measureInfo]) => (
                  <td key={key} class="number">
                    {member.best[key] === undefined ? "–" : showMeasure(measureInfo, member.best[key])}
                  </td>
                ))}
                <td class="number">{member.bestStep?.toLocaleString("en") ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollArea>
      {sorted.length > 500 ? (
        <p class="muted">The first 500 of {sorted.length.toLocaleString("en")} members.</p>
      ) : null}
    </section>
  );
}
