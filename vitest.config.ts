import { defineConfig } from "vitest/config";
import { ClosingLine } from "./test/support/closingLine.ts";

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
