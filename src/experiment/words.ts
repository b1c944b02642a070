/** Whether a model and its data mean the same words by the same numbers. */
import { UsageError } from "../errors.ts";
import { decodeUtf8, parseJson } from "../store/json.ts";
import type { LoadedModel } from "../store/modelFolder.ts";

/** Refuses a model whose words are not those of the data: its numbers would mean other words. */
export function checkWords(
  { path, files }: Pick<LoadedModel, "path" | "files">,
  words: readonly string[],
  hint: string,
): void {
  const name = `${path}/vocab.json`;
  const file = files["vocab.json"];
  const known = file ? (parseJson(decodeUtf8(file, name), { file: name }) as unknown) : undefined;
  if (Array.isArray(known) && known.length === words.length && known.every((word, i) => word === words[i])) {
    return;
  }
  const other = Array.isArray(known) ? known.findIndex((word, i) => word !== words[i]) : -1;
  throw new UsageError(`${path}: the model's words are not those of the data`, {
    model: Array.isArray(known) ? `${known.length} words` : "no vocab.json",
    data: `${words.length} words`,
    ...(other >= 0 && other < words.length
      ? { "first difference": `number ${other}: ${(known as unknown[])[other]}, ${words[other]}` }
      : {}),
    hint,
  });
}
