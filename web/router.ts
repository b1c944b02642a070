/**
 * Which page is shown and in what state, kept in the address: `#/ask?model=…&story=…`. A link shows the same thing, back
 * and forward work, and no server has to know the pages.
 */
import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

/** Name of the page, without slashes; "" for the first one. */
export const page = computed(() => {
  const [path = ""] = hash.value.replace(/^#\/?/, "").split("?");
  return decode(path);
});

/** The page's state, by name. */
export const query = computed((): ReadonlyMap<string, string> => {
  const at = hash.value.indexOf("?");
  return new Map(at < 0 ? [] : new URLSearchParams(hash.value.slice(at + 1)));
});

/** The address of a page in a state; empty values are left out. */
export function href(name: string, state: Readonly<Record<string, string | undefined>> = {}): string {
  const filled = Object.entries(state).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const params = new URLSearchParams(filled).toString();
  return `#/${encodeURIComponent(name)}${params ? `?${params}` : ""}`;
}

/** Goes to a page; back returns. */
export function go(name: string, state?: Readonly<Record<string, string | undefined>>): void {
  location.hash = href(name, state);
}

/** Writes changed state into the address of the present page, without a step in the history. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const next = href(page.peek(), { ...Object.fromEntries(query.peek()), ...changes });
  if (next === location.hash) return;
  history.replaceState(null, "", next);
  hash.value = location.hash;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
