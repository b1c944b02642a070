/**
 * The built program, as it is installed: `node dist/src/cli/main.js`.
 */
import { execFile, execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { emptyFolder, tinyFolder } from "../data/support/tiny.ts";
import { skipUnless } from "../support/skip.ts";

const root = join(import.meta.dirname, "../..");
const binary = join(root, "dist/src/cli/main.js");
const isBuilt = existsSync(binary);
const noBuild = "dist/ is not there; run `npm run build`";

function fwm(argv: string[], env: Record<string, string> = {}) {
  return new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    const child = execFile(
      process.execPath,
      [binary, ...argv],
      { env: { PATH: process.env.PATH, ...env } },
      (_, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

describe("the command of the package", () => {
  const { bin, files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    bin: { fwm: string };
    files: string[];
  };
  const command = join(root, bin.fwm);
  const isClone = existsSync(join(root, ".git"));

  test(
    "is there before the build, may be executed, and is shipped",
    skipUnless(isClone, "no clone of git"),
    () => {
      const tracked = execFileSync("git", ["ls-files", "--stage", bin.fwm], { cwd: root, encoding: "utf8" });
      expect(tracked).toMatch(/^100755 /);
      expect(files).toContain(dirname(bin.fwm));
    },
  );

  test("says in one line what to run where there is no build", async () => {
    const copy = join(emptyFolder(), bin.fwm);
    mkdirSync(dirname(copy), { recursive: true });
    cpSync(command, copy);
    writeFileSync(join(dirname(dirname(copy)), "package.json"), '{ "type": "module" }');
    const error = await promisify(execFile)(copy, ["--version"]).catch((failure: unknown) => failure);
    expect(error).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^error: .*npm run build\n$/) as string,
    });
  });

  test("runs the build", skipUnless(isBuilt, noBuild), async () => {
    const { stdout } = await promisify(execFile)(command, ["--version"]);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

describe("the built program", skipUnless(isBuilt, noBuild), () => {
  test("prints its version and help", async () => {
    expect(await fwm(["--version"])).toEqual({ code: 0, stdout: "0.1.0\n", stderr: "" });
    const { code, stdout } = await fwm(["data", "prepare", "catbabi", "--help"]);
    expect([code, stdout.includes("Examples:")]).toEqual([0, true]);
  });

  test("goes from files to counts", async () => {
    const env = { FWM_DATA: emptyFolder() };
    const prepared = await fwm(
      ["data", "prepare", "catbabi", "--from", tinyFolder(), "--allow-missing"],
      env,
    );
    expect(prepared.code).toBe(0);
    const { code, stdout } = await fwm(["data", "stats", "catbabi", "--json"], env);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ splits: { test: { stories: 4, questions: 6 } } });
  });

  test("ends a misuse with 2 and bad data with 3", async () => {
    expect((await fwm(["data", "prepar"])).code).toBe(2);
    expect((await fwm(["data", "stats", "catbabi", "--data", emptyFolder()])).code).toBe(3);
  });

  test.each([
    ["graphs", ["--seeds", "500"]],
    ["generate", ["--stories", "500000", "--task", "1", "--out", "new"]],
  ])("^C ends `data %s` at once, and nothing is left", async (name, more) => {
    const cwd = emptyFolder();
    const child = spawn(process.execPath, [binary, "data", name, ...more], { cwd, stdio: "ignore" });
    const ended = new Promise<unknown>((resolve) =>
      child.on("close", (code, signal) => resolve(code ?? signal)),
    );
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(child.exitCode).toBeNull();
    const pressed = performance.now();
    child.kill("SIGINT");
    // A shell says 130 of a program that SIGINT ended.
    expect(await ended).toBe("SIGINT");
    expect(performance.now() - pressed).toBeLessThan(1000);
    expect(readdirSync(cwd, { recursive: true }).filter((file) => file !== "new")).toEqual([]);
  });

  test("is quiet when its reader closes the pipe", async () => {
    const child = spawn(process.execPath, [binary, "--help"], { stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.destroy();
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
    expect([code, stderr]).toEqual([0, ""]);
  });
});
