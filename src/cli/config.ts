/**
 * Nested settings from many places: flag > environment > config file > preset > default.
 *
 * Each place is a layer, a tree of plain values. Layers are laid over each other key by key, the result is
 * checked by one strict schema, and every value remembers the layer it came from, for `--print-config`.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { nearest, UsageError } from "../errors.ts";

/** A tree of settings; its objects have no prototype, so no key can reach one. */
export type SettingsTree = { [key: string]: SettingsValue };
/** A setting, a list of them, or a group of them. */
export type SettingsValue = string | number | boolean | null | readonly SettingsValue[] | SettingsTree;

/** Settings from one place, and how that place is called in messages. */
export interface SettingsLayer {
  readonly from: string;
  readonly values: SettingsTree;
}

/** The settings after all layers, and where each leaf (`training.batch`) came from. */
export interface ResolvedSettings<T> {
  readonly settings: T;
  readonly origins: ReadonlyMap<string, string>;
}

/** Settings take a few kilobytes. YAML compares every key of a group with every other one. */
const largestText = 2 ** 16;
/** Deepest nesting of groups and lists; an alias that refers to what it is part of has no end. */
const deepest = 50;

/**
 * Lays `layers` over each other, the last one on top, and checks the result with a strict schema. `renamed` has the
 * settings' former names, for the message that one of them gets.
 */
export function resolveSettings<T>(
  schema: z.ZodType<T>,
  layers: readonly SettingsLayer[],
  renamed: Readonly<Record<string, string>> = {},
): ResolvedSettings<T> {
  const merged: SettingsTree = emptyTree();
  const origins = new Map<string, string>();
  for (const layer of layers) lay(merged, layer.values, layer.from, "", origins);
  const checked = schema.safeParse(merged, { reportInput: true });
  if (!checked.success) throw settingsError(checked.error, schema, origins, renamed);
  return { settings: checked.data, origins };
}

/** Any plain value as a layer, for defaults and presets written in code. */
export function layer(from: string, values: unknown): SettingsLayer {
  return { from, values: asTree(values, from) };
}

/** The settings in a YAML or JSON file. */
export function configFile(path: string, option = "--config"): SettingsLayer {
  let text: string;
  try {
    text = readAtMost(path, largestText + 1);
  } catch (error) {
    throw new UsageError(`${option} ${path}: cannot be read: ${(error as Error).message}`);
  }
  const from = `${option.slice(2)} file ${path}`;
  // JSON is YAML.
  return { from, values: asTree(readYaml(text, `${option} ${path}`) ?? {}, from) };
}

/** `--set a.b=c`, any number of times; the value is read as YAML, so numbers, booleans and lists work. */
export function assignments(texts: readonly string[], option = "--set"): SettingsLayer {
  const values = emptyTree();
  for (const text of texts) {
    const split = text.indexOf("=");
    const path = text.slice(0, split).trim().split(".");
    if (split < 1 || path.includes("")) {
      throw new UsageError(`${option} ${text}: expected key=value or group.key=value`);
    }
    const where = `${option} ${text.length > 100 ? `${text.slice(0, 100)}…` : text}`;
    put(values, path, asValue(readYaml(text.slice(split + 1), where), where), where);
  }
  return { from: option, values };
}

/**
 * Settings from variables: `FWM_TRAINING__LEARNING_RATE` is `training.learningRate`. A variable with `__` must
 * name a setting of the schema; one without is taken if it does (`FWM_SEED`) and otherwise belongs to something else.
 */
export function environmentSettings(
  env: Readonly<Record<string, string | undefined>>,
  schema: z.ZodType,
): SettingsLayer {
  const known = new Map(leafPaths(schema).map((path) => [variableOf(path), path]));
  const values = emptyTree();
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith("FWM_") || text === undefined) continue;
    const path = known.get(name);
    if (path !== undefined) {
      put(values, path.split("."), asValue(readYaml(text, name), name), name);
    } else if (name.includes("__")) {
      throw new UsageError(`environment variable ${name}: there is no such setting`, {
        "did you mean": nearest(name, [...known.keys()]).join(", "),
      });
    }
  }
  return { from: "environment", values };
}

/** One line per setting, `path = value   (origin)`: what `--print-config` shows. */
export function printSettings<T>({ settings, origins }: ResolvedSettings<T>): string {
  const rows = leaves(asTree(settings, "settings"), "").flatMap(([path, value]) =>
    listed(path, value).map(([name, part]) => ({
      assignment: `${name} = ${JSON.stringify(part)}`,
      from: originOf(path, origins) ?? "schema default",
    })),
  );
  const width = Math.max(0, ...rows.map(({ assignment }) => assignment.length));
  return rows.map(({ assignment, from }) => `${assignment.padEnd(width)}   (${from})\n`).join("");
}

/** The same as data: what `--print-config --json` gives. */
export function settingsDocument<T>(resolved: ResolvedSettings<T>): {
  settings: T;
  origins: Record<string, string>;
} {
  return { settings: resolved.settings, origins: Object.fromEntries(resolved.origins) };
}

/** The beginning of a file, which may also be a pipe or a device that never ends. */
function readAtMost(path: string, most: number): string {
  const descriptor = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(most);
    let size = 0;
    for (let count = -1; count !== 0 && size < most; size += count) {
      count = readSync(descriptor, bytes, size, most - size, null);
    }
    return bytes.toString("utf8", 0, size);
  } finally {
    closeSync(descriptor);
  }
}

/** A YAML or JSON text as a value; aliases are limited, against texts that expand without end. */
function readYaml(text: string, where: string): unknown {
  if (text.length > largestText) {
    throw new UsageError(`${where}: too long to be settings`, { most: `${largestText} characters` });
  }
  try {
    return parseYaml(text, { maxAliasCount: 50, logLevel: "error" }) as unknown;
  } catch (error) {
    throw new UsageError(`${where}: not valid YAML or JSON: ${(error as Error).message}`);
  }
}

// Keys that reach an object's prototype when a careless merge assigns them.
const forbiddenKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

function emptyTree(): SettingsTree {
  return Object.create(null) as SettingsTree;
}

function isTree(value: SettingsValue | undefined): value is SettingsTree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function asTree(value: unknown, where: string): SettingsTree {
  const tree = asValue(value, where);
  if (isTree(tree)) return tree;
  const given = JSON.stringify(value);
  throw new UsageError(
    `${where}: expected settings (key: value), got ${given.length > 100 ? `${given.slice(0, 100)}…` : given}`,
  );
}

function asValue(value: unknown, where: string, depth = 0): SettingsValue {
  if (depth > deepest) {
    throw new UsageError(`${where}: more than ${deepest} levels deep`, {
      hint: "a part may refer to itself: an alias (*name) inside its own anchor (&name)",
    });
  }
  if (
    value === null ||
    typeof value === "string" ||
    typeof value === "number" ||
    typeof value === "boolean"
  ) {
    return value;
  }
  if (Array.isArray(value)) return value.map((item) => asValue(item, where, depth + 1));
  if (typeof value !== "object") throw new UsageError(`${where}: ${typeof value} is not a setting`);
  const tree = emptyTree();
  for (const [key, item] of Object.entries(value)) {
    if (forbiddenKeys.has(key)) throw new UsageError(`${where}: ${JSON.stringify(key)} is not a setting`);
    if (item !== undefined) tree[key] = asValue(item, where, depth + 1);
  }
  return tree;
}

function put(tree: SettingsTree, path: readonly string[], value: SettingsValue, where: string): void {
  let at = tree;
  path.forEach((key, depth) => {
    if (forbiddenKeys.has(key)) throw new UsageError(`${where}: ${JSON.stringify(key)} is not a setting`);
    if (depth === path.length - 1) at[key] = value;
    else {
      const next = at[key];
      at = isTree(next) ? next : (at[key] = emptyTree());
    }
  });
}

function lay(
  under: SettingsTree,
  over: SettingsTree,
  from: string,
  prefix: string,
  origins: Map<string, string>,
): void {
  for (const [key, value] of Object.entries(over)) {
    const path = prefix + key;
    const before = under[key];
    if (isTree(value)) {
      // Another name is another variant of the group (an optimizer, a system): nothing of the old one stays.
      const isOther = isTree(before) && value.name !== undefined && before.name !== value.name;
      const inner = isTree(before) && !isOther ? before : emptyTree();
      under[key] = inner;
      if (isOther)
        for (const known of [...origins.keys()]) if (known.startsWith(`${path}.`)) origins.delete(known);
      if (!isTree(before)) origins.delete(path);
      lay(inner, value, from, `${path}.`, origins);
    } else {
      if (isTree(before)) {
        for (const known of [...origins.keys()]) if (known.startsWith(`${path}.`)) origins.delete(known);
      }
      under[key] = value;
      origins.set(path, from);
    }
  }
}

function leaves(tree: SettingsTree, prefix: string): [path: string, value: SettingsValue][] {
  return Object.entries(tree).flatMap(([key, value]) =>
    isTree(value) ? leaves(value, `${prefix}${key}.`) : [[prefix + key, value] as [string, SettingsValue]],
  );
}

/** A list of groups line by line, `path[0].name`; anything else as it is. */
function listed(path: string, value: SettingsValue): [name: string, value: SettingsValue][] {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isTree)) return [[path, value]];
  return value.flatMap((group, i) => leaves(group, `${path}[${i}].`));
}

function originOf(path: string, origins: ReadonlyMap<string, string>): string | undefined {
  const own = origins.get(path);
  if (own !== undefined || !path.includes(".")) return own;
  return originOf(path.slice(0, path.lastIndexOf(".")), origins);
}

interface JsonSchema {
  properties?: Record<string, JsonSchema>;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
}

/** The settings a schema knows at each level; alternatives of a union count together. */
function properties(schema: JsonSchema): Map<string, JsonSchema> {
  const found = new Map(Object.entries(schema.properties ?? {}));
  for (const branch of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]) {
    for (const [name, inner] of properties(branch)) if (!found.has(name)) found.set(name, inner);
  }
  return found;
}

function describeSchema(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline" }) as JsonSchema;
}

function leafPaths(schema: z.ZodType): string[] {
  const walk = (node: JsonSchema, prefix: string): string[] =>
    [...properties(node)].flatMap(([name, inner]) => [prefix + name, ...walk(inner, `${prefix}${name}.`)]);
  return walk(describeSchema(schema), "");
}

/** The variable that stands for a setting: `training.learningRate` is `FWM_TRAINING__LEARNING_RATE`. */
export function variableOf(path: string): string {
  const words = path.replaceAll(".", "__").replace(/[A-Z]/g, (letter) => "_" + letter);
  return "FWM_" + words.toUpperCase();
}

function settingsError(
  error: z.ZodError,
  schema: z.ZodType,
  origins: ReadonlyMap<string, string>,
  renamed: Readonly<Record<string, string>>,
): UsageError {
  const issue = error.issues[0]!;
  const path = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0]!;
    const full = path === "" ? key : `${path}.${key}`;
    const level = issue.path.reduce<JsonSchema>(
      (node, part) => properties(node).get(String(part)) ?? {},
      describeSchema(schema),
    );
    const known = [...properties(level).keys()];
    const now = Object.hasOwn(renamed, full) ? renamed[full] : undefined;
    if (now) {
      return new UsageError(`settings: ${JSON.stringify(full)} is called ${now} now`, {
        from: originBelow(full, origins),
      });
    }
    return new UsageError(`settings: there is no ${JSON.stringify(full)}`, {
      from: originBelow(full, origins),
      // A name without its group (`reads`) is answered with the whole one.
      "did you mean": [
        ...leafPaths(schema).filter((leaf) => leaf.endsWith(`.${key}`)),
        ...nearest(key, known),
      ].join(", "),
      known: known.join(", "),
    });
  }
  return new UsageError(`settings: ${path === "" ? "" : `${path}: `}${issue.message}`, {
    from: originBelow(path, origins),
    "did you mean": issue.code === "invalid_value" ? nearestValue(issue).join(", ") : "",
  });
}

function nearestValue({ input, values }: { input?: unknown; values: readonly unknown[] }): string[] {
  return typeof input === "string" ? nearest(input, values.map(String)) : [];
}

function originBelow(path: string, origins: ReadonlyMap<string, string>): string | undefined {
  const own = originOf(path, origins);
  if (own !== undefined) return own;
  for (const [known, from] of origins) if (known.startsWith(`${path}.`)) return from;
  return undefined;
}
