/** `fwm export`: a saved model becomes a file that any ONNX Runtime runs. */
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { UsageError } from "../errors.ts";
import { showType } from "../graph/tensor.ts";
import type { ModelEnd } from "../inference/export.ts";
import { thousands } from "../report/table.ts";
import { command } from "./command.ts";
import { file, flag, folder, integer, oneOf } from "./params.ts";
import { packageVersion } from "./version.ts";
import { checkWritable } from "./writeResult.ts";

/** The `export` command. */
export const exportCommand = command({
  name: "export",
  summary: "Write a run or model as a standard .onnx file, its weights inside.",
  details:
    "The step form reads one token per row: tokens and the recurrent state go in, logits and the next state " +
    "come out. The window form (--window) reads T tokens at once. Names and an example: docs/browser.md.",
  examples: [
    {
      line: "fwm export runs/catbabi-qa-fwm-seed1 --onnx step.onnx",
      trial: "fwm export $RUN --onnx $EMPTY/step.onnx",
    },
    {
      line: "fwm export runs/catbabi-qa-fwm-seed1 --onnx window.onnx --window 200 --batch 8",
      trial: "fwm export $RUN --onnx $EMPTY/window.onnx --window 9 --batch 2",
    },
    {
      line: "fwm export runs/catbabi-qa-fwm-seed1 --onnx step.onnx --yes --json",
      trial: "fwm export $RUN --onnx $EMPTY/step.onnx --yes --json",
    },
  ],
  args: { model: folder({ help: "run, checkpoint or model folder; of a run its best checkpoint" }) },
  options: {
    onnx: file({ required: true, help: "the file to write" }),
    batch: integer({ min: 1, max: 4096, default: 1, help: "rows: streams that are stepped together" }),
    window: integer({
      min: 1,
      max: 4096,
      placeholder: "tokens",
      help: "the window form, so many tokens long",
    }),
    step: flag({ help: "the step form, which is also the default" }),
    checkpoint: oneOf(["best", "last"], { help: "of a run: which checkpoint; default: best, else last" }),
    yes: flag({ help: "replace the file if there is one" }),
  },
  run: async ({ args, options, out }) => {
    const { batch, window, checkpoint } = options;
    if (options.step && window !== undefined) throw new UsageError("--step and --window exclude each other");
    const target = resolve(options.onnx);
    await checkTarget(target, options.yes);
    await checkWritable(target, { makesFolders: false });
    const { loadModelFolder } = await import("../store/modelFolder.ts");
    const { writeFileAtomically } = await import("../store/atomic.ts");
    const { exportModel } = await import("../inference/export.ts");
    const model = await loadModelFolder(args.model, checkpoint ? { which: checkpoint } : {});
    const form = { batch, ...(window === undefined ? {} : { window }) };
    const { bytes, inputs, outputs, weights } = exportModel(model, form, packageVersion());
    await writeFileAtomically(target, bytes);
    const document = {
      file: target,
      bytes: bytes.length,
      form: window === undefined ? "step" : "window",
      batch,
      window: window ?? null,
      weights,
      model: model.path,
      step: model.step ?? null,
      inputs,
      outputs,
    };
    out.result(document, () =>
      [
        `${target}: ${thousands(bytes.length)} bytes, ${thousands(weights)} parameters, from ${model.path}`,
        "",
        ...lines({ in: inputs, out: outputs }),
      ].join("\n"),
    );
  },
});

/** Refuses to replace what is there, by default to, before any work is done. */
async function checkTarget(path: string, mayReplace: boolean): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!found) return;
  if (!found.isFile()) {
    throw new UsageError(`--onnx: ${path} exists and is not a file`, { hint: "choose another name" });
  }
  if (!mayReplace) throw new UsageError(`--onnx: ${path} exists`, { hint: "replace it with --yes" });
}

/** One line per input and output, in columns. */
function lines(ends: Readonly<Record<string, readonly ModelEnd[]>>): string[] {
  const rows = Object.entries(ends).flatMap(([way, list]) =>
    list.map((end) => [way, end.name, showType(end), end.doc]),
  );
  const width = (column: number): number => Math.max(...rows.map((row) => row[column]!.length));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(width(column)))
      .join("  ")
      .trimEnd(),
  );
}
