/** What a page shows when there is nothing, not yet anything, or something went wrong. */
import type { ComponentChildren } from "preact";

/** Nothing is there: why, and what to do. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Something is on its way. */
export function Loading({ what }: { what: string }) {
  return (
    <div class="state" role="status">
      <div class="spinner" aria-hidden="true" />
      <p>{what} …</p>
    </div>
  );
}

/** Something went wrong: what, the reason as the program gives it, and a way to try again. */
export function Failed({
  what,
  error,
  retry,
}: {
  what: string;
  error: unknown;
  retry?: (() => void) | undefined;
}) {
  return (
    <div class="failure" role="alert">
      <strong>{what}</strong>
      <p>{messageOf(error)}</p>
      {retry ? (
        <div>
          <button type="button" onClick={retry}>
            Try again
          </button>
        </div>
      ) : null}
    </div>
  );
}

/** What an error says. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
