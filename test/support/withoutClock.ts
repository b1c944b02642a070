/** Results compared bit for bit: what the clock decides is left out, wherever it stands. */
const ofTheClock = new Set(["date", "hours", "processorHours", "seconds", "processorSeconds", "speed"]);

/** A plain value without what the clock, or one of some further names, decides. */
export function withoutClock<T>(value: T, further: readonly string[] = []): T {
  return JSON.parse(JSON.stringify(value), (key, member: unknown) =>
    ofTheClock.has(key) || further.includes(key) ? undefined : member,
  ) as T;
}
