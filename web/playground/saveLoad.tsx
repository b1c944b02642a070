/** The model folder to the disk and back, ONNX, and the checkpoint of this browser. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Choices } from "./choices.ts";
import { call, status } from "./client.ts";
import { download, readFiles, saveFolder } from "./files.ts";

/** The panel. */
export function SaveLoad(props: {
  onLoaded: (choices: Choices) => void;
  onFailed: (what: string, error: unknown) => void;
}) {
  const picker = useRef<HTMLInputElement>(null);
  const said = useSignal("");
  const now = status.value;
  const attempt = (what: string, work: () => Promise<string>) => () => {
    said.value = "";
    work().then(
      (done) => {
        said.value = done;
      },
      (error: unknown) => props.onFailed(what, error),
    );
  };
  const name = `fwm-playground-step-${now?.step ?? 0}`;
  const load = async (list: FileList): Promise<string> => {
    const choices = await call("load", await readFiles(list));
    props.onLoaded(choices);
    return "Loaded: training goes on from these weights.";
  };
  return (
    <section class="panel" aria-label="Save and load">
      <div class="panel-head">
        <h2>Save and load</h2>
        <small>a model folder is config.json, model.safetensors and vocab.json; “fwm ask” takes it too</small>
      </div>
      <div class="row">
        <button
          type="button"
          disabled={!now?.choices}
          onClick={attempt("Not saved", async () =>
            (await saveFolder(await call("folder", "fwm"), name)) ? `Saved: ${name}` : "Not saved.",
          )}
        >
          Save model folder
        </button>
        <button
          type="button"
          disabled={!now?.choices}
          onClick={attempt("Not exported", async () => {
            download(await call("onnx", "fwm"), `${name}.onnx`);
            return `Exported: ${name}.onnx, one step of a stream`;
          })}
        >
          Export ONNX
        </button>
        <button type="button" onClick={() => picker.current?.click()}>
          Load model folder
        </button>
        <input
          ref={picker}
          class="visually-hidden"
          type="file"
          multiple
          tabIndex={-1}
          aria-label="Files of a model folder"
          accept=".json,.safetensors"
          onChange={({ currentTarget }) => {
            const { files } = currentTarget;
            if (files && files.length > 0) attempt("Not loaded", () => load(files))();
          }}
        />
        <button
          type="button"
          disabled={!now?.saved || "problem" in now.saved}
          onClick={attempt("Not removed", async () => {
            await call("forget", null);
            return "The checkpoint in this browser is removed.";
          })}
        >
          Remove checkpoint
        </button>
        <output class="muted">{said}</output>
      </div>
    </section>
  );
}
