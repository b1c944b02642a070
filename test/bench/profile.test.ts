/** Where a step's time goes: which events of the runtime's profile count, and under which part. */
import { expect, test } from "vitest";
import { partsOfProfile, sharesOf } from "../../src/bench/profile.ts";

const run = (ts: number) => ({ cat: "Session", name: "model_run", ts, dur: 100 });
const node = (name: string, ts: number, dur: number) => ({
  cat: "Node",
  name: `${name}_kernel_time`,
  ts,
  dur,
});

test("the first run is left out, scopes are parts, and the inside of a loop does not count twice", () => {
  const events = [
    node("lstm/scan_1", 10, 5000),
    run(0),
    run(200),
    node("lstm/scan_1", 210, 7),
    node("loop/lstm/matmul_2", 211, 6),
    node("fwm/write/matmul_3", 220, 20),
    node("layer1/add_4", 230, 1),
    node("layer16/add_5", 240, 2),
    node("add_6", 250, 3),
    { cat: "Node", name: "add_6_fence_before", ts: 251, dur: 50 },
    run(400),
    node("lstm/scan_1", 410, 8),
  ];
  expect(Object.fromEntries(partsOfProfile(events))).toEqual({ lstm: 15, write: 20, layer: 3, other: 3 });
});

test("a session that ran once says nothing", () => {
  expect(partsOfProfile([run(0), node("lstm/scan_1", 10, 5)]).size).toBe(0);
});

test("parts are scaled to the time of a step", () => {
  const totals = new Map([
    ["a", 30],
    ["b", 10],
  ]);
  expect(sharesOf(totals, 200)).toEqual({ a: 150, b: 50 });
});
