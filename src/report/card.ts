/** A model card: what a shipped model is, how it came about, what it reaches and where it stops. */
import { changesLine } from "./changed.ts";
import type { RunResult } from "./result.ts";

/** The score a card shows. */
export interface CardScore {
  readonly split: string;
  readonly batch: number;
  readonly state: string;
  readonly accuracy: number;
  readonly perplexity: number;
  readonly questions: number;
  /** Whether the stories were generated: the paper has no number for those. */
  readonly generated: boolean;
  readonly remarks: readonly string[];
  readonly perTask: Readonly<Record<number, { readonly accuracy: number; readonly questions: number }>>;
}

/** A mean total reward per episode, and its standard error over episodes on the same graphs. */
export interface CardMean {
  readonly mean: number;
  readonly standardError: number | null;
}

/** The reward an agent's card shows. */
export interface CardReward {
  readonly split: string;
  readonly graphs: number;
  readonly episodes: number;
  readonly length: number;
  readonly rules: object;
  readonly reward: CardMean;
  readonly random: CardMean;
  readonly explorer: CardMean;
  readonly shortestPath: CardMean;
}

/** The names of bAbI's tasks. */
const taskNames: readonly string[] = [
  "single supporting fact",
  "two supporting facts",
  "three supporting facts",
  "two-argument relations",
  "three-argument relations",
  "yes/no questions",
  "counting",
  "lists and sets",
  "simple negation",
  "indefinite knowledge",
  "basic coreference",
  "conjunction",
  "compound coreference",
  "time reasoning",
  "basic deduction",
  "basic induction",
  "positional reasoning",
  "size reasoning",
  "path finding",
  "agent's motivations",
];

/** What a card says of the folder itself. */
export interface CardAbout {
  readonly name: string;
  readonly weights: number;
  /** Updates, or episodes, made when it was saved; null where that is not known. */
  readonly step: number | null;
}

const thousands = (count: number): string => count.toLocaleString("en-US");
const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;

/** Name, what it is, and a table: the score's rows and how the model came about. */
function head(
  result: RunResult<unknown>,
  about: CardAbout,
  unit: "update" | "episode",
  { score, amount }: { readonly score: readonly (readonly [string, string])[]; readonly amount: string },
): string {
  const { command, begun, resumed, machine } = result;
  const changes = changesLine(result.changed ?? {});
  const rows: (readonly [string, string])[] = [
    ...score,
    ["trained by", `\`${command}\``],
    ...(changes ? [["changed", changes] as const] : []),
    ...(begun ? [["begun with", `the weights of ${begun}`] as const] : []),
    ...resumed.map((again) => [`from ${unit} ${thousands(again.step)}`, `\`${again.command}\``] as const),
    [
      `${unit}s`,
      `${thousands(result.steps)} (${amount})${about.step === null ? "" : `, this one after ${thousands(about.step)}`}, ${result.hours.toFixed(1)} hours`,
    ],
    ["seed, commit", `${result.seed}, ${result.commit ?? "unknown"}`],
    [
      "machine",
      `${machine.cpu}, ${machine.cores} cores, ${machine.threads ?? "?"} thread(s), ONNX Runtime ${machine.ort ?? "?"}`,
    ],
    ["date", result.date.slice(0, 10)],
  ];
  return `# ${about.name}

${result.shows}. ${thousands(about.weights)} weights, float32.

| | |
| --- | --- |
${rows.map(([name, value]) => `| ${name} | ${value} |`).join("\n")}
`;
}

/** The card of a model that answers, as Markdown. */
export function modelCard(result: RunResult, score: CardScore, about: CardAbout): string {
  const { training } = result.settings as { training: { batch: number; window: number } };
  const paper = score.generated ? undefined : result.paper;
  const rows = Object.entries(score.perTask).map(
    ([task, { accuracy, questions }]) =>
      `| ${task} | ${taskNames[Number(task) - 1] ?? ""} | ${questions} | ${percent(accuracy)} |`,
  );
  const weak = Object.entries(score.perTask)
    .filter(([, { accuracy }]) => accuracy < 0.9)
    .map(([task, { accuracy }]) => `${task} (${percent(accuracy)})`);
  const top = head(result, about, "update", {
    score: [
      [
        `accuracy, ${score.split}`,
        `**${percent(score.accuracy)}** of ${thousands(score.questions)} questions${paper ? ` (paper: ${percent(paper.accuracy)})` : ""}`,
      ],
      ["perplexity", `${score.perplexity.toFixed(3)}${paper ? ` (paper: ${paper.perplexity})` : ""}`],
      ["protocol", `${score.split} split, batch ${score.batch}, start state: ${score.state}`],
    ],
    amount: `${thousands(result.steps * training.batch * training.window)} tokens`,
  });
  return `${top}
Data: ${score.remarks.length > 0 ? score.remarks.join("; ") : "bAbI v1.2, en-valid-10k"}. bAbI is CC BY 3.0 (Facebook, Inc.).

| task | | questions | accuracy |
| --- | --- | --- | --- |
${rows.join("\n")}

## Limits

It knows bAbI's 178 words and its kinds of sentences; other words are refused, other sentences mean nothing to it.${
    weak.length > 0 ? ` Weak tasks: ${weak.join(", ")}.` : ""
  } It answers with one word, always, also when the story does not say.
`;
}

/** The card of an agent, as Markdown; `paper` is what the authors' agent reached on the same split. */
export function agentCard(
  result: RunResult<unknown>,
  score: CardReward,
  paper: { readonly episodes: number; readonly reward: number } | null,
  about: CardAbout,
): string {
  const { training } = result.settings as { training: { batch: number } };
  const reward = ({ mean, standardError }: CardMean): string =>
    `${mean.toFixed(2)}${standardError === null ? "" : ` ± ${standardError.toFixed(2)}`}`;
  const { split, graphs, episodes, length, rules } = score;
  const top = head(result, about, "episode", {
    score: [
      [
        `mean total reward, ${split} graphs`,
        `**${reward(score.reward)}**${paper ? ` (paper: ${paper.reward.toFixed(2)} after ${thousands(paper.episodes)} episodes)` : ""}`,
      ],
      ["random play", reward(score.random)],
      ["explorer: forgets nothing and plans", reward(score.explorer)],
      ["shortest path, graph known", reward(score.shortestPath)],
      [
        "protocol",
        `${thousands(episodes)} episodes of ${length} steps on each of ${thousands(graphs)} graphs, actions sampled`,
      ],
      [
        "rules",
        Object.entries(rules)
          .map(([name, value]) => `${name} ${value}`)
          .join(", "),
      ],
    ],
    amount: `of ${thousands(training.batch)} agents`,
  });
  return `${top}
± is the standard error over episodes on these graphs.

## Limits

It knows graphs of five locations and three actions, episodes of ${length} steps, and the rules above. Watch it: \`fwm rollout ${about.name}\`.
`;
}
