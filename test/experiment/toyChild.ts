/** Trains a toy run in a process of its own, slowly, so that a test can kill it. */
import { requireExperiment } from "../../src/experiment/registry.ts";
import { withSetting } from "../../src/experiment/settings.ts";
import { trainRun } from "../../src/experiment/trainRun.ts";
import { registerToy } from "./toyKind.ts";

registerToy();
const settings = withSetting(requireExperiment("toy-weight").settings, "training.pause", 20);
await trainRun(
  { action: "start", experiment: "toy-weight", settings, folder: process.argv[2]! },
  { env: {}, command: ["toy"], packageVersion: "0", signal: new AbortController().signal },
);
