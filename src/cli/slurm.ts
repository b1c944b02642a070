/** A Slurm array of workers: one worker per task, which saves and is requeued when its time is up. */
import { shellLine } from "./shell.ts";

/** What the script of a sweep's workers depends on. */
export interface SlurmOptions {
  readonly name: string;
  /** Tasks of the array. */
  readonly workers: number;
  /** Absolute path of the folder that all machines see. */
  readonly share: string;
  /** Absolute path, without its ending, of the logs. */
  readonly log: string;
}

/**
 * The script to give to `sbatch`. The queue's address comes by the environment, so that no password is in a file. Slurm
 * sends USR2 two minutes before the time limit and TERM when the task has to make room.
 */
export function slurmScript({ name, workers, share, log }: SlurmOptions): string {
  return `#!/bin/bash
#SBATCH --job-name=fwm-${name}
#SBATCH --array=1-${workers}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --time=12:00:00
#SBATCH --signal=B:USR2@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=${log}-%A_%a.log
: "\${FWM_QUEUE:?export FWM_QUEUE=redis://... before sbatch}"

fwm worker --threads "$SLURM_CPUS_PER_TASK" ${shellLine("--share", share)} --idle 600 &
worker=$!

# The worker saves its member and gives it back to the queue; then this task waits in line again.
requeue() {
  trap '' USR2 TERM
  kill -TERM "$worker"
  wait "$worker"
  scontrol requeue "\${SLURM_ARRAY_JOB_ID}_\${SLURM_ARRAY_TASK_ID}"
  exit 0
}
trap requeue USR2 TERM
wait "$worker"
`;
}
