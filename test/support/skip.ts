/**
 * Tests that need something a machine may lack: skipped where it is missing, with a reason that the test run prints
 * at its end.
 */
declare module "vitest" {
  interface TaskMeta {
    /** Why the test or its suite is skipped. */
    skipReason?: string;
  }
}

/** Options of a test or suite that runs only where `available` holds: `describe("…", skipUnless(…), () => …)`. */
export function skipUnless(
  available: boolean,
  reason: string,
): { skip?: true; meta?: { skipReason: string } } {
  return available ? {} : { skip: true, meta: { skipReason: reason } };
}
