/**
 * Progress of one long piece of work: a bar where a person watches, a line now and then where a log does.
 */
import { Presets, SingleBar } from "cli-progress";
import type { Sink } from "./output.ts";

/** What is being done, and how its amounts read. */
export interface ProgressSpec {
  readonly label: string;
  /** The amount that means done; unknown when left out. */
  readonly total?: number;
  /** How an amount is shown; the plain number by default. */
  readonly show?: (amount: number) => string;
  /** Milliseconds between plain lines. */
  readonly every?: number;
}

/** A running progress display. */
export interface Progress {
  /** `done` of the total so far; `note` is shown behind it (loss, speed). */
  update(done: number, note?: string): void;
  /** Ends the display; further updates do nothing. */
  stop(): void;
}

/** Starts a display on `sink`: a bar if `bars`, lines otherwise; without a sink nothing is shown. */
export function startProgress(sink: Sink | undefined, bars: boolean, spec: ProgressSpec): Progress {
  if (sink === undefined) return { update() {}, stop() {} };
  return bars && spec.total !== undefined ? bar(sink, spec, spec.total) : lines(sink, spec);
}

function bar(sink: Sink, { label, show = String }: ProgressSpec, total: number): Progress {
  const display = new SingleBar(
    {
      format: `${label} {bar} {percentage}% {shown} ETA {eta_formatted} {note}`,
      stream: sink as NodeJS.WriteStream,
      hideCursor: true,
      gracefulExit: false,
      barsize: 24,
    },
    Presets.shades_classic,
  );
  const shown = (done: number) => `${show(done)}/${show(total)}`;
  display.start(total, 0, { shown: shown(0), note: "" });
  return {
    update: (done, note = "") => display.update(done, { shown: shown(done), note }),
    stop: () => display.stop(),
  };
}

function lines(sink: Sink, { label, total, show = String, every = 5000 }: ProgressSpec): Progress {
  let last = performance.now();
  let latest: string | undefined;
  let written: string | undefined;
  const write = () => {
    if (latest !== undefined && latest !== written) sink.write(latest + "\n");
    written = latest;
  };
  return {
    update(done, note) {
      const amount = total === undefined ? show(done) : `${show(done)}/${show(total)}`;
      const percent = total === undefined ? "" : ` (${Math.floor((100 * done) / total)}%)`;
      latest = `${label} ${amount}${percent}${note ? ` ${note}` : ""}`;
      if (performance.now() - last < every) return;
      last = performance.now();
      write();
    },
    stop() {
      write();
      latest = undefined;
    },
  };
}
