/** The end of a test run: what was skipped and why, then one plain line of counts. */
import type { Reporter, TestCase, TestModule } from "vitest/node";
import type {} from "./skip.ts";

/** What the closing lines need of a test. */
export type ClosedTest = Pick<TestCase, "result" | "meta">;

const unnamed = "no reason given (a filter of test names, or a skip in the test)";

/**
 * One line for each reason to skip, with the number of tests, and last `N passed, N failed, N skipped`. `broken`
 * counts failures outside tests, such as a file that does not load.
 */
export function closingLines(tests: Iterable<ClosedTest>, broken: number): string[] {
  const counts = { passed: 0, failed: broken, skipped: 0 };
  const reasons = new Map<string, number>();
  for (const test of tests) {
    const result = test.result();
    counts[result.state === "pending" ? "skipped" : result.state]++;
    if (result.state !== "skipped" && result.state !== "pending") continue;
    const note = result.state === "skipped" ? result.note : undefined;
    const reason = (test.meta().skipReason ?? note ?? unnamed).replaceAll(/\s+/g, " ");
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return [
    ...[...reasons].map(([reason, count]) => `skipped ${count}: ${reason}`),
    `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`,
  ];
}

/** Ends every test run with these lines. */
export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    // A file that fails to load or in a hook has no failed test of its own.
    const broken = modules.filter(
      (module) => module.state() === "failed" && [...module.children.allTests("failed")].length === 0,
    ).length;
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const lines = closingLines(tests, broken + errors.length);
    process.on("exit", () => {
      process.stdout.write(`\n${lines.join("\n")}\n`);
    });
  }
}
