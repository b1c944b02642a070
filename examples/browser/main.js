/** The page with Vite, which gives the address of each file in the build. */
import config from "fwm/models/catbabi-qa/config.json?url";
import safetensors from "fwm/models/catbabi-qa/model.safetensors?url";
import vocab from "fwm/models/catbabi-qa/vocab.json?url";
import mjs from "onnxruntime-web/ort-wasm-simd-threaded.mjs?url";
import wasm from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import { answerForm } from "./page.js";

const form = document.querySelector("form");
await answerForm(form, { config, safetensors, vocab, wasmPaths: { mjs, wasm } });
