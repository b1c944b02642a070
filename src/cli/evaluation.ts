/** Evaluations as commands offer and run them: the options of every kind, with progress. */

import { UsageError } from "../errors.ts";
import type { BaseEvaluation, EvaluationOption, Kind } from "../experiment/kind.ts";
import { allKinds } from "../experiment/registry.ts";
import { thousands } from "../report/table.ts";
import type { LoadedModel } from "../store/modelFolder.ts";
import type { Output, Surroundings } from "./output.ts";
import { folder, integer, oneOf, type Param, value } from "./params.ts";

/** The value of an option that may be left out. */
type OptionParam = Param<string | number, undefined>;

/** What was chosen of the options below. */
export type ChosenOptions = Readonly<Record<string, string | number | undefined>>;

/**
 * The evaluation options of all kinds as options of a command, `--split` among them; each says for which kind it is.
 * Those that stand in the place of a split are left out where `onSplit` says so.
 */
export function evaluationParams({ onSplit = false } = {}): Readonly<Record<"split", OptionParam>> {
  const merged = new Map<string, { option: EvaluationOption; help: string[] }>();
  for (const { name: kind, evaluationOptions } of allKinds()) {
    for (const [name, option] of Object.entries(evaluationOptions)) {
      if (onSplit && option.type === "choice" && option.replacesSplit) continue;
      const known = merged.get(name);
      merged.set(name, {
        option: known ? united(known.option, option) : option,
        help: [...(known?.help ?? []), `${kind}: ${option.help}`],
      });
    }
  }
  const params = [...merged].map(
    ([name, { option, help }]) => [name, paramOf(option, help.join("; "))] as const,
  );
  return Object.fromEntries(params) as Record<"split", OptionParam>;
}

/** An option that two kinds have: what either of them takes. */
function united(a: EvaluationOption, b: EvaluationOption): EvaluationOption {
  return a.type === "choice" && b.type === "choice"
    ? { ...a, values: [...new Set([...a.values, ...b.values])] }
    : a;
}

function paramOf(option: EvaluationOption, help: string): OptionParam {
  switch (option.type) {
    case "integer": {
      const { min = 0, max = Number.MAX_SAFE_INTEGER } = option;
      return integer({ min, max, help });
    }
    case "choice":
      return oneOf(option.values, { help });
    case "number":
      return value({ placeholder: "number", help }, (text, name) => {
        if (option.words.includes(text)) return text;
        if (Number(text) > 0 && Number.isFinite(Number(text))) return Number(text);
        const expected = ["a number above 0", ...option.words].join(" or ");
        throw new UsageError(`${name}: expected ${expected}, got ${JSON.stringify(text)}`);
      });
    case "numbers": {
      const placeholder = option.names.join(",");
      return value({ placeholder, help }, (text, name) => {
        const numbers = text.split(",").map(Number);
        const isFine = numbers.every((number) => number > 0 && Number.isFinite(number));
        if (option.words.includes(text) || (isFine && numbers.length === option.names.length)) return text;
        const expected = [`numbers above 0 as ${placeholder}`, ...option.words].join(" or ");
        throw new UsageError(`${name}: expected ${expected}, got ${JSON.stringify(text)}`);
      });
    }
    case "folder":
      return folder({ help });
  }
}

/** Evaluates what a folder holds, with progress. */
export async function evaluateWithProgress(
  model: LoadedModel,
  options: ChosenOptions,
  { threads, env, out }: { threads: number | undefined; env: Surroundings["env"]; out: Output },
): Promise<{ kind: Kind; evaluation: BaseEvaluation }> {
  const { evaluateSaved } = await import("../experiment/savedModel.ts");
  let progress: ReturnType<typeof out.progress> | undefined;
  try {
    return await evaluateSaved(model, options, {
      env,
      ...(threads ? { threads } : {}),
      onProgress(done, total, what) {
        progress ??= out.progress({ label: "evaluating", total, show: thousands, every: 10_000 });
        progress.update(done, what);
      },
    });
  } finally {
    progress?.stop();
  }
}
