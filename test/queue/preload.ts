/** Loaded before the program in tests of the queue: the toy kind, with members that can crash their process. */

import type { Kind } from "../../src/experiment/kind.ts";
import { registerKind } from "../../src/experiment/registry.ts";
import { registerToy, toy } from "../experiment/toyKind.ts";

registerToy();
const kind = toy as unknown as Kind;
registerKind({
  ...kind,
  async open(settings, context) {
    const session = await kind.open(settings, context);
    const isFatal = (settings.task as unknown as { target: number }).target === -1;
    return {
      ...session,
      async step(step) {
        if (isFatal && step === 7) {
          process.stderr.write("out of luck at step 7\n");
          process.kill(process.pid, "SIGKILL");
        }
        return session.step(step);
      },
    };
  },
});
