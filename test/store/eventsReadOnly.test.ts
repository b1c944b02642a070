/** Event files on a read-only file system, where Node's recursive mkdir speaks of a missing folder. */
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { EventWriter } from "../../src/store/events.ts";
import { scratch } from "./helpers.ts";

vi.mock("node:fs", async (original) => ({
  ...(await original<typeof import("node:fs")>()),
  mkdirSync: (path: string, options?: { recursive?: boolean }) => {
    const code = options?.recursive ? "ENOENT" : "EROFS";
    throw Object.assign(new Error(`${code}: mkdir '${path}'`), { code, syscall: "mkdir", path });
  },
}));

it("a read-only file system is named as such", async () => {
  const folder = join(await scratch(), "train");
  expect(() => new EventWriter(folder)).toThrow(expect.objectContaining({ code: "EROFS" }));
});
