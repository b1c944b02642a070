/**
 * Every command of `fwm`, in the order of the help. A new command is one file and one line here; what is slow
 * to load it imports inside `run`.
 */
// Registers the experiments, whose names the commands below offer.
import "../../experiments/index.ts";

import { askCommand } from "./ask.ts";
import { benchCommands } from "./bench.ts";
import type { CommandEntry } from "./command.ts";
import { compareCommand } from "./compare.ts";
import { dataCommands } from "./data.ts";
import { evalCommand } from "./eval.ts";
import { exportCommand } from "./export.ts";
import { exportRunsCommand } from "./exportRuns.ts";
import { generateCommand } from "./generate.ts";
import { packageCommand } from "./package.ts";
import { paperCommand } from "./paper.ts";
import type { CommandLine } from "./program.ts";
import { quickstartCommand } from "./quickstart.ts";
import { reportCommand } from "./report.ts";
import { rerunCommand } from "./rerun.ts";
import { rolloutCommand } from "./rollout.ts";
import { runsCommand } from "./runs.ts";
import { studioCommand } from "./studio.ts";
import { sweepCommand } from "./sweep.ts";
import { trainCommand } from "./train.ts";
import { packageVersion } from "./version.ts";
import { workerCommand } from "./worker.ts";

const commands: readonly CommandEntry[] = [
  quickstartCommand,
  dataCommands,
  trainCommand,
  sweepCommand,
  workerCommand,
  evalCommand,
  compareCommand,
  askCommand,
  generateCommand,
  rolloutCommand,
  runsCommand,
  studioCommand,
  reportCommand,
  rerunCommand,
  paperCommand,
  packageCommand,
  exportCommand,
  exportRunsCommand,
  benchCommands,
];

/** The whole program. */
export const fwm: CommandLine = {
  name: "fwm",
  summary:
    "Fast Weight Memory: train, watch, question and deploy a memory that learns associative inference.",
  version: packageVersion(),
  commands,
};
