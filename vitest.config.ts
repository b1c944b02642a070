import { defineConfig } from "vitest/config";
import type { Reporter, TestModule } from "vitest/node";

/** Ends every test run with one plain line: `N passed, N failed, N skipped`. */
class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    let broken = errors.length;
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state]++;
      // A file that fails to load or in a hook has no failed test of its own.
      if (module.state() === "failed" && ![...module.children.allTests("failed")].length) broken++;
    }
    const failed = counts.failed + broken;
    process.on("exit", () => {
      process.stdout.write(
        `\n${counts.passed} passed, ${failed} failed, ${counts.skipped + counts.pending} skipped\n`,
      );
    });
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // ONNX Runtime uses every core; two workers keep the wall clock short without thrashing.
    pool: "forks",
    maxWorkers: 2,
    reporters: ["default", new ClosingLine()],
  },
});
