/** `fwm generate`: a language model continues a text, word by word. */
import { eosWord, lineEnd, tokensOf } from "../data/text/tokens.ts";
import { command } from "./command.ts";
import type { Output } from "./output.ts";
import { flag, folder, integer, number, oneOf, text } from "./params.ts";
import { shipped, whereIs } from "./shipped.ts";

/** The `generate` command. */
export const generateCommand = command({
  name: "generate",
  summary: "Let a language model continue a text, word by word.",
  details:
    "Words are drawn from the model's predictions and printed as they come; <eos> ends a line. The same seed gives the " +
    "same text. Words of the prompt are what stands between white space; one that the model does not know is read as " +
    "<unk>. With --json: the words with the probability that the model gave each, when all are there.",
  examples: [
    {
      line: 'fwm generate --prompt "The history of" --words 60',
      trial: "fwm generate --prompt the --words 12",
    },
    {
      line: "fwm generate runs/ptb-awd-fwm-seed141 --temperature 0.8 --top-k 40 --seed 7",
      trial: "fwm generate $LANGUAGE --temperature 0.8 --top-k 5 --seed 7 --words 8",
    },
    {
      line: "fwm generate runs/ptb-awd-fwm-seed141 --words 20 --json",
      trial: "fwm generate $LANGUAGE --words 5 --json",
    },
  ],
  args: {
    model: folder({
      default: shipped.text,
      help: "run, checkpoint or model folder; of a run its best checkpoint",
    }),
  },
  options: {
    prompt: text({ default: "", help: "text to continue; default: a new line" }),
    words: integer({ default: 100, min: 1, help: "words to generate, line ends included" }),
    temperature: number({ default: 1, help: "divides the logits; 0: always the most probable word" }),
    topK: integer({ default: 0, help: "draw among so many of the most probable words; 0: all" }),
    seed: integer({ default: 1, help: "seed of the draws" }),
    unk: flag({ help: "let <unk> be drawn; otherwise it is left out" }),
    checkpoint: oneOf(["best", "last"], { help: "of a run: which checkpoint; default: best, else last" }),
  },
  run: async ({ args, options, out }) => {
    const { loadModel } = await import("../inference/load.ts");
    const { prompt, words, temperature, topK, seed, unk, checkpoint } = options;
    const hint = "train one: fwm train wt2-fwm-small; then: fwm generate runs/wt2-fwm-small-seed1";
    const model = await loadModel(whereIs(args.model, hint), checkpoint ? { which: checkpoint } : {});
    try {
      if (!model.verified) {
        out.warn(`${args.model}: there is no manifest.json, so damage to its files may go unseen`);
      }
      const draws = model.generate({
        ...{ prompt, words, temperature, topK, seed },
        allowUnknown: unk,
        onUnknown: (missing) => out.warn(`not in the model's vocabulary, read as <unk>: ${some(missing)}`),
      });
      const page = new Page(out);
      for (const token of tokensOf(prompt)) page.add(token, (shown) => out.color.dim(shown));
      const drawn = [];
      for await (const one of draws) {
        drawn.push(one);
        page.add(one.word === eosWord ? lineEnd : one.word);
        // The event loop gets a turn, so that the word is seen and ^C heard.
        await new Promise((resolve) => setImmediate(resolve));
      }
      page.end();
      if (!out.json) return;
      const generated = drawn.map(({ word }) => word).join(" ");
      const settings = { prompt, temperature, topK, seed };
      out.result({ model: args.model, ...settings, text: generated, words: drawn }, "");
    } finally {
      await model.release();
    }
  },
});

/** Words one after the other on standard output, in lines no wider than a terminal. */
class Page {
  private column = 0;

  constructor(private readonly out: Output) {}

  add(token: string, look: (shown: string) => string = (shown) => shown): void {
    if (this.out.json) return;
    if (token === lineEnd) {
      this.break();
      return;
    }
    const width = [...token].length;
    if (this.out.isTTY && this.column > 0 && this.column + 1 + width >= this.out.columns) this.break();
    this.out.write(`${this.column > 0 ? " " : ""}${look(token)}`);
    this.column += (this.column > 0 ? 1 : 0) + width;
  }

  end(): void {
    if (this.column > 0) this.break();
  }

  private break(): void {
    this.out.write("\n");
    this.column = 0;
  }
}

function some(words: readonly string[], most = 10): string {
  const named = words.slice(0, most).map((word) => JSON.stringify(word));
  return named.join(", ") + (words.length > most ? ` and ${words.length - most} more` : "");
}
