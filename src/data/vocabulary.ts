/**
 * The vocabulary of catbAbI: a fixed list, so that models and data always agree on what a number means.
 *
 *   0           <pad>               fills a row that has run dry at the end of an epoch
 *   1           <eos>               stands between two stories
 *   2 .. 179    the 178 words       every token of the 1k and 10k files, all partitions, in code-unit order
 *   180 .. 199  <task 1> .. <20>    never occur in a stream
 *
 * The authors' builder puts the 20 task numbers into its vocabulary; no input ever uses them, but the
 * paper's parameter counts (694k for FWM) include their rows, so they stay.
 */
import { DataError, nearest } from "../errors.ts";

/** Every token of bAbI v1.2 English: words, ".", "?", and answers, of which some join words with a comma. */
export const babiWords: readonly string[] = (
  ". ? a above afraid after afternoon afterwards and antoine apple apple,football " +
  "apple,football,milk apple,milk apple,milk,football are back bathroom bedroom before below " +
  "bernhard bigger bill blue bored box brian carrying cat cats chest chocolate chocolates cinema " +
  "color container daniel did discarded do does down dropped e,e e,n e,s east either emily evening " +
  "fit fits following football football,apple football,apple,milk football,milk football,milk,apple " +
  "fred frog from garden gave gertrude get give go got grabbed gray green greg hallway handed he " +
  "how hungry in inside is jason jeff jessica john journeyed julie julius kitchen left lily lion " +
  "longer many mary maybe mice milk milk,apple milk,apple,football milk,football " +
  "milk,football,apple morning mouse moved n,e n,n n,w no none north not nothing objects of office " +
  "one or pajamas park passed picked pink put received rectangle red rhino right s,e s,s s,w sandra " +
  "school she sheep south sphere square suitcase sumit swan than that the then there they thirsty " +
  "this three tired to took travelled triangle two up w,n w,s w,w was went west what where white " +
  "who why will winona wolf wolves yann yellow yes yesterday you"
).split(" ");

/** The number of `<pad>`. */
export const padId = 0;
/** The number of `<eos>`. */
export const eosId = 1;

/** A fixed list of tokens and their numbers. */
export class Vocabulary {
  readonly words: readonly string[];
  readonly #ids: ReadonlyMap<string, number>;

  constructor(words: readonly string[]) {
    this.words = words;
    this.#ids = new Map(words.map((word, id) => [word, id]));
    if (this.#ids.size !== words.length) throw new Error("a vocabulary names each word once");
  }

  /** How many entries there are, unused ones included. */
  get size(): number {
    return this.words.length;
  }

  /** The number of `word`, or undefined when the vocabulary does not have it. */
  id(word: string): number | undefined {
    return this.#ids.get(word);
  }

  /** The word with number `id`. */
  word(id: number): string {
    const word = this.words[id];
    if (word === undefined) throw new RangeError(`no word has number ${id}; there are ${this.size}`);
    return word;
  }

  /** The known words closest in spelling to `word`. */
  nearest(word: string): string[] {
    return nearest(word, this.words);
  }

  /** The numbers of `tokens`; `where` (a file and line) starts the message when one is unknown. */
  encode(tokens: readonly string[], where = "text"): Uint16Array {
    const ids = new Uint16Array(tokens.length);
    for (let i = 0; i < tokens.length; i++) {
      const id = this.#ids.get(tokens[i]!);
      if (id === undefined) throw this.#unknown(tokens[i]!, where);
      ids[i] = id;
    }
    return ids;
  }

  /** The words with the numbers `ids`. */
  decode(ids: Iterable<number>): string[] {
    return Array.from(ids, (id) => this.word(id));
  }

  #unknown(word: string, where: string): DataError {
    const close = this.nearest(word);
    return new DataError(`${where}: the vocabulary has no word ${JSON.stringify(word)}`, {
      nearest: close.join(", "),
      ...(this === catbabiVocabulary
        ? { hint: `the ${babiWords.length} words of bAbI v1.2 English are all there are` }
        : {}),
    });
  }
}

const unusedEntries = 20;

/** The vocabulary that every catbAbI stream and model uses: 200 entries. */
export const catbabiVocabulary = new Vocabulary([
  "<pad>",
  "<eos>",
  ...babiWords,
  ...Array.from({ length: unusedEntries }, (_, task) => `<task ${task + 1}>`),
]);
