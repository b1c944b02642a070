/** Answers questions about a story in a page. `addresses` says where the page serves the model and ONNX Runtime. */
import { loadWebRuntime } from "fwm/engine";
import { modelFromBytes } from "fwm/inference";

export async function openModel({ config, safetensors, vocab, wasmPaths }) {
  const [configBytes, weights, words] = await Promise.all([config, safetensors, vocab].map(bytesAt));
  const runtime = await loadWebRuntime({ wasmPaths });
  return modelFromBytes({ config: configBytes, safetensors: weights, vocab: words }, { runtime });
}

async function bytesAt(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${response.url}: ${response.status}`);
  return response.arrayBuffer();
}

export async function answerForm(form, addresses) {
  const { story, question, ask, answers } = form.elements;
  const model = await openModel(addresses);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const stream = model.stream();
    try {
      await stream.read(story.value);
      const reply = await stream.ask(question.value, { top: 3 });
      answers.value = reply.answers
        .map(({ word, probability }) => `${word} ${(100 * probability).toFixed(1)}%`)
        .join("\n");
    } catch (error) {
      answers.value = error.message; // a word the model does not know
    }
  });
  ask.disabled = false;
}
