/**
 * A project that has the package installed as npm would: packed from the present sources, unpacked under
 * `node_modules`, and beside it the packages it depends on, as links. Optional ones are absent. No network.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as tar from "tar";
import { emptyFolder } from "../data/support/tiny.ts";

const root = join(import.meta.dirname, "../..");

/** One package of the lock file. */
interface LockedPackage {
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly peer?: boolean;
}

/** Packages that come with the package, by their place: `node_modules/zod`. */
export function installedPackages(): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockedPackage>;
  };
  return Object.entries(packages)
    .filter(([path, { dev, optional, peer }]) => path !== "" && !dev && !optional && !peer)
    .map(([path]) => path);
}

/** Builds and packs the sources, and gives the path of a new project that has them installed. */
export async function packedProject(): Promise<string> {
  const stage = emptyFolder();
  const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { files: string[] };
  for (const name of ["package.json", ...files.filter((each) => !/^dist|\*/.test(each))]) {
    cpSync(join(root, name), join(stage, name), { recursive: true });
  }
  const compiler = join(root, "node_modules/@typescript/native/bin/tsc");
  const project = join(root, "tsconfig.build.json");
  execFileSync(process.execPath, [compiler, "-p", project, "--outDir", join(stage, "dist")]);
  execFileSync("npm", ["pack", "--ignore-scripts", "--pack-destination", stage], {
    cwd: stage,
    stdio: "pipe",
  });
  const tarball = readdirSync(stage).find((name) => name.endsWith(".tgz"))!;

  const place = emptyFolder();
  const home = join(place, "node_modules/fwm");
  mkdirSync(home, { recursive: true });
  await tar.extract({ file: join(stage, tarball), cwd: home, strip: 1 });
  for (const path of installedPackages()) {
    // What lies inside another package comes with it.
    if (path.lastIndexOf("node_modules/") > 0) continue;
    mkdirSync(dirname(join(place, path)), { recursive: true });
    symlinkSync(join(root, path), join(place, path), "dir");
  }
  writeFileSync(
    join(place, "package.json"),
    JSON.stringify({ name: "project", private: true, type: "module" }),
  );
  return place;
}
