/** Model cards: what a shipped model is, how it came about, what it reaches and where it stops. */

import { chainTotals } from "./chain.ts";
import { changesLine } from "./changed.ts";
import { type RunResult, stepsOf } from "./result.ts";
import { thousands } from "./table.ts";

/** What a card says of the folder it lies in. */
export interface CardAbout {
  readonly name: string;
  readonly weights: number;
  /** Steps made when it was saved; null where that is not known. */
  readonly step: number | null;
  /** How the weights are stored; float32 unless given. */
  readonly precision?: "float32" | "float16";
  /** Further evaluations, such as the stretch suite. */
  readonly further?: readonly object[];
}

/** Name, what it is, and a table: the score's rows and how the model came about. */
export function cardHead(
  result: RunResult<unknown>,
  about: CardAbout,
  unit: "step" | "episode",
  { score, amount }: { readonly score: readonly (readonly [string, string])[]; readonly amount: string },
): string {
  const { command, initFrom, resumed, machine } = result;
  const changes = changesLine(result.changed ?? {});
  const totals = chainTotals(result.chain);
  const before = totals.steps || stepsOf(initFrom);
  const rows: (readonly [string, string])[] = [
    ...score,
    ["trained by", `\`${command}\``],
    ...(changes ? [["changed", changes] as const] : []),
    ...(result.chain.length === 0 && initFrom ? [["weights from", initFrom] as const] : []),
    ...result.chain.map(
      ({ name, steps, command: by, commit }) =>
        [
          `before it: ${name}`,
          `${thousands(steps)} ${unit}s${by === null ? "" : `, \`${by}\``}${commit === null ? "" : `, commit ${commit}`}`,
        ] as const,
    ),
    ...resumed.map((again) => [`from ${unit} ${thousands(again.step)}`, `\`${again.command}\``] as const),
    [
      `${unit}s`,
      `${thousands(result.steps)} (${amount})${before > 0 ? ` after ${thousands(before)} of the weights it started with` : ""}` +
        `${about.step === null ? "" : `, this one after ${thousands(before + about.step)} in all`}, ` +
        `${result.hours.toFixed(1)} hours${totals.hours > 0 ? `, ${(totals.hours + result.hours).toFixed(1)} in all` : ""}`,
    ],
    [
      "seed, commit",
      `${result.seed}, ${result.commit ?? "unknown"}${result.exactSource ? "" : " (the exact source is not known)"}`,
    ],
    [
      "machine",
      `${machine.cpu}, ${machine.cores} cores, ${machine.threads ?? "?"} thread(s), ONNX Runtime ${machine.ort ?? "?"}`,
    ],
    ["date", result.date.slice(0, 10)],
  ];
  return `# ${about.name}

${result.description}. ${thousands(about.weights)} weights, ${about.precision ?? "float32"}${
    about.precision === "float16" ? "; the score is that of the rounded weights" : ""
  }.

| | |
| --- | --- |
${rows.map(([name, value]) => `| ${name} | ${value} |`).join("\n")}
`;
}
