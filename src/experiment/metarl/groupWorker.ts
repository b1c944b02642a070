/** The thread behind a group of agents: does one call after the other. */
import { parentPort, workerData } from "node:worker_threads";
import { type GroupPlan, type GroupReply, type GroupRequest, localGroup } from "./groups.ts";

const port = parentPort;
if (port === null) throw new Error("this file runs in a worker thread");

const group = localGroup(workerData as GroupPlan);

function answer(request: Exclude<GroupRequest, { call: "end" }>) {
  return request.call === "rollout"
    ? group.rollout(request.order)
    : group.gradients(request.means, request.rates);
}

async function handle(request: GroupRequest): Promise<void> {
  if (request.call === "end") {
    await group.release();
    port!.close();
    return;
  }
  const reply: GroupReply = await answer(request).then(
    (result) => ({ result }),
    ({ name, message }: Error) => ({ failed: { name, message } }),
  );
  port!.postMessage(reply);
}

port.on("message", (request: GroupRequest) => void handle(request));
