/**
 * A disk that dies at a chosen call, as if the process had been killed there: the modules `node:fs` and
 * `node:fs/promises` with every function counted. A test file mocks both with `mortal`, so that no call of the code
 * under test is left out. Once dead, every further call fails: whatever the code tries to tidy up does not happen.
 */

/** Thrown by every call of a dead disk. */
export class Killed extends Error {}

/** How many calls were made, and which one kills. */
export const disk = { calls: 0, killAt: Number.POSITIVE_INFINITY, log: [] as string[] };

/** Runs `act` on a disk that dies at call `killAt` (0 is the first). Gives whether it came through. */
export async function killedAt(killAt: number, act: () => Promise<unknown>): Promise<boolean> {
  Object.assign(disk, { calls: 0, killAt, log: [] });
  try {
    await act();
    return true;
  } catch (error) {
    // A dead disk may come out as any error; a living one must not fail.
    if (disk.calls <= disk.killAt) throw error;
    return false;
  } finally {
    disk.killAt = Number.POSITIVE_INFINITY;
  }
}

type Call = (...values: unknown[]) => unknown;

function isDead(name: string, path: unknown): boolean {
  disk.log.push(`${name} ${typeof path === "string" ? path : ""}`);
  return disk.calls++ >= disk.killAt;
}

/** The first half of what a call would write: what a kill in the middle of it leaves. */
function half(content: unknown): unknown {
  return typeof content === "string" || content instanceof Uint8Array
    ? content.slice(0, content.length / 2)
    : content;
}

/** A module of Node's file system, every function of which asks whether it is dead yet. */
export function mortal<M extends object>(module: M): M {
  const wrapped = { ...module } as Record<string, unknown>;
  for (const [name, call] of Object.entries(module)) {
    if (typeof call !== "function" || name === "existsSync" || /^[A-Z_]/.test(name)) continue;
    wrapped[name] = name.endsWith("Sync") ? mortalSync(name, call as Call) : mortalAsync(name, call as Call);
  }
  wrapped.default = wrapped;
  return wrapped as M;
}

function mortalSync(name: string, call: Call): Call {
  return (...values) => {
    if (!isDead(name, values[0])) return call(...values);
    if (name === "writeSync" && disk.calls === disk.killAt + 1) call(values[0], half(values[1]));
    throw new Killed();
  };
}

function mortalAsync(name: string, call: Call): Call {
  return async (...values) => {
    if (isDead(name, values[0])) throw new Killed();
    const result = await call(...values);
    return name === "open" ? mortalHandle(result as object, values[0]) : result;
  };
}

function mortalHandle<H extends object>(handle: H, path: unknown): H {
  return new Proxy(handle, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      const call = (member as Call).bind(target);
      // A kill closes what was open.
      if (name === "close") return call;
      return async (...values: unknown[]) => {
        if (!isDead(`handle.${String(name)}`, path)) return call(...values);
        if (name === "writeFile" && disk.calls === disk.killAt + 1) await call(half(values[0]));
        throw new Killed();
      };
    },
  });
}
