/**
 * Runs the tests on every version of Node that the package supports.
 *
 *   node scripts/test-nodes.mjs                     all versions, all tests
 *   node scripts/test-nodes.mjs 24 -- test/cli      one version, some tests (what follows -- goes to Vitest)
 *
 * The programs are the npm packages node-<platform>-<architecture>, kept in node_modules/.cache/nodes (or
 * FWM_NODES), and fetched with npm where they are missing. Exits with 1 if any version fails.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The oldest that `engines` allows, and the two long-term versions after it. */
const supported = ["20.19", "22", "24"];

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = process.env.FWM_NODES ?? join(root, "node_modules/.cache/nodes");
const words = process.argv.slice(2);
const split = words.includes("--") ? words.indexOf("--") : words.length;
const versions = split > 0 ? words.slice(0, split) : supported;
const tests = words.slice(split + 1);

function fail(reason) {
  console.error(reason);
  process.exit(1);
}

/** The program of a version, fetched if need be. */
function nodeOf(version) {
  const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  const folder = join(cache, version);
  const program = join(
    folder,
    "node_modules",
    name,
    "bin",
    process.platform === "win32" ? "node.exe" : "node",
  );
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), "{}\n");
  const fetch = ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", `${name}@${version}`];
  const { status } = spawnSync("npm", fetch, {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
    shell: process.platform === "win32",
  });
  if (status !== 0 || !existsSync(program)) fail(`cannot fetch ${name}@${version} with npm`);
  return program;
}

const failed = [];
for (const version of versions) {
  if (!/^\d+(\.\d+)*$/.test(version)) fail(`${version}: expected a version of Node, such as 22`);
  const program = nodeOf(version);
  // Tests that start `node` by name get this version too.
  const env = { ...process.env, PATH: `${dirname(program)}${delimiter}${process.env.PATH}` };
  const run = (...given) => spawnSync(program, given, { cwd: root, env, stdio: "inherit" }).status;
  console.log(`Node ${spawnSync(program, ["--version"], { encoding: "utf8" }).stdout.trim()}`);
  const built = run("node_modules/@typescript/native/bin/tsc", "-p", "tsconfig.build.json");
  if (built !== 0 || run("node_modules/vitest/vitest.mjs", "run", ...tests) !== 0) failed.push(version);
}
if (failed.length > 0) fail(`failed on Node ${failed.join(", ")}`);
console.log(`passed on Node ${versions.join(", ")}`);
