/**
 * A disk that dies at a chosen call, as if the process had been killed there, or refuses it: the modules `node:fs` and
 * `node:fs/promises` with every function counted. A test file mocks both with `mortal`, so that no call of the code
 * under test is left out. Once dead, every further call fails: whatever the code tries to tidy up does not happen.
 */

/** Thrown by every call of a dead disk. */
class Killed extends Error {}

/** How many calls were made, what the disk says to one, and what else happens before one of them. */
const disk = {
  calls: 0,
  trouble: (_call: number): Error | undefined => undefined,
  meanwhile: undefined as { at: number; act: () => Promise<unknown> } | undefined,
};

async function withTrouble<T>(
  trouble: (call: number) => Error | undefined,
  act: () => Promise<T>,
): Promise<T> {
  Object.assign(disk, { calls: 0, trouble });
  try {
    return await act();
  } finally {
    disk.trouble = () => undefined;
  }
}

/** Runs `act` in a process that is killed at call `killAt` (0 is the first). Gives whether it came through. */
export async function killedAt(killAt: number, act: () => Promise<unknown>): Promise<boolean> {
  try {
    await withTrouble((call) => (call >= killAt ? new Killed() : undefined), act);
    return true;
  } catch (error) {
    // A dead disk may come out as any error; a living one must not fail.
    if (disk.calls <= killAt) throw error;
    return false;
  }
}

/** Runs `act` on a disk that refuses call `at` with an operating system's code. Gives what `act` threw, if it did. */
export async function refusedAt(at: number, code: string, act: () => Promise<unknown>): Promise<unknown> {
  const refusal = (): Error => Object.assign(new Error(`${code}: simulated`), { code });
  try {
    await withTrouble((call) => (call === at ? refusal() : undefined), act);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** How many calls the last `killedAt` or `refusedAt` made. */
export function callsMade(): number {
  return disk.calls;
}

/** Runs `act`; before a call at or after number `at`, all of `meanwhile` happens. Gives whether it came to that. */
export async function interruptedAt<T>(
  at: number,
  meanwhile: () => Promise<unknown>,
  act: () => Promise<T>,
): Promise<{ result: T; interrupted: boolean }> {
  Object.assign(disk, { calls: 0, meanwhile: { at, act: meanwhile } });
  const result = await act();
  const interrupted = disk.meanwhile === undefined;
  disk.meanwhile = undefined;
  return { result, interrupted };
}

type Call = (...values: unknown[]) => unknown;

/** What the disk says to the next call; undefined for a call that goes through. */
function trouble(): { error: Error; first: boolean } | undefined {
  const call = disk.calls++;
  const error = disk.trouble(call);
  return error && { error, first: call === 0 || disk.trouble(call - 1) === undefined };
}

async function letOthersAct(): Promise<void> {
  const { meanwhile } = disk;
  if (!meanwhile || disk.calls < meanwhile.at) return;
  disk.meanwhile = undefined;
  await meanwhile.act();
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
    const refused = trouble();
    if (!refused) return call(...values);
    if (name === "writeSync" && refused.first) call(values[0], half(values[1]));
    throw refused.error;
  };
}

function mortalAsync(name: string, call: Call): Call {
  return async (...values) => {
    await letOthersAct();
    const refused = trouble();
    if (refused) throw refused.error;
    const result = await call(...values);
    return name === "open" ? mortalHandle(result as object) : result;
  };
}

function mortalHandle<H extends object>(handle: H): H {
  return new Proxy(handle, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      const call = (member as Call).bind(target);
      // A kill closes what was open.
      if (name === "close") return call;
      return async (...values: unknown[]) => {
        await letOthersAct();
        const refused = trouble();
        if (!refused) return call(...values);
        if (name === "writeFile" && refused.first) await call(half(values[0]));
        throw refused.error;
      };
    },
  });
}
