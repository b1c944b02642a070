/**
 * Finds a program that tests need and installs Debian's package where that is possible: what install-chromium.mjs and
 * install-redis.mjs have in common. Nothing is downloaded but by apt-get, which needs root. Where the program is not to
 * be had the reason goes to standard error and the exit code is 1.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function fail(reason) {
  console.error(reason);
  process.exit(1);
}

/**
 * Prints the path of a program; installs it first if need be, unless the command line says `--find`.
 *
 *   title      what messages call it
 *   debian     name of Debian's package
 *   usual      where Debian puts the program
 *   variable   environment variable that names it; with `_INSTALL_TIMEOUT_MS` in the place of `_PATH`, how long both
 *              calls of apt-get together may take
 */
export function provide({ title, debian, usual, variable }) {
  const patience = Number(process.env[variable.replace(/_PATH$/, "_INSTALL_TIMEOUT_MS")] ?? 300_000);
  let path = find();
  if (!path && !process.argv.includes("--find")) {
    install();
    path = find();
  }
  console.log(path ?? fail(`no ${title} at ${usual}: set ${variable}`));

  function find() {
    const given = process.env[variable];
    if (given) return isProgram(given) ? given : fail(`${variable} is ${given}, which is not a program`);
    return isProgram(usual) ? usual : undefined;
  }

  function install() {
    if (process.platform !== "linux" || !isProgram("/usr/bin/apt-get")) {
      fail(`no ${title} here, and no apt-get to install it with: set ${variable}`);
    }
    if (process.getuid() !== 0)
      fail(`no ${title} here: run \`apt-get install ${debian}\` as root, or set ${variable}`);
    const end = Date.now() + patience;
    for (const words of [["update"], ["install", "--yes", "--no-install-recommends", debian]]) {
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
      fail(`no ${title} here, and apt-get ${words[0]} failed: ${why || `exit code ${status}`}`);
    }
  }
}
