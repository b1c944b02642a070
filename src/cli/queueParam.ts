/** The queue's address on a command line: it may hold a password, so what is printed and recorded leaves it out. */
import { type Param, text } from "./params.ts";

/** `--queue redis://…`, or `FWM_QUEUE`, which other users of the machine cannot see in the list of processes. */
export function queueParam(): Param<string, undefined> {
  return text({
    placeholder: "url",
    env: "FWM_QUEUE",
    help: "Redis of the queue: redis://user:password@host:6379, rediss:// for TLS",
  });
}

/** A command line without its queue: what is trained does not depend on it. */
export function withoutQueue(line: readonly string[]): string[] {
  return line.filter((word, i) => !isQueue(word) && line[i - 1] !== "--queue");
}

/** A command line that may be printed. */
export function hideQueue(line: readonly string[]): string[] {
  const hide = (url: string): string => url.replace(/\/\/[^@/]*@/, "//***@");
  return line.map((word, i) =>
    line[i - 1] === "--queue" || word.startsWith("--queue=") ? hide(word) : word,
  );
}

function isQueue(word: string): boolean {
  return word === "--queue" || word.startsWith("--queue=");
}
