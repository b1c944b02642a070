/**
 * Rounds: all members train for a first budget, the best go on from where they stood to the next one.
 *
 *   halving   a round begins when the one before is over; `keep` settings go on, all their seeds with them
 *   asha      asynchronous: of every `factor` members that have come to the end of a round, the best one goes on at once
 *
 * What trains next is a pure function of what has been reached: a sweep that was stopped anywhere decides the same again.
 */
import { UsageError } from "../../errors.ts";
import { mean } from "../../statistics.ts";
import { kindOf } from "../registry.ts";
import type { SweepMember } from "./members.ts";

/** The budgets of a sweep, and who goes on. */
export interface Rounds {
  /** Steps at the end of each round, rising; the last is what a member trains in all. */
  readonly steps: readonly number[];
  readonly rule:
    | {
        readonly name: "halving" /** Settings that go on after each round but the last. */;
        readonly keep: readonly number[];
      }
    | { readonly name: "asha"; readonly factor: number };
}

/** How far a member is: all that decides what trains next. */
export interface Standing {
  /** Members with the same text differ in the seed alone. */
  readonly setting: string;
  readonly step: number;
  /** It will not train any more. */
  readonly over: boolean;
  /** By round: the best validation value up to its end; undefined where the member did not come that far. */
  readonly values: readonly (number | undefined)[];
}

/** A member to train to the end of a round. */
export interface Task {
  /** Its index in the sweep. */
  readonly member: number;
  readonly round: number;
}

/** One budget for all. */
export function oneRound(steps: number): Rounds {
  return { steps: [steps], rule: { name: "halving", keep: [] } };
}

/** Refuses rounds that members cannot be compared in. */
export function checkRounds({ steps, rule }: Rounds, members: readonly SweepMember[]): void {
  const line = `--rounds ${steps.join(",")}`;
  if (steps.length < 2 || steps.some((budget, i) => i > 0 && budget <= steps[i - 1]!)) {
    throw new UsageError(`${line}: expected at least two numbers of steps, each larger than the one before`, {
      hint: "for example --rounds 3000,30000 --keep 4",
    });
  }
  if (rule.name === "halving") {
    const { keep } = rule;
    const settings = new Set(members.map(settingOf)).size;
    if (keep.length !== steps.length - 1 || keep.some((count, i) => count > (keep[i - 1] ?? settings))) {
      throw new UsageError(
        `--keep ${keep.join(",")}: does not fit ${steps.length} rounds of ${settings} settings`,
        {
          hint: "give one number per round but the last: how many settings go on, never more than before",
        },
      );
    }
  }
  for (const { name, settings } of members) {
    const { evalEvery } = settings.training;
    const odd = steps.slice(0, -1).find((budget) => evalEvery === 0 || budget % evalEvery !== 0);
    if (odd === undefined) continue;
    throw new UsageError(`${line}: ${name} is not evaluated at ${kindOf(settings).unit} ${odd}`, {
      "training.evalEvery": evalEvery === 0 ? "0: at the end of every epoch" : evalEvery,
      hint: "members are compared by validation where a round ends: choose multiples of training.evalEvery",
    });
  }
}

/** What members that differ in the seed alone have in common. */
export function settingOf({ changes }: Pick<SweepMember, "changes">): string {
  return JSON.stringify(changes);
}

/** The tasks that may be done now, the most urgent first. Tasks given before and not done yet may be among them. */
export function openTasks(
  rounds: Rounds,
  standings: readonly Standing[],
  better: "higher" | "lower",
): Task[] {
  const last = rounds.steps.length - 1;
  const isOpen = ({ member, round }: Task): boolean =>
    !standings[member]!.over && (round === last || standings[member]!.values[round] === undefined);
  if (rounds.rule.name === "asha") {
    const first = standings.map((_, member) => ({ member, round: 0 }));
    const promoted = ashaRankings(rounds, standings, better).map((ranking, round) =>
      ranking.filter(({ kept }) => kept).map(({ member }) => ({ member, round: round + 1 })),
    );
    return [...promoted.reverse().flat(), ...first].filter(isOpen);
  }
  const cohorts = halvingRankings(rounds, standings, better);
  const round = cohorts.length;
  const members = round === 0 ? standings.map((_, member) => member) : keptOf(cohorts[round - 1]!);
  return members.map((member) => ({ member, round })).filter(isOpen);
}

/** A setting in the ranking of a round, or with `asha` a single member. */
export interface Ranked {
  readonly members: readonly number[];
  /** Mean over the seeds; undefined where one of them did not come to the end of the round. */
  readonly value: number | undefined;
  readonly kept: boolean;
}

/** The rankings of the rounds that have been decided; of the last round, once all its members have ended. */
export function rankings(
  rounds: Rounds,
  standings: readonly Standing[],
  better: "higher" | "lower",
): Ranked[][] {
  if (rounds.rule.name === "halving") return halvingRankings(rounds, standings, better, true);
  return ashaRankings(rounds, standings, better, true).map((ranking) =>
    ranking.map(({ member, value, kept }) => ({ members: [member], value, kept })),
  );
}

function halvingRankings(
  { steps, rule }: Rounds,
  standings: readonly Standing[],
  better: "higher" | "lower",
  withLast = false,
): Ranked[][] {
  const keep = rule.name === "halving" ? rule.keep : [];
  const decided: Ranked[][] = [];
  let cohort = standings.map((_, member) => member);
  for (let round = 0; round < steps.length - (withLast ? 0 : 1); round++) {
    const isThere = (member: number): boolean =>
      standings[member]!.over || (round < steps.length - 1 && standings[member]!.values[round] !== undefined);
    if (!cohort.every(isThere)) break;
    const settings = new Map<string, number[]>();
    for (const member of cohort) {
      const { setting } = standings[member]!;
      const same = settings.get(setting);
      if (same) same.push(member);
      else settings.set(setting, [member]);
    }
    const ranked = [...settings.values()].map((members) => {
      const values = members.map((member) => standings[member]!.values[round]);
      const isWhole = values.every((value) => value !== undefined);
      return { members, value: isWhole ? mean(values) : undefined };
    });
    ranked.sort(byValue(better));
    const count = keep[round] ?? 0;
    const ranking = ranked.map((entry, i) => ({ ...entry, kept: i < count && Number.isFinite(entry.value) }));
    decided.push(ranking);
    cohort = keptOf(ranking);
  }
  return decided;
}

/** The members that go on, in their order. */
function keptOf(ranking: readonly Ranked[]): number[] {
  return ranking
    .filter(({ kept }) => kept)
    .flatMap(({ members }) => members)
    .sort((a, b) => a - b);
}

/** By round, the members that have come to its end and whether each goes on, or has gone on already. */
function ashaRankings(
  { steps, rule }: Rounds,
  standings: readonly Standing[],
  better: "higher" | "lower",
  withLast = false,
): { member: number; value: number | undefined; kept: boolean }[][] {
  const factor = rule.name === "asha" ? rule.factor : 1;
  const cameTo = (member: number, round: number): boolean => {
    const { over, values } = standings[member]!;
    const entered = round === 0 || values[round - 1] !== undefined;
    return entered && (values[round] !== undefined || over);
  };
  return steps.slice(0, withLast ? undefined : -1).map((budget, round) => {
    const ended = standings
      .map((standing, member) => ({ member, value: standing.values[round] }))
      .filter(({ member }) => cameTo(member, round));
    ended.sort(byValue(better));
    const count = round === steps.length - 1 ? 0 : Math.floor(ended.length / factor);
    return ended.map(({ member, value }, i) => {
      const hasGoneOn = standings[member]!.step > budget;
      return { member, value, kept: Number.isFinite(value) && (i < count || hasGoneOn) };
    });
  });
}

/** The best first; a setting without a value last, and equal ones in the order of the sweep. */
function byValue(better: "higher" | "lower") {
  const sign = better === "higher" ? -1 : 1;
  const rank = ({ value }: { readonly value: number | undefined }): number =>
    value === undefined ? Number.POSITIVE_INFINITY : sign * value;
  return (a: { readonly value: number | undefined }, b: { readonly value: number | undefined }): number =>
    rank(a) - rank(b) || 0;
}
