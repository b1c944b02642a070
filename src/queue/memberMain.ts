/**
 * The child process that trains one member for a worker. It gets its order as a message, tells how far it is, and ends.
 * When the worker is gone the channel closes, and the child saves and stops: another worker may have the member by then.
 */
import "../../experiments/index.ts";
import { FwmError } from "../errors.ts";
import type { BaseSettings } from "../experiment/kind.ts";
import { memberRecord } from "../experiment/sweep/members.ts";
import { trainMember } from "../experiment/sweep/trainMember.ts";
import { effectiveState } from "../store/runRecord.ts";

/** What the worker asks for. */
export interface MemberOrder {
  readonly folder: string;
  readonly experiment: string;
  readonly settings: BaseSettings;
  readonly steps: number;
  readonly pauses: boolean;
  readonly threads?: number;
  readonly command: readonly string[];
  readonly packageVersion: string;
}

/** What the child says. */
export type MemberMessage =
  | { readonly kind: "step"; readonly step: number }
  | { readonly kind: "warning"; readonly text: string }
  /** The member has come to its end, was stopped, is trained by another process, or could not be trained. */
  | { readonly kind: "end" | "stopped" | "busy" }
  | { readonly kind: "failed"; readonly message: string };

const controller = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => controller.abort());
process.on("disconnect", () => controller.abort());

function tell(message: MemberMessage): Promise<void> {
  return new Promise((resolve) => {
    // Nobody listens any more when the worker is gone.
    if (!process.connected) resolve();
    else process.send!(message, () => resolve());
  });
}

async function work({
  steps,
  pauses,
  threads,
  command,
  packageVersion,
  ...member
}: MemberOrder): Promise<MemberMessage> {
  const standing = async (): Promise<string | undefined> => {
    const record = await memberRecord(member);
    return record && effectiveState(record);
  };
  const before = await standing();
  if (before === "finished" || before === "diverged") return { kind: "end" };
  if (before === "running") return { kind: "busy" };
  let told = 0;
  try {
    const { state, step } = await trainMember(
      member,
      { steps, pauses },
      {
        ...{ env: process.env, signal: controller.signal, command, packageVersion },
        ...(threads ? { threads } : {}),
        onWarning: (text) => void tell({ kind: "warning", text }),
        callbacks: {
          onStep(done) {
            if (Date.now() - told < 1000) return;
            told = Date.now();
            void tell({ kind: "step", step: done });
          },
        },
      },
    );
    return { kind: state === "interrupted" && !(pauses && step >= steps) ? "stopped" : "end" };
  } catch (error) {
    // Two began at once, and the other one was quicker.
    if ((await standing().catch(() => undefined)) === "running") return { kind: "busy" };
    if (error instanceof FwmError) return { kind: "failed", message: error.message };
    throw error;
  }
}

process.once("message", (order: MemberOrder) => {
  void work(order)
    .then(tell)
    // A worker that is gone is not waited for.
    .then(() => process.exit(0));
});
