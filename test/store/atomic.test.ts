/** Atomic writes on disks that are full, read-only, forbidden or dying. */
import * as promises from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { AppendFile } from "../../src/store/append.ts";
import {
  type FileSystem,
  isTemporary,
  removeAtomically,
  removeLeftovers,
  StorageError,
  writeFileAtomically,
  writeFolderAtomically,
} from "../../src/store/atomic.ts";
import { skipUnless } from "../support/skip.ts";
import { type Operation, rejection, scratch, systemError, watchedDisk } from "./helpers.ts";

const files = new Map([
  ["a.txt", new TextEncoder().encode("first")],
  ["b.txt", new TextEncoder().encode("second")],
]);

/** The disk's calls during a write, by name. */
async function operationsOf(write: (fs: FileSystem) => Promise<void>): Promise<string[]> {
  const names: string[] = [];
  await write(watchedDisk(([name]) => names.push(name)));
  return names;
}

describe("a whole write", () => {
  it("replaces a file and leaves nothing else", async () => {
    const folder = await scratch();
    await writeFileAtomically(join(folder, "x"), "old");
    await writeFileAtomically(join(folder, "x"), "new");
    expect(await promises.readFile(join(folder, "x"), "utf8")).toBe("new");
    expect(await promises.readdir(folder)).toEqual(["x"]);
  });

  it("forces the file to the disk before the rename, and the folder after it", async () => {
    const folder = await scratch();
    const operations = await operationsOf((fs) => writeFileAtomically(join(folder, "x"), "new", fs));
    expect(operations).toEqual(["open", "write", "sync", "rename", "open", "sync"]);
  });

  it("does so for every file of a folder and for the folder itself", async () => {
    const folder = await scratch();
    const operations = await operationsOf((fs) => writeFolderAtomically(join(folder, "y"), files, fs));
    const file = ["open", "write", "sync"];
    const directory = ["open", "sync"];
    expect(operations).toEqual(["mkdir", ...file, ...file, ...directory, "rename", ...directory]);
    expect(await promises.readFile(join(folder, "y", "b.txt"), "utf8")).toBe("second");
  });

  it("removes a folder by renaming it away first", async () => {
    const folder = await scratch();
    await writeFolderAtomically(join(folder, "y"), files);
    const operations = await operationsOf((fs) => removeAtomically(join(folder, "y"), fs));
    expect(operations).toEqual(["rename", "open", "sync", "rm"]);
    expect(await promises.readdir(folder)).toEqual([]);
  });
});

describe("a failing disk", () => {
  const faults = [
    ["ENOSPC", /the disk is full[\s\S]*free some space/],
    ["EDQUOT", /quota/],
    ["EROFS", /read-only[\s\S]*choose a folder/],
    ["EPERM", /not permitted[\s\S]*choose a folder/],
    ["EACCES", /permission denied/],
    ["EIO", /input\/output error/],
    ["EUNKNOWN", /EUNKNOWN: simulated/],
  ] as const;

  it.each(faults)("%s at any call is reported, and nothing half-written stays", async (code, message) => {
    const folder = await scratch();
    const target = join(folder, "y");
    const total = (await operationsOf((fs) => writeFolderAtomically(target, files, fs))).length;
    await promises.rm(target, { recursive: true });
    for (let failing = 0; failing < total; failing++) {
      let count = 0;
      const fs = watchedDisk(() => {
        if (count++ === failing) throw systemError(code);
      });
      const error = await rejection(writeFolderAtomically(target, files, fs));
      expect(error).toBeInstanceOf(StorageError);
      expect((error as StorageError).code).toBe(code);
      expect(error.message).toMatch(message);
      expect(error.message).toContain(target);
      // After the rename the folder is there and whole; only its durability is in doubt.
      expect(await promises.readdir(folder)).toEqual(failing < total - 2 ? [] : ["y"]);
      if (failing >= total - 2) await promises.rm(target, { recursive: true });
    }
  });

  it("that fills up in the middle of a file keeps the old file", async () => {
    const folder = await scratch();
    await writeFileAtomically(join(folder, "x"), "old");
    const fs = watchedDisk(([name]) => {
      if (name === "write") throw systemError("ENOSPC");
    });
    expect((await rejection(writeFileAtomically(join(folder, "x"), "brand new", fs))).message).toMatch(
      /full/,
    );
    expect(await promises.readFile(join(folder, "x"), "utf8")).toBe("old");
    expect(await promises.readdir(folder)).toEqual(["x"]);
  });

  it("that refuses even the cleaning up reports the first error, and the leftover is known", async () => {
    const folder = await scratch();
    const fs = watchedDisk(([name]) => {
      if (name === "write") throw systemError("ENOSPC");
      if (name === "rm") throw systemError("EROFS");
    });
    const error = await rejection(writeFileAtomically(join(folder, "x"), "new", fs));
    expect((error as StorageError).code).toBe("ENOSPC");
    const left = await promises.readdir(folder);
    expect(left.map(isTemporary)).toEqual([true]);
    expect(await removeLeftovers(folder)).toEqual(left);
    expect(await promises.readdir(folder)).toEqual([]);
  });

  it(
    "is believed when the kernel itself says so (/dev/full)",
    skipUnless(process.platform === "linux", "it needs Linux"),
    async () => {
      const folder = await scratch();
      const full = {
        ...promises,
        open: (path: string, flags: string) =>
          promises.open(flags === "r" ? path : "/dev/full", flags.replace("x", "")),
      } as FileSystem;
      const error = await rejection(writeFileAtomically(join(folder, "x"), "new", full));
      expect((error as StorageError).code).toBe("ENOSPC");
      expect(await promises.readdir(folder)).toEqual([]);
    },
  );

  it(
    "is believed where nobody may write (/proc)",
    skipUnless(process.platform === "linux", "it needs Linux"),
    async () => {
      const error = await rejection(writeFolderAtomically("/proc/self/fwm", files));
      expect(error).toBeInstanceOf(StorageError);
      expect(error.message).toContain("/proc/self/fwm");
    },
  );
});

describe("appending", () => {
  it("to a full disk fails loudly", skipUnless(process.platform === "linux", "it needs Linux"), () => {
    const file = new AppendFile("/dev/full");
    expect(() => file.append(Uint8Array.of(1))).toThrow(/cannot append to full: the disk is full/);
  });

  it("continues a file, and makes a new one only if it is new", async () => {
    const path = join(await scratch(), "log");
    for (const byte of [1, 2]) {
      const file = new AppendFile(path);
      file.append(Uint8Array.of(byte, byte));
      file.close();
      file.close();
    }
    expect([...(await promises.readFile(path))]).toEqual([1, 1, 2, 2]);
    expect(() => new AppendFile(path, { create: true })).toThrow(StorageError);
  });
});

describe("leftovers", () => {
  it("are cleared away, and nothing else is", async () => {
    const folder = await scratch();
    await promises.mkdir(join(folder, ".fwm-tmp-1-0-checkpoint-5", "deep"), { recursive: true });
    await promises.writeFile(join(folder, ".fwm-tmp-1-1-run.json"), "");
    await promises.writeFile(join(folder, ".hidden"), "");
    await promises.writeFile(join(folder, "run.json"), "");
    expect((await removeLeftovers(folder)).length).toBe(2);
    expect((await promises.readdir(folder)).sort()).toEqual([".hidden", "run.json"]);
  });

  it("of writes under way have names that tell them apart", async () => {
    const folder = await scratch();
    const seen: Operation[] = [];
    const fs = watchedDisk((operation) => seen.push(operation));
    await Promise.all([1, 2, 3].map((i) => writeFileAtomically(join(folder, "x"), String(i), fs)));
    const temporary = seen.filter(([name, path]) => name === "write" && path.includes(".fwm-tmp-"));
    expect(new Set(temporary.map(([, path]) => path)).size).toBe(3);
  });
});
