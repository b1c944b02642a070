/** Settings as one level of names. */
import type { HyperParameter } from "./events.ts";

/**
 * `{ a: { b: 1 } }` becomes `{ "a.b": 1 }`; lists are told as JSON, groups in them by their names in order, so that equal ones
 * are equal text; what has no value is left out.
 */
export function flatten(settings: unknown): Record<string, HyperParameter> {
  const into: Record<string, HyperParameter> = {};
  collect(settings, "", into);
  return into;
}

/** A group with its names in order, for `JSON.stringify`. */
function inOrder(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function collect(value: unknown, name: string, into: Record<string, HyperParameter>): void {
  if (typeof value === "number" || typeof value === "string" || typeof value === "boolean")
    into[name] = value;
  else if (Array.isArray(value)) into[name] = JSON.stringify(value, inOrder);
  else if (typeof value === "object" && value !== null) {
    for (const [key, member] of Object.entries(value)) collect(member, name ? `${name}.${key}` : key, into);
  }
}
