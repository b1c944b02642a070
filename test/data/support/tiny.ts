/**
 * A tiny bAbI in the files' own format, and archives of any content, for tests that need no real data.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll } from "vitest";

// Each test file removes the folders it made, by name, and no others.
const made: string[] = [];
afterAll(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A new empty folder, removed when the test file is done. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "fwm-data-test-"));
  made.push(folder);
  return folder;
}

const rooms = ["garden", "office", "kitchen"];

/** Three stories of two questions each of task 1, and three of one question of task 15, per split. */
export function tinyFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const split of ["train", "valid", "test"]) {
    const first = rooms.map(
      (room, i) =>
        `1 Mary moved to the ${room}.\n2 Where is Mary? \t${room}\t1\n` +
        `3 John went back to the ${rooms[(i + 1) % 3]}.\n4 Where is John? \t${rooms[(i + 1) % 3]}\t3\n`,
    );
    const fifteenth = ["cats", "wolves", "mice"].map(
      (kind) =>
        `1 Gertrude is a sheep.\n2 Sheep are afraid of ${kind}.\n3 What is gertrude afraid of?\t${
          { cats: "cat", wolves: "wolf", mice: "mouse" }[kind]
        }\t1 2\n`,
    );
    files.set(`qa1_${split}.txt`, first.join(""));
    files.set(`qa15_${split}.txt`, fifteenth.join(""));
  }
  return files;
}

/** The tiny files as both variants under a new folder; `change` may alter them first. */
export function tinyFolder(change: (files: Map<string, string | Uint8Array>) => void = () => {}): string {
  const folder = emptyFolder();
  for (const variant of ["en-valid-10k", "en-valid"]) {
    const files = new Map<string, string | Uint8Array>(tinyFiles());
    change(files);
    mkdirSync(join(folder, variant));
    for (const [name, content] of files) writeFileSync(join(folder, variant, name), content);
  }
  return folder;
}

/** A member of a tar archive; `type` "0" is a file, "2" a symbolic link, "5" a folder. */
export interface TarMember {
  readonly name: string;
  readonly content?: string | Uint8Array;
  readonly type?: string;
  readonly link?: string;
  /** The size its header announces, if not the true one. */
  readonly size?: number;
}

/** An uncompressed ustar archive. */
export function tarBytes(members: readonly TarMember[]): Buffer {
  const blocks = members.flatMap(({ name, content = "", type = "0", link = "", size }) => {
    const body = Buffer.from(content);
    const head = Buffer.alloc(512);
    head.write(name, 0, 100);
    head.write("0000644\0", 100);
    head.write("0000000\0", 108);
    head.write("0000000\0", 116);
    head.write((size ?? body.length).toString(8).padStart(11, "0") + "\0", 124);
    head.write("00000000000\0", 136);
    head.write("        ", 148);
    head.write(type, 156);
    head.write(link, 157, 100);
    head.write("ustar\0" + "00", 257);
    const sum = head.reduce((total, byte) => total + byte, 0);
    head.write(sum.toString(8).padStart(6, "0") + "\0 ", 148);
    return [head, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

/** A .tar.gz file in a new folder. */
export function archiveFile(members: readonly TarMember[], name = "babi.tar.gz"): string {
  const path = join(emptyFolder(), name);
  writeFileSync(path, gzipSync(tarBytes(members)));
  return path;
}

/** The tiny files as members of an archive under `folder`. */
export function tinyMembers(folder: string): TarMember[] {
  return [...tinyFiles()].map(([name, content]) => ({ name: `${folder}/${name}`, content }));
}
