/** How a score on the stretch suite is presented. */
import { percent, table, thousands } from "../../report/table.ts";
import type { StretchEvaluation, StretchPoint } from "./options.ts";

/** The score as a table, a part for each axis; 80 columns hold it. */
export function showStretch({ model, step, axes, points, ...all }: StretchEvaluation): string {
  const cells = ({
    questions,
    accuracy,
    confidence,
    calibrationError,
  }: Omit<StretchPoint, "axis" | "at">): (string | number)[] => [
    questions,
    percent(accuracy),
    percent(confidence),
    percent(calibrationError),
  ];
  const rows = axes.flatMap(({ name, label }) =>
    points
      .filter(({ axis }) => axis === name)
      .map((point, i) => [i === 0 ? label : "", point.at, ...cells(point)]),
  );
  const lines = table([
    ["", "", "questions", "accuracy", "confidence", "ECE"],
    ...rows,
    ["all", "", ...cells(all)],
  ]);
  return (
    `${model}${step === null ? "" : `, after ${thousands(step)} steps`}\n` +
    `stretch suite, version ${all.version}, ${all.batch} streams, starting from zeros\n\n${lines}\n` +
    "confidence: mean probability of its answers; ECE: expected calibration error\n"
  );
}

/** The score in a line. */
export function showStretchLine({ accuracy, questions, confidence }: StretchEvaluation): string {
  return (
    `stretch suite: accuracy ${percent(accuracy)} of ${thousands(questions)} questions, ` +
    `mean confidence ${percent(confidence)}`
  );
}

/** From here on an answer is taken to be reliable. */
const reliable = 0.9;

/** A card's section: how far the model holds beyond bAbI, in plain words and as a table. */
export function stretchSection({ axes, points, accuracy, questions }: StretchEvaluation): string {
  const along = axes.map(({ name, label }) => ({ label, on: points.filter(({ axis }) => axis === name) }));
  const limits = along.flatMap(({ label, on }) => {
    const fails = on.find((point) => point.accuracy < reliable);
    if (!fails) return [];
    const { confidence } = fails;
    return [
      `- ${label}, ${fails.at}: right ${percent(fails.accuracy)} of the time, and ${percent(confidence)} sure of it`,
    ];
  });
  const advice =
    limits.length > 0
      ? `Do not rely on it beyond these points, the first of each kind below 90 %:\n\n${limits.join("\n")}`
      : "No point is below 90 %; harder questions than these were not asked.";
  return `
## Beyond bAbI

On the stretch suite it answers ${percent(accuracy)} of ${thousands(questions)} questions. ${advice}

| | | accuracy | confidence |
| --- | --- | --- | --- |
${along
  .flatMap(({ label, on }) =>
    on.map(
      (point, i) =>
        `| ${i === 0 ? label : ""} | ${point.at} | ${percent(point.accuracy)} | ${percent(point.confidence)} |`,
    ),
  )
  .join("\n")}
`;
}
