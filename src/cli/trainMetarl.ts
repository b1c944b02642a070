/** What `fwm train` shows of a meta-reinforcement-learning experiment. */
import { resolve } from "node:path";
import { type MetarlContext, trainMetarl } from "../experiment/metarl.ts";
import { type MetarlSettings, metarlSchema } from "../experiment/metarlSettings.ts";
import { type RunPlanFor, settingsOf } from "../experiment/openRun.ts";
import type { A2cEnd } from "../train/a2c.ts";
import type { Output } from "./output.ts";
import { thousands } from "./table.ts";

/** Trains by plan, showing progress and, at the end, the result. */
export async function runMetarl(
  out: Output,
  plan: RunPlanFor<MetarlSettings>,
  context: Omit<MetarlContext, "watch">,
): Promise<void> {
  const { training } = await settingsOf(plan, metarlSchema);
  const progress = out.progress({
    label: "training",
    total: training.steps,
    show: thousands,
    every: 10_000,
  });
  let told = false;
  const tell = () => {
    if (!told) out.note(`run folder ${resolve(plan.folder)}`);
    told = true;
  };
  try {
    const end = await trainMetarl(plan, {
      ...context,
      watch: {
        onEpisode(episode, reward, episodesPerSecond) {
          tell();
          progress.update(
            episode + 1,
            `reward ${reward.toFixed(2)} ${episodesPerSecond.toFixed(1)} episodes/s`,
          );
        },
        onTest(step, { train, test }) {
          tell();
          const trained = train === null ? "" : `train reward ${train.toFixed(2)} `;
          out.note(`episode ${thousands(step)}: ${trained}test reward ${test.toFixed(2)}`);
        },
      },
    });
    progress.stop();
    report(out, end);
  } finally {
    progress.stop();
  }
}

function report(out: Output, { folder, step, reason, progress }: A2cEnd & { folder: string }): void {
  const { reward, bestReward, bestStep } = progress;
  out.result({ folder, step, reason, reward, bestReward, bestStep }, () => {
    const lines = [`${reason} after ${thousands(step)} episodes; ${folder}`];
    if (bestReward !== null) {
      lines.push(`best mean training reward ${bestReward.toFixed(2)} at episode ${thousands(bestStep!)}`);
    }
    if (reason === "interrupted") lines.push(`go on with: fwm train --resume ${folder}`);
    else lines.push(`next: fwm rollout ${folder}`);
    return lines.join("\n");
  });
}
