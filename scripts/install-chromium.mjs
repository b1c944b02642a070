/**
 * Finds Chromium for the browser tests and installs Debian's package where that is possible.
 *
 *   node scripts/install-chromium.mjs          prints the path of the program; installs it first if need be
 *   node scripts/install-chromium.mjs --find   only looks
 *
 * CHROMIUM_PATH names the program; otherwise it is looked for where Debian puts it. Nothing is downloaded but
 * by apt-get, which needs root. When there is no Chromium the reason goes to standard error and the exit code is 1.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";

const usual = "/usr/bin/chromium";
/** Both calls of apt-get together may take this long, in milliseconds. */
const patience = Number(process.env.CHROMIUM_INSTALL_TIMEOUT_MS ?? 300_000);

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function find() {
  const given = process.env.CHROMIUM_PATH;
  if (given) return isProgram(given) ? given : fail(`CHROMIUM_PATH is ${given}, which is not a program`);
  return isProgram(usual) ? usual : undefined;
}

function fail(reason) {
  console.error(reason);
  process.exit(1);
}

function install() {
  if (process.platform !== "linux" || !isProgram("/usr/bin/apt-get")) {
    fail("no Chromium here, and no apt-get to install it with: set CHROMIUM_PATH");
  }
  if (process.getuid() !== 0)
    fail("no Chromium here: run `apt-get install chromium` as root, or set CHROMIUM_PATH");
  const end = Date.now() + patience;
  for (const words of [["update"], ["install", "--yes", "--no-install-recommends", "chromium"]]) {
    // Another apt-get at work is waited for; nobody is asked anything.
    const { status, signal, stderr } = spawnSync(
      "apt-get",
      ["-qq", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::http::Timeout=30", ...words],
      {
        env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
        timeout: Math.max(1, end - Date.now()),
        encoding: "utf8",
      },
    );
    if (status === 0) continue;
    const why = signal ? `stopped after ${patience / 1000} s` : (stderr.trim().split("\n").at(-1) ?? "");
    fail(`no Chromium here, and apt-get ${words[0]} failed: ${why || `exit code ${status}`}`);
  }
}

let path = find();
if (!path && !process.argv.includes("--find")) {
  install();
  path = find();
}
console.log(path ?? fail(`no Chromium at ${usual}: set CHROMIUM_PATH`));
