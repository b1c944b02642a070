/** `fwm ask`: a story line by line, and answers with what each read of the memory matched. */
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { StoryReader } from "../babi/reader/reader.ts";
import { DataError, printable, UsageError } from "../errors.ts";
import type { FwmModel } from "../inference/model.ts";
import { parseLine } from "../inference/sentences.ts";
import type { Reply, Stream } from "../inference/stream.ts";
import { encodeText, plainWords } from "../inference/text.ts";
import { thousands } from "../report/table.ts";
import { command } from "./command.ts";
import { drawBar, drawReads } from "./heatmap.ts";
import type { Output } from "./output.ts";
import { file, flag, folder, integer, oneOf } from "./params.ts";
import { shipped, whereIs } from "./shipped.ts";

/** The `ask` command. */
export const askCommand = command({
  name: "ask",
  summary: "Tell a model a story and ask it questions.",
  details:
    "Statements and questions, one line each; a question is answered, also without its ?. Under the answers stand the " +
    "story's words as each read of the memory matched them. After a question the model goes on with its own " +
    "answer, unless the line gives the true one behind a tab, as bAbI files do. --reader shows what a program of rules makes of the same story, for stories in bAbI's sentences. " +
    "--json gives a line per question.",
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
    reader: flag({ help: "show the symbolic reader's answer beside the model's" }),
    checkpoint: oneOf(["best", "last"], { help: "of a run: which checkpoint; default: best, else last" }),
  },
  run: async ({ args, options, out, stdin }) => {
    const { loadModel } = await import("../inference/load.ts");
    const { checkpoint, story, top, reader } = options;
    const hint = "train one: fwm train catbabi-qa-fwm; then: fwm ask runs/catbabi-qa-fwm-seed1";
    const model = await loadModel(whereIs(args.model, hint), checkpoint ? { which: checkpoint } : {});
    if (!model.verified) {
      out.warn(`${args.model}: there is no manifest.json, so damage to its files may go unseen`);
    }
    const talk = new Conversation(model, out, { top, reader });
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
  Where is Mary?               a question; the story continues with its answer
  :new                         start a new story; the memory is kept
  :words                       list the known words
  :reset                       clear the memory and start again
  :quit                        leave (also ^D)
Known words complete with the tab key.`;

/** Lines in, answers out. */
class Conversation {
  private readonly stream: Stream;
  /** Whether anything was read since the last reset. */
  private begun = false;
  private reader = new SecondReader();

  constructor(
    readonly model: FwmModel,
    private readonly out: Output,
    private readonly options: { readonly top: number; readonly reader: boolean },
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
    const { sentences, answer, number } = parseLine(line);
    const words = sentences.flatMap((sentence) => sentence.words);
    encodeText(this.model.vocabulary, answer ? [...words, answer] : words);
    if (number === "1") await this.newStory();
    this.begun = true;
    for (const sentence of sentences) {
      if (sentence.kind === "statement") {
        this.reader.state(sentence.words);
        await this.stream.read(sentence.words);
        continue;
      }
      if (sentence.isTaken) this.out.note(`taken as a question: ${plain(sentence.words)}`);
      await this.ask(sentence.words, answer);
    }
    return undefined;
  }

  private async newStory(): Promise<void> {
    if (this.begun) await this.stream.newStory();
    this.reader = new SecondReader();
  }

  private async obey(line: string): Promise<"quit" | undefined> {
    switch (line) {
      case ":quit":
        return "quit";
      case ":help":
        this.out.note(help);
        return undefined;
      case ":new":
        await this.newStory();
        this.out.note("a new story begins; the memory stays");
        return undefined;
      case ":words":
        this.out.note(
          inLines(
            plainWords(this.model.vocabulary)
              .filter((word) => !/^[.?]$/.test(word))
              .map(printable)
              .sort(),
            this.out.columns,
          ),
        );
        return undefined;
      case ":reset":
        await this.stream.reset();
        this.reader = new SecondReader();
        this.begun = false;
        this.out.note("everything is forgotten; a new story begins");
        return undefined;
      default:
        throw new UsageError(`there is no command ${line}`, { known: ":help, :new, :words, :reset, :quit" });
    }
  }

  private async ask(question: readonly string[], given: string | undefined): Promise<void> {
    // The second answer is always asked for: the margin says how far the first one is ahead.
    const reply = await this.stream.ask(question, { top: Math.max(2, this.options.top) });
    if (given !== undefined) await this.stream.tell(given);
    const [first, second] = reply.answers;
    const asked: Asked = {
      question,
      given,
      answers: reply.answers.slice(0, this.options.top),
      margin: first!.probability - (second?.probability ?? 0),
      ...presentStory(reply),
      ...(this.options.reader ? { read: this.reader.ask(question) } : {}),
    };
    this.out.record(documentOf(asked), () => this.show(asked));
  }

  private show({ question, given, answers, margin, words, reads, read }: Asked): string {
    const { color, columns } = this.out;
    const width = Math.max(...answers.map(({ word }) => printable(word).length));
    const lines = answers.map(({ word: raw, probability }, i) => {
      const word = printable(raw);
      const right =
        given === undefined ? "" : word === given ? color.green("  ✓") : i === 0 ? color.red("  ✗") : "";
      const share = `${(100 * probability).toFixed(1)}%`.padStart(6);
      const line = `  ${word.padEnd(width)} ${share} ${drawBar(probability, 20)}`.trimEnd();
      return i === 0 ? `${color.bold(line)}${right}  margin ${(100 * margin).toFixed(1)}%` : line + right;
    });
    if (read) {
      const { answer, reason } = read;
      const differs = answer !== null && answer !== answers[0]!.word ? color.red("  ≠ the model") : "";
      lines.push(answer === null ? `  reader: no answer (${reason})` : `  reader: ${answer}${differs}`);
    }
    const story = { words: words.map(printable), reads };
    const strips = reads.length > 0 ? [drawReads(story, { color: color.isColorSupported, columns })] : [];
    // On a terminal the question stands above already, as it was typed.
    return [...(this.out.isTTY ? [] : [plain(question)]), ...lines, ...strips, ""].join("\n");
  }
}

/** A question, and everything that is shown of it. */
interface Asked {
  readonly question: readonly string[];
  /** The answer that the line gave. */
  readonly given: string | undefined;
  readonly answers: Reply["answers"];
  /** How much more probable the first answer is than the second. */
  readonly margin: number;
  readonly words: readonly string[];
  readonly reads: readonly Float32Array[];
  readonly read?: SecondAnswer;
}

function documentOf({ question, given, answers, margin, words, reads, read }: Asked) {
  const best = answers[0]!.word;
  return {
    question: question.join(" "),
    answers: answers.map(({ word, probability }) => ({ word, probability: rounded(probability) })),
    margin: rounded(margin),
    ...(given === undefined ? {} : { given, correct: best === given }),
    ...(read ? { reader: { ...read, agrees: read.answer === null ? null : read.answer === best } } : {}),
    words,
    reads: reads.map((values) => Array.from(values, rounded)),
  };
}

/** What the symbolic reader says to a question: an answer, or why there is none. */
interface SecondAnswer {
  readonly answer: string | null;
  readonly reason: string | null;
}

/** The symbolic reader beside the model: it reads the same story, and never guesses. */
class SecondReader {
  private readonly reader = new StoryReader();
  private line = 0;
  /** Why it does not understand the story, once it does not. */
  private broken: string | undefined;

  state(words: readonly string[]): void {
    this.attempt(
      () => this.reader.state(withoutMark(words), ++this.line),
      (reason) => (this.broken ??= reason),
    );
  }

  ask(words: readonly string[]): SecondAnswer {
    if (this.broken !== undefined) return { answer: null, reason: this.broken };
    let reason: string | null = null;
    const answer = this.attempt(
      () => this.reader.ask(withoutMark(words), ++this.line).answer,
      (why) => (reason = why),
    );
    return { answer: answer ?? null, reason };
  }

  private attempt<T>(read: () => T, failed: (reason: string) => void): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      failed(error.message.split("\n")[0]!);
      return undefined;
    }
  }
}

function withoutMark(words: readonly string[]): readonly string[] {
  return words.slice(0, -1);
}

/** Words as a person writes them: the mark right behind the last one. */
function plain(words: readonly string[]): string {
  return words.join(" ").replace(/ ([.?])$/, "$1");
}

/** Words in lines of a width. */
function inLines(words: readonly string[], columns: number): string {
  const lines: string[] = [""];
  for (const word of words) {
    const line = lines.at(-1)!;
    if (line !== "" && line.length + 1 + word.length > columns - 2) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines.map((line) => `  ${line}`).join("\n");
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
    `${printable(config.experiment)}: ${thousands(weightCount)} parameters` +
      `, a ${config.system.name} with ${thousands(config.system.vocabulary)} words.\n` +
      "Tell a story line by line; a question is answered. :help says more.\n",
  );
  terminal.prompt();
  for await (const line of terminal) {
    if ((await talk.leniently(line)) === "quit") break;
    if (isOpen) terminal.prompt();
  }
  terminal.close();
}
