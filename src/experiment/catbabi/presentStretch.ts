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
