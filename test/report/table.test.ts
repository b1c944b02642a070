/** Tables in plain text. */
import { expect, test } from "vitest";
import { table } from "../../src/report/table.ts";

const rows = [
  ["run", "state", "step", "loss"],
  ["base", "finished", 1200, "0.51"],
  ["reads=1", "diverged", 7, "-"],
];

test("columns are as wide as their widest cell", () => {
  expect(table(rows)).toBe(
    "run         state   step  loss\nbase     finished  1,200  0.51\nreads=1  diverged      7     -\n",
  );
});

test("columns that do not fit go on below, beside the first one again", () => {
  expect(table(rows, 29)).toBe(
    "run         state   step\nbase     finished  1,200\nreads=1  diverged      7\n\n" +
      "run      loss\nbase     0.51\nreads=1     -\n",
  );
  // A column that fits nowhere stands alone.
  for (const line of table(rows, 3).split("\n")) expect(line.length).toBeLessThanOrEqual(17);
  expect(table(rows, 30)).toBe(table(rows));
});
