/** `fwm ask`: a story line by line, and answers with what each read of the memory matched. */
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { printable, UsageError } from "../errors.ts";
import type { FwmModel } from "../inference/model.ts";
import type { Reply, Stream } from "../inference/stream.ts";
import { encodeText, plainWords, wordsOf } from "../inference/text.ts";
import { thousands } from "../report/table.ts";
import { command } from "./command.ts";
import { drawBar, drawReads } from "./heatmap.ts";
import type { Output } from "./output.ts";
import { file, folder, integer, oneOf } from "./params.ts";
import { shipped, whereIs } from "./shipped.ts";

/** The model that comes with the package, below its root. */

/** The `ask` command. */
export const askCommand = command({
  name: "ask",
  summary: "Tell a model a story and ask it questions.",
  details:
    "Statements and questions, one line each; a line that ends in ? is answered. Under the answers stand the " +
    "story's words as each read of the memory matched them. After a question the model goes on with its own " +
    "answer, unless the line gives the true one behind a tab, as bAbI files do. --json gives a line per question.",
  examples: [
    { line: "fwm ask runs/catbabi-qa-fwm-seed1", trial: "fwm ask $RUN" },
    {
      line: "fwm ask runs/catbabi-qa-fwm-seed1 --story story.txt --top 3",
      trial: "fwm ask $RUN --story $BABI/en-valid/qa15_test.txt --top 3",
    },
  ],
  args: { model: folder({ default: shipped.answers, help: "run, checkpoint or model folder" }) },
  options: {
    story: file({ help: "read this text first; bAbI files work too" }),
    top: integer({ default: 5, min: 1, max: 200, help: "answers to show" }),
    checkpoint: oneOf(["best", "last"], { help: "of a run: which checkpoint; default: best, else last" }),
  },
  run: async ({ args, options, out, stdin }) => {
    const { loadModel } = await import("../inference/load.ts");
    const { checkpoint, story, top } = options;
    const hint = "train one: fwm train catbabi-qa-fwm; then: fwm ask runs/catbabi-qa-fwm-seed1";
    const model = await loadModel(whereIs(args.model, hint), checkpoint ? { which: checkpoint } : {});
    if (!model.verified) {
      out.warn(`${args.model}: there is no manifest.json, so damage to its files may go unseen`);
    }
    const talk = new Conversation(model, out, top);
    const isTerminal = "isTTY" in stdin && stdin.isTTY === true;
    try {
      if (story !== undefined) {
        const text = await readFile(story, "utf8").catch((error: unknown) => {
          throw new UsageError(`--story ${story}: cannot be read`, {
            reason: (error as NodeJS.ErrnoException).code,
            hint: "give a text file with a statement or a question on each line",
          });
        });
        const lines = text.split(/\r?\n/);
        for (const [i, line] of lines.entries()) await talk.strictly(line, `${story}:${i + 1}`);
      }
      if (isTerminal) await converse(talk, stdin);
      else if (story === undefined) {
        let number = 0;
        for await (const line of createInterface({ input: stdin })) {
          if ((await talk.strictly(line, `line ${++number}`)) === "quit") break;
        }
      }
    } finally {
      await model.release();
    }
  },
});

const help = `  Mary went to the kitchen.    a statement; the "." may be left out
  Where is Mary?               a question: answered, and the story goes on with the answer
  :reset                       forget everything and begin again
  :quit                        leave (also ^D)
Known words complete with the tab key.`;

/** Lines in, answers out. */
class Conversation {
  private readonly stream: Stream;
  /** Whether anything was read since the last reset. */
  private begun = false;

  constructor(
    readonly model: FwmModel,
    private readonly out: Output,
    private readonly top: number,
  ) {
    this.stream = model.stream();
  }

  /** Takes a line; an unknown word is told with the nearest known ones, and the line is left out. */
  async leniently(line: string): Promise<"quit" | undefined> {
    try {
      return await this.take(line);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      this.out.warn(`${error.message}\n  the line was left out`);
      return undefined;
    }
  }

  /** Takes a line; whatever is wrong with it is an error that says where it stands. */
  async strictly(line: string, where: string): Promise<"quit" | undefined> {
    try {
      return await this.take(line);
    } catch (error) {
      throw error instanceof UsageError ? new UsageError(`${where}: ${error.message}`) : error;
    }
  }

  private async take(given: string): Promise<"quit" | undefined> {
    const line = given.trim();
    if (line === "") return undefined;
    if (line.startsWith(":")) return this.obey(line);
    // "3 Where is Mary?<TAB>kitchen<TAB>1": a bAbI line; number 1 begins a story.
    const [, number, rest] = /^(?:(\d+)\s+)?(.*)$/s.exec(line)!;
    const [text = "", answer] = rest!.split("\t").map((field) => field.trim());
    const words = wordsOf(text);
    if (words.length > 0 && words.at(-1) !== "." && words.at(-1) !== "?") words.push(".");
    encodeText(this.model.vocabulary, answer ? [...words, answer.toLowerCase()] : words);
    if (number === "1" && this.begun) await this.stream.newStory();
    this.begun = true;
    let sentence: string[] = [];
    for (const word of words) {
      sentence.push(word);
      if (word !== "?") continue;
      await this.ask(sentence, answer?.toLowerCase());
      sentence = [];
    }
    if (sentence.length > 0) await this.stream.read(sentence);
    return undefined;
  }

  private async obey(line: string): Promise<"quit" | undefined> {
    switch (line) {
      case ":quit":
        return "quit";
      case ":help":
        this.out.note(help);
        return undefined;
      case ":reset":
        await this.stream.reset();
        this.begun = false;
        this.out.note("everything is forgotten; a new story begins");
        return undefined;
      default:
        throw new UsageError(`there is no command ${line}`, { known: ":help, :reset, :quit" });
    }
  }

  private async ask(question: readonly string[], told: string | undefined): Promise<void> {
    const reply = await this.stream.ask(question, { top: this.top });
    if (told !== undefined) await this.stream.tell(told);
    const { words, reads } = presentStory(reply);
    const document = {
      question: question.join(" "),
      answers: reply.answers.map(({ word, probability }) => ({ word, probability: rounded(probability) })),
      ...(told === undefined ? {} : { told, correct: reply.answers[0]!.word === told }),
      words,
      reads: reads.map((read) => Array.from(read, rounded)),
    };
    this.out.record(document, () => this.show(question, reply, told));
  }

  private show(question: readonly string[], reply: Reply, told: string | undefined): string {
    const { color, columns } = this.out;
    const width = Math.max(...reply.answers.map(({ word }) => printable(word).length));
    const answers = reply.answers.map(({ word: raw, probability }, i) => {
      const word = printable(raw);
      const right =
        told === undefined ? "" : word === told ? color.green("  ✓") : i === 0 ? color.red("  ✗") : "";
      const share = `${(100 * probability).toFixed(1)}%`.padStart(6);
      const line = `  ${word.padEnd(width)} ${share} ${drawBar(probability, 20)}`.trimEnd();
      return (i === 0 ? color.bold(line) : line) + right;
    });
    const { words, reads } = presentStory(reply);
    const story = { words: words.map(printable), reads };
    const strips =
      story.reads.length > 0 ? [drawReads(story, { color: color.isColorSupported, columns })] : [];
    // On a terminal the question stands above already, as it was typed.
    const asked = question.join(" ").replace(/ \?$/, "?");
    return [...(this.out.isTTY ? [] : [asked]), ...answers, ...strips, ""].join("\n");
  }
}

/** The part of a trace that belongs to the present story. */
function presentStory({ trace }: Reply): { words: string[]; reads: Float32Array[] } {
  const start = trace.words.lastIndexOf("<eos>") + 1;
  return { words: trace.words.slice(start), reads: trace.rows.map(({ values }) => values.subarray(start)) };
}

function rounded(value: number): number {
  return Number(value.toPrecision(6));
}

/** Talks on a terminal: a prompt, editing, history, and words that complete themselves. */
async function converse(talk: Conversation, stdin: NodeJS.ReadableStream): Promise<void> {
  const { config, weightCount } = talk.model;
  const known = plainWords(talk.model.vocabulary).filter((word) => /^[a-z]+$/.test(word));
  const terminal = createInterface({
    input: stdin,
    // Prompts are no results: standard output can be kept in a file.
    output: process.stderr,
    prompt: "> ",
    completer: (line: string) => {
      const begun = /[a-z]*$/i.exec(line)![0].toLowerCase();
      return [known.filter((word) => word.startsWith(begun)).map((word) => `${word} `), begun];
    },
  });
  terminal.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  // At the end of the input (^D) lines may still wait to be answered; a closed terminal has no prompt for them.
  let isOpen = true;
  terminal.once("close", () => {
    isOpen = false;
  });
  process.stderr.write(
    `${printable(config.experiment)}: ${thousands(weightCount)} weights` +
      `, a ${config.system.name} with ${thousands(config.system.vocabulary)} words.\n` +
      "Tell a story line by line; a line that ends in ? is answered. :help says more.\n",
  );
  terminal.prompt();
  for await (const line of terminal) {
    if ((await talk.leniently(line)) === "quit") break;
    if (isOpen) terminal.prompt();
  }
  terminal.close();
}
