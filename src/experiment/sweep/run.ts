/** Runs a sweep: gives a queue the tasks that what has been reached allows, until there are none left. */
import { join } from "node:path";
import { metricsFile, readMetrics } from "../../store/metrics.ts";
import { effectiveState } from "../../store/runRecord.ts";
import type { Kind } from "../kind.ts";
import { kindOf } from "../registry.ts";
import type { RunContext } from "../trainRun.ts";
import { type MemberState, memberRecord, type SweepMember } from "./members.ts";
import { embeddedQueue, type MemberQueue, type MemberTask, type SweepCallbacks } from "./queue.ts";
import {
  checkRounds,
  oneRound,
  openTasks,
  type Rounds,
  rankings,
  type Standing,
  settingOf,
} from "./rounds.ts";

/** How a command runs a sweep. */
export interface SweepContext extends Omit<RunContext, "callbacks"> {
  readonly callbacks?: SweepCallbacks;
  /** Budgets, and who goes on; without them all members train to their end. */
  readonly rounds?: Rounds;
  /** Where members are trained; in this process unless given. */
  readonly queue?: MemberQueue;
}

/** How a sweep ended: all members have come to an end, or it was stopped. */
export interface SweepEnd {
  readonly reason: "finished" | "interrupted";
  /** One per member, in their order. */
  readonly states: readonly MemberState[];
  /** Only where there is more than one. */
  readonly rounds?: readonly RoundResult[];
}

/** What a round decided. */
export interface RoundResult {
  /** Steps at its end. */
  readonly steps: number;
  /** Settings (with `asha`: members), the best first. */
  readonly ranking: readonly {
    readonly name: string;
    /** The best value of the kind's measure on validation data up to then, as a mean over seeds; null: none. */
    readonly value: number | null;
    /** Whether it trained on. */
    readonly kept: boolean;
  }[];
}

/** A member's standing, and its state as its folder tells it. */
interface Known {
  readonly standing: Standing;
  readonly state: MemberState;
}

/**
 * Trains the members. Those that are finished, or have diverged, are left as they are; one that was stopped resumes from
 * its checkpoint. A member that diverges does not end the sweep.
 */
export async function runSweep(members: readonly SweepMember[], context: SweepContext): Promise<SweepEnd> {
  const { rounds: given, queue: ownQueue, signal, callbacks, ...rest } = context;
  const kind = kindOf(members[0]!.settings);
  if (given) checkRounds(given, members);
  const rounds = given ?? oneRound(kind.steps(members[0]!.settings));
  const known: Known[] = [];
  for (const member of members) known.push(await standingOf(member, rounds, kind));
  const shown = callbacks ? { callbacks } : {};
  const queue = ownQueue ?? embeddedQueue({ ...rest, ...shown });
  const { better } = kind.measures[kind.best]!;
  const standings = (): Standing[] => known.map(({ standing }) => standing);

  const end = (reason: SweepEnd["reason"]): SweepEnd => ({
    reason,
    states: known.map(({ state, standing }) => (reason === "finished" && !standing.over ? "pruned" : state)),
    ...(given ? { rounds: roundResults(given, members, standings(), better) } : {}),
  });
  try {
    await queue.open(
      members,
      known.map(({ state }) => state),
    );
    members.forEach((member, i) => {
      if (known[i]!.standing.over) callbacks?.onMember?.(member, known[i]!.state);
    });
    const added = new Set<string>();
    let outstanding = 0;
    for (;;) {
      const fresh = openTasks(rounds, standings(), better).filter(
        ({ member, round }) => !added.has(`${member} ${round}`),
      );
      for (const { member, round } of fresh) added.add(`${member} ${round}`);
      outstanding += fresh.length;
      await queue.add(fresh.map(({ member, round }) => taskOf(members[member]!, round, rounds)));
      if (outstanding === 0) return end("finished");
      const ended = await queue.next(signal);
      if (!ended) return end("interrupted");
      outstanding--;
      const { task, state, note } = ended;
      const i = members.indexOf(task.member);
      const reached = await standingOf(task.member, rounds, kind);
      const isPaused = state === "interrupted" && reached.standing.values[task.round] !== undefined;
      // What failed is tried again when the sweep is started again, not before.
      const over = reached.standing.over || state === "failed";
      known[i] = { state: reached.state, standing: { ...reached.standing, over } };
      callbacks?.onEnd?.(task.member, state, note);
      if (state === "interrupted" && !isPaused) return end("interrupted");
    }
  } finally {
    await queue.close();
  }
}

function taskOf(member: SweepMember, round: number, { steps }: Rounds): MemberTask {
  const last = steps.length - 1;
  return { member, round, steps: steps[round]!, pauses: round < last, priority: last - round };
}

/** How far a member is, by its folder. */
async function standingOf(member: SweepMember, { steps }: Rounds, kind: Kind): Promise<Known> {
  const record = await memberRecord(member);
  const state = record ? effectiveState(record) : "waiting";
  const over = state === "finished" || state === "diverged";
  // Only members that are compared have values to be read.
  const values =
    record && steps.length > 1 ? await valuesOf(member.folder, steps, state === "finished", kind) : [];
  return { state, standing: { setting: settingOf(member), step: record?.step ?? 0, over, values } };
}

/** By round, the best value up to its end, of the rounds that were reached; a finished member has reached all. */
async function valuesOf(
  folder: string,
  steps: readonly number[],
  finished: boolean,
  { best, measures }: Kind,
): Promise<(number | undefined)[]> {
  const scored = (await readMetrics(join(folder, metricsFile))).filter(({ split }) => split === "valid");
  const sign = measures[best]!.better === "higher" ? 1 : -1;
  return steps.map((budget) => {
    if (!finished && !scored.some(({ step }) => step === budget)) return undefined;
    const values = scored
      .filter(({ step }) => step <= budget)
      .map(({ values: { [best]: value = Number.NaN } }) => value)
      .filter(Number.isFinite);
    // One whose evaluations were never finite is worse than any other.
    return sign * Math.max(Number.NEGATIVE_INFINITY, ...values.map((value) => sign * value));
  });
}

function roundResults(
  rounds: Rounds,
  members: readonly SweepMember[],
  standings: readonly Standing[],
  better: "higher" | "lower",
): RoundResult[] {
  const nameOf = (indices: readonly number[]): string => {
    const { name } = members[indices[0]!]!;
    return rounds.rule.name === "halving" ? name.replace(/-seed\d+$/, "") : name;
  };
  return rankings(rounds, standings, better).map((ranking, round) => ({
    steps: rounds.steps[round]!,
    ranking: ranking.map(({ members: own, value = Number.NaN, kept }) => ({
      name: nameOf(own),
      value: Number.isFinite(value) ? value : null,
      kept,
    })),
  }));
}
