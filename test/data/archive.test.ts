/**
 * Archives from anywhere: what is expected comes out, and nothing an archive says can reach the disk, exhaust
 * the memory or pass for something else.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readArchive } from "../../src/data/sources/archive.ts";
import { readCopy } from "../../src/data/sources/folders.ts";
import { DataError } from "../../src/errors.ts";
import { archiveFile, emptyFolder, tarBytes, tinyFiles, tinyFolder, tinyMembers } from "./support/tiny.ts";

const any = (name: string) => name;

describe("an archive", () => {
  test("gives the expected members and skips the others", async () => {
    const path = archiveFile([
      { name: "a/", type: "5" },
      { name: "a/wanted.txt", content: "yes" },
      { name: "a/other.txt", content: "no" },
      { name: "a/empty.txt" },
      { name: "../outside.txt", content: "no" },
    ]);
    const members = await readArchive(path, (name) => /^a\/(wanted|empty)\.txt$/.exec(name)?.[1]);
    expect([...members.keys()]).toEqual(["wanted", "empty"]);
    expect(Buffer.from(members.get("wanted")!).toString()).toBe("yes");
    expect(members.get("empty")!.length).toBe(0);
  });

  test.each([
    ["a symbolic link", [{ name: "x", type: "2", link: "/etc/passwd" }], "x is a SymbolicLink, not a file"],
    ["a hard link", [{ name: "x", type: "1", link: "y" }], "x is a Link, not a file"],
    ["a device", [{ name: "x", type: "3" }], "x is a CharacterDevice, not a file"],
    [
      "a name twice",
      [
        { name: "x", content: "1" },
        { name: "x", content: "2" },
      ],
      "x is there twice",
    ],
  ])("with %s in an expected place is refused", async (_, members, message) => {
    await expect(readArchive(archiveFile(members), any)).rejects.toThrow(message);
  });

  test("is limited in members, in their size and in all", async () => {
    const limits = { unpackedBytes: 1 << 20, memberBytes: 1 << 20, members: 100 };
    const many = Array.from({ length: 6 }, (_, i) => ({ name: `f${i}`, content: "x".repeat(1000) }));
    const path = archiveFile(many);
    await expect(readArchive(path, any, { ...limits, members: 5 })).rejects.toThrow("more than 5 members");
    await expect(readArchive(path, any, { ...limits, memberBytes: 999 })).rejects.toThrow(
      "f0 is larger than 999",
    );
    await expect(readArchive(path, any, { ...limits, unpackedBytes: 3000 })).rejects.toThrow(
      "more than 3000 bytes",
    );
    // A skipped member counts as well: a bomb need not have an expected name.
    await expect(readArchive(path, () => undefined, { ...limits, unpackedBytes: 3000 })).rejects.toThrow(
      "3000",
    );
    expect((await readArchive(path, any, limits)).size).toBe(6);
  });

  test("cut short anywhere, or with flipped bytes, is an error that names it, or still gives the same", async () => {
    const whole = gzipSync(tarBytes(tinyMembers("babi-v1.2/en-valid-10k")));
    const path = join(emptyFolder(), "cut.tar.gz");
    const want = await readArchive(archiveFile(tinyMembers("babi-v1.2/en-valid-10k")), any);
    const attempt = async (bytes: Uint8Array) => {
      writeFileSync(path, bytes);
      const got = await readArchive(path, any).catch((error: unknown) => {
        expect(error).toBeInstanceOf(DataError);
        expect((error as Error).message).toContain(path);
        return want;
      });
      expect(got).toEqual(want);
    };
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), (length) => attempt(whole.subarray(0, length))),
      { numRuns: 40 },
    );
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const bytes = Buffer.from(whole);
        bytes[at] = bytes[at]! ^ flip;
        return attempt(bytes);
      }),
      { numRuns: 60 },
    );
  });

  test.each([
    ["no gzip", Buffer.from("1 Mary moved to the garden.\n")],
    ["compressed text", gzipSync("1 Mary moved to the garden.\n".repeat(100))],
    ["nothing", Buffer.alloc(0)],
    ["compressed twice", gzipSync(gzipSync(tarBytes([{ name: "x", content: "x" }])))],
  ])("that is %s is refused", async (_, bytes) => {
    const path = join(emptyFolder(), "odd.tar.gz");
    writeFileSync(path, bytes);
    await expect(readArchive(path, any)).rejects.toThrow(`${path}: not a whole .tar.gz archive`);
  });
});

describe("a local copy", () => {
  const names = [...tinyFiles().keys()].sort();

  test.each([
    ["an archive", () => archiveFile(tinyMembers("babi-v1.2/en-valid-10k"))],
    ["the official archive's layout", () => archiveFile(tinyMembers("tasks_1-20_v1-2/en-valid-10k"))],
    [
      "a folder with an archive",
      () => dirname(archiveFile(tinyMembers("x/en-valid-10k"), "babi-en-valid-10k.tar.gz")),
    ],
    ["a folder with the variant's folder", () => tinyFolder()],
    ["the variant's folder", () => join(tinyFolder(), "en-valid-10k")],
  ])("is read from %s", async (_, make) => {
    const { files } = await readCopy(make(), "10k");
    expect([...files.keys()].sort()).toEqual(names);
    expect(Buffer.from(files.get("qa1_train.txt")!.bytes).toString()).toBe(tinyFiles().get("qa1_train.txt"));
  });

  test("has only task files of the variant, at their place", async () => {
    const content = "1 Mary moved to the garden.\n";
    const path = archiveFile(
      [
        { name: "a/en-valid-10k/qa1_train.txt", content },
        ...["a/b/en-valid-10k/qa2_train.txt", "../en-valid-10k/../qa2_train.txt", "a/en-valid/qa2_train.txt"],
        ...[
          "a/en-valid-10k/qa21_train.txt",
          "a/en-valid-10k/qa2_train.txt.bak",
          "/abs/en-valid-10k/qa4_train.txt",
        ],
      ].map((member) => (typeof member === "string" ? { name: member, content } : member)),
    );
    expect([...(await readCopy(path, "10k")).files.keys()]).toEqual(["qa1_train.txt"]);
  });

  test("that is not there, empty or of the other variant is named", async () => {
    const empty = emptyFolder();
    await expect(readCopy(join(empty, "none"), "10k")).rejects.toThrow("none: no such file or folder");
    await expect(readCopy(empty, "10k")).rejects.toThrow(`${empty}: no task files`);
    const path = archiveFile(tinyMembers("babi-v1.2/en-valid"));
    await expect(readCopy(path, "10k")).rejects.toThrow("no task files of en-valid-10k/");
    expect(readFileSync(path).length).toBeGreaterThan(0);
  });
});
