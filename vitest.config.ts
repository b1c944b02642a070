import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // ONNX Runtime uses every core; two workers keep the wall clock short without thrashing.
    pool: "forks",
    maxWorkers: 2,
  },
});
