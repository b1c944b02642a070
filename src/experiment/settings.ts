/** Settings of any kind: checked by the kind's schema, with a message for names of earlier versions. */
import { resolve } from "node:path";
import { z } from "zod";
import { DataError } from "../errors.ts";
import { flatten } from "../store/flatten.ts";
import type { BaseSettings, Kind } from "./kind.ts";

/** Settings that came out of a file, checked; `where` names it in the message. */
export function checkSettings<S extends BaseSettings>(kind: Kind<S>, settings: unknown, where: string): S {
  const parsed = kind.schema.safeParse(settings);
  if (parsed.success) return parsed.data;
  const old = renamedIn(kind, settings);
  throw new DataError(`${where}: its settings are not those of this version`, {
    ...(old.length > 0
      ? { renamed: old.map(([before, now]) => `${before} is ${now} now`).join(", ") }
      : { reason: z.prettifyError(parsed.error) }),
    hint: "use the version of fwm that made it",
  });
}

/** Settings under names of earlier versions, each with today's. */
function renamedIn({ renamed }: Pick<Kind, "renamed">, settings: unknown): [before: string, now: string][] {
  const present = Object.keys(flatten(settings));
  return Object.entries(renamed).filter(([before]) => present.includes(before));
}

/** Settings with one of them changed, by its path: `training.steps`. */
export function withSetting<S extends BaseSettings>(settings: S, path: string, value: unknown): S {
  const [group, name] = path.split(".") as [keyof S & string, string];
  return { ...settings, [group]: { ...settings[group], [name]: value } };
}

/** Settings whose folder of data is an absolute path, so that the run can be resumed from wherever it is called. */
export function withAbsoluteData<S extends BaseSettings>({ flags }: Pick<Kind, "flags">, settings: S): S {
  if (flags.data === undefined) return settings;
  const given = flatten(settings)[flags.data];
  // An empty text stands for the default place.
  return typeof given === "string" && given !== ""
    ? withSetting(settings, flags.data, resolve(given))
    : settings;
}
