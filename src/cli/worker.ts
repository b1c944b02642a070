/** `fwm worker`: trains members of sweeps that come through a queue. */
import { tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { UsageError } from "../errors.ts";
import { command } from "./command.ts";
import { folder, integer, threadCount } from "./params.ts";
import { queueParam, withoutQueue } from "./queueParam.ts";
import { packageVersion } from "./version.ts";

/** The `worker` command. */
export const workerCommand = command({
  name: "worker",
  summary: "Train members of sweeps that come through a queue.",
  details:
    "Takes one member after another from the Redis of --queue, where fwm sweep --queue puts them, trains each in a " +
    "process of its own and sends the result back. ^C saves, and gives the member back to the queue (docs/sweeps.md).",
  examples: [
    {
      line: "fwm worker --queue redis://:secret@head:6379 --share /shared/runs",
      trial: "fwm worker --help",
    },
    {
      line: "fwm worker --queue rediss://user:secret@head:6379 --threads 2 --idle 600",
      trial: "fwm worker --help",
    },
  ],
  options: {
    queue: queueParam(),
    threads: threadCount(),
    share: folder({
      help: "folder that all workers see: checkpoints of a lost worker are resumed elsewhere",
    }),
    scratch: folder({ help: "where members are trained without --share; default: a temporary folder" }),
    lock: integer({
      min: 1,
      default: 30,
      help: "seconds without a sign of life after which another worker gets the member",
    }),
    idle: integer({ min: 1, help: "end after so many seconds without a member; default: never" }),
  },
  graceful: true,
  run: async ({ options, out, signal }) => {
    if (options.queue === undefined) {
      throw new UsageError("--queue is missing", {
        hint: "give --queue redis://host:6379, or set FWM_QUEUE",
      });
    }
    const { runWorker } = await import("../queue/worker.ts");
    const end = await runWorker({
      ...{ queue: options.queue, packageVersion: packageVersion(), signal, lockSeconds: options.lock },
      command: withoutQueue(["fwm", ...process.argv.slice(2)]),
      ...(options.threads ? { threads: options.threads } : {}),
      ...(options.share ? { share: resolve(options.share) } : {}),
      scratch: resolve(options.scratch ?? join(tmpdir(), `fwm-worker-${userInfo().username}`)),
      ...(options.idle ? { idleSeconds: options.idle } : {}),
      onNote: (text) => out.note(text),
      onWarning: (text) => out.warn(text),
    });
    if (end === "idle") out.note(`no member for ${options.idle} seconds`);
    return end === "idle" ? "finished" : "interrupted";
  },
});
