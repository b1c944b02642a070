/**
 * Finds Chromium for the browser tests and installs Debian's package where that is possible.
 *
 *   node scripts/install-chromium.mjs          prints the path of the program; installs it first if need be
 *   node scripts/install-chromium.mjs --find   only looks
 *
 * CHROMIUM_PATH names the program; otherwise it is looked for where Debian puts it. Nothing is downloaded but
 * by apt-get, which needs root. When there is no Chromium the reason goes to standard error and the exit code is 1.
 */
import { provide } from "./debianProgram.mjs";

provide({ title: "Chromium", debian: "chromium", usual: "/usr/bin/chromium", variable: "CHROMIUM_PATH" });
