/** A model card: what a shipped model is, how it came about, what it reaches and where it stops. */
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

/** How it came about: the command, what it began with, and each time it was taken up again. */
function history({ command, begun, resumed }: RunResult): string {
  return [
    `| trained by | \`${command}\` |`,
    ...(begun ? [`| begun with | the weights of ${begun} |`] : []),
    ...resumed.map((again) => `| from update ${again.step.toLocaleString("en-US")} | \`${again.command}\` |`),
  ].join("\n");
}

/** The card as Markdown. */
export function modelCard(
  result: RunResult,
  score: CardScore,
  about: { readonly name: string; readonly weights: number; readonly step: number | null },
): string {
  const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;
  const { training } = result.settings as { training: { batch: number; window: number } };
  const tokens = result.steps * training.batch * training.window;
  const paper = score.generated ? undefined : result.paper;
  const rows = Object.entries(score.perTask).map(
    ([task, { accuracy, questions }]) =>
      `| ${task} | ${taskNames[Number(task) - 1] ?? ""} | ${questions} | ${percent(accuracy)} |`,
  );
  const weak = Object.entries(score.perTask)
    .filter(([, { accuracy }]) => accuracy < 0.9)
    .map(([task, { accuracy }]) => `${task} (${percent(accuracy)})`);
  return `# ${about.name}

${result.shows}. ${about.weights.toLocaleString("en-US")} weights, float32.

| | |
| --- | --- |
| accuracy, ${score.split} | **${percent(score.accuracy)}** of ${score.questions.toLocaleString("en-US")} questions${paper ? ` (paper: ${percent(paper.accuracy)})` : ""} |
| perplexity | ${score.perplexity.toFixed(3)}${paper ? ` (paper: ${paper.perplexity})` : ""} |
| protocol | ${score.split} split, batch ${score.batch}, start state: ${score.state} |
${history(result)}
| updates | ${result.steps.toLocaleString("en-US")} (${tokens.toLocaleString("en-US")} tokens)${about.step === null ? "" : `, this one after ${about.step.toLocaleString("en-US")}`}, ${result.hours.toFixed(1)} hours |
| seed, commit | ${result.seed}, ${result.commit ?? "unknown"} |
| machine | ${result.machine.cpu}, ${result.machine.cores} cores, ${result.machine.threads ?? "?"} thread(s), ONNX Runtime ${result.machine.ort ?? "?"} |
| date | ${result.date.slice(0, 10)} |

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
