/**
 * Progress of one long piece of work: a bar where a person watches, a line now and then where a log does.
 */
import { columnsOf, type Screen, type Sink } from "./screen.ts";

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
  /** `done` of the total so far; `notes` are shown behind it (loss, speed), the last ones only where there is room. */
  update(done: number, ...notes: readonly string[]): void;
  /** Ends the display; further updates do nothing. */
  stop(): void;
}

/** Starts a display: a bar on `screen` if `bars`, lines otherwise; without a sink nothing is shown. */
export function startProgress(
  screen: Screen,
  sink: Sink | undefined,
  bars: boolean,
  spec: ProgressSpec,
): Progress {
  if (sink === undefined) return { update() {}, stop() {} };
  return bars && spec.total !== undefined ? bar(screen, sink, spec, spec.total) : lines(sink, spec);
}

/** Milliseconds between two pictures of a bar. */
const redrawEvery = 100;

function bar(screen: Screen, sink: Sink, { label, show = String }: ProgressSpec, total: number): Progress {
  let state: BarState = { done: 0, notes: [] };
  let first: { readonly done: number; readonly at: number } | undefined;
  let drawn = Number.NEGATIVE_INFINITY;
  let isStopped = false;
  const draw = (): void => {
    drawn = performance.now();
    screen.draw(sink, barLine(label, state, total, show, columnsOf(sink)));
  };
  draw();
  return {
    update(done, ...notes) {
      if (isStopped) return;
      const now = performance.now();
      first ??= { done, at: now };
      // The first update says where a resumed run begins; the pace is known from the second one on.
      const made = done - first.done;
      const pace = made > 0 ? { secondsLeft: ((now - first.at) / made / 1000) * (total - done) } : {};
      state = { done, notes, ...pace };
      if (now - drawn >= redrawEvery) draw();
    },
    stop() {
      if (isStopped) return;
      isStopped = true;
      if (first) draw();
      else screen.clear();
      screen.keep();
    },
  };
}

interface BarState {
  readonly done: number;
  readonly notes: readonly string[];
  readonly secondsLeft?: number;
}

/** A bar in one line: the bar itself goes first where room is short, then the last notes, the amount, the time. */
export function barLine(
  label: string,
  { done, notes, secondsLeft }: BarState,
  total: number,
  show: (amount: number) => string,
  columns: number,
): string {
  // Two columns stay free for the ^C that a terminal echoes, one because some wrap at a full line.
  const room = columns - 3;
  const share = total > 0 ? Math.min(1, done / total) : 1;
  const percent = `${Math.floor(100 * share)}%`.padStart(4);
  const amount = `${show(done)}/${show(total)}`;
  const eta = secondsLeft === undefined || done >= total ? [] : [`ETA ${duration(secondsLeft)}`];
  const [first = [], ...others] = notes.map((note) => [note]);
  const choices = [
    ...[24, 16, 8].map((width) => [label, barOf(share, width), percent, amount, ...eta, ...notes]),
    ...others.map((_, i) => [label, percent, amount, ...eta, ...notes.slice(0, notes.length - i)]),
    [label, percent, amount, ...eta, ...first],
    [label, percent, ...eta, ...first],
    [label, percent, ...first],
    [label, percent],
  ].map((parts) => parts.join(" "));
  return choices.find((line) => [...line].length <= room) ?? [...choices.at(-1)!].slice(0, room).join("");
}

function barOf(share: number, width: number): string {
  const full = Math.round(share * width);
  return "█".repeat(full) + "░".repeat(width - full);
}

/** Seconds as people read them: 8s, 2m05s, 3h20m, 2d04h. */
function duration(seconds: number): string {
  const two = (amount: number): string => String(Math.floor(amount)).padStart(2, "0");
  const all = Math.round(seconds);
  if (all < 60) return `${all}s`;
  if (all < 3600) return `${Math.floor(all / 60)}m${two(all % 60)}s`;
  if (all < 86_400) return `${Math.floor(all / 3600)}h${two((all % 3600) / 60)}m`;
  return `${Math.floor(all / 86_400)}d${two((all % 86_400) / 3600)}h`;
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
    update(done, ...notes) {
      const amount = total === undefined ? show(done) : `${show(done)}/${show(total)}`;
      const percent = total === undefined ? [] : [`(${Math.floor((100 * done) / total)}%)`];
      latest = [label, amount, ...percent, ...notes].join(" ");
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
