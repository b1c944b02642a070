/** `npm run bench -- <what> [--json]`: benchmarks that are not part of the installed program. */
import { benchEngine, describeEngine } from "./engine.ts";

const [what, ...flags] = process.argv.slice(2);
if (what !== "engine" || flags.some((flag) => flag !== "--json")) {
  process.stderr.write(
    "usage: npm run bench -- engine [--json]\n       for training and streaming speed: fwm bench --help\n",
  );
  process.exit(2);
}
const report = await benchEngine();
process.stdout.write(
  `${flags.includes("--json") ? JSON.stringify(report, null, 2) : describeEngine(report)}\n`,
);
process.exit(0);
