/**
 * The reader: understands a story sentence by sentence and answers its questions, for all twenty tasks.
 *
 * It does not know the task: what a sentence says decides which part of the world it changes. It never guesses;
 * a sentence it cannot parse, an event that cannot happen and a question the story leaves open are errors.
 */
import { DataError } from "../../errors.ts";
import type { Line, SourceLocation } from "../format.ts";
import type { Answer } from "./answer.ts";
import { Belongings } from "./belongings.ts";
import { Creatures } from "./creatures.ts";
import { Days } from "./days.ts";
import { type Clause, type Inquiry, type LastSubject, parseQuestion, parseStatement } from "./grammar.ts";
import { PlaceMap } from "./map.ts";
import { Moods } from "./moods.ts";
import { NotUnderstood } from "./phrases.ts";
import { Rooms } from "./rooms.ts";
import { Shapes } from "./shapes.ts";
import { Sizes } from "./sizes.ts";

/** Reads one story. `source` says where the story stands, for the errors. */
export class StoryReader {
  private readonly source: SourceLocation | undefined;
  private readonly rooms = new Rooms();
  private readonly belongings = new Belongings(this.rooms);
  private readonly days = new Days();
  private readonly map = new PlaceMap();
  private readonly creatures = new Creatures();
  private readonly shapes = new Shapes();
  private readonly sizes = new Sizes();
  private readonly moods = new Moods();
  private last: LastSubject = null;

  constructor(source?: SourceLocation) {
    this.source = source;
  }

  /** Takes in a statement; answers a question (the line's own answer is not looked at). */
  read(line: Line): Answer | null {
    if (line.kind === "question") return this.ask(line.words, line.id);
    this.state(line.words, line.id);
    return null;
  }

  /** Takes in a statement. */
  state(words: readonly string[], id: number): void {
    this.locate(words, id, () => {
      this.learn(parseStatement(words, this.last), id);
    });
  }

  /** Answers a question; `id` is its line in the story, for the errors. */
  ask(words: readonly string[], id: number): Answer {
    return this.locate(words, id, () => this.find(parseQuestion(words)));
  }

  private learn(clause: Clause, id: number): void {
    switch (clause.type) {
      case "move":
        if (clause.time !== undefined) {
          this.days.visit(clause.who[0]!, clause.place, clause.time, id);
          break;
        }
        for (const who of clause.who) {
          this.rooms.put(who, [clause.place], clause.sequel === true ? [...this.rooms.idsOf(who), id] : [id]);
          this.belongings.follow(who);
        }
        this.last = clause.who;
        break;
      case "in":
        this.rooms.put(clause.who, clause.places, [id]);
        break;
      case "notIn":
        this.rooms.deny(clause.who, clause.place, id);
        break;
      case "take":
        this.belongings.take(clause.who, clause.thing, id);
        break;
      case "drop":
        this.belongings.drop(clause.who, clause.thing, id);
        break;
      case "give":
        this.belongings.give(clause.who, clause.thing, clause.to, id);
        break;
      case "direction":
        this.map.connect(clause.place, clause.direction, clause.from, id);
        break;
      case "kind":
        this.creatures.kind(clause.who, clause.kind, id);
        break;
      case "colour":
        this.creatures.colour(clause.who, clause.colour, id);
        break;
      case "fear":
        this.creatures.fear(clause.kind, clause.of, id);
        break;
      case "position":
        this.shapes.place(clause.shape, clause.relation, clause.from, id);
        break;
      case "size":
        this.sizes.compare(clause.bigger, clause.smaller, id);
        break;
      case "mood":
        this.moods.feel(clause.who, clause.mood, id);
        break;
    }
  }

  private find(inquiry: Inquiry): Answer {
    switch (inquiry.type) {
      case "whereIs":
        return this.rooms.where(inquiry.who);
      case "isIn":
        return this.rooms.isIn(inquiry.who, inquiry.place);
      case "whereIsThing":
        return this.belongings.where(inquiry.thing);
      case "whereWasThing":
        return this.belongings.whereBefore(inquiry.thing, inquiry.before);
      case "howMany":
        return this.belongings.count(inquiry.who);
      case "carrying":
        return this.belongings.list(inquiry.who);
      case "whatGiven":
        return this.belongings.gift("thing", { from: inquiry.who, to: inquiry.to });
      case "whoGave":
        return this.belongings.gift("from", given(inquiry));
      case "toWhom":
        return this.belongings.gift("to", given(inquiry));
      case "whereWas":
        return this.days.whereBefore(inquiry.who, inquiry.before);
      case "whatIsAt":
        return this.map.whatIs(inquiry.direction, inquiry.from);
      case "path":
        return this.map.path(inquiry.from, inquiry.to);
      case "afraidOf":
        return this.creatures.afraidOf(inquiry.who);
      case "colourOf":
        return this.creatures.colourOf(inquiry.who);
      case "isAt":
        return this.shapes.isAt(inquiry.shape, inquiry.relation, inquiry.from);
      case "isBigger":
        return this.sizes.isBigger(inquiry.bigger, inquiry.smaller);
      case "whereWill":
        return this.moods.whereWill(inquiry.who);
      case "whyGo":
        return this.moods.why(inquiry.who, { place: inquiry.place });
      case "whyGet":
        return this.moods.why(inquiry.who, { thing: inquiry.thing });
    }
  }

  private locate<Result>(words: readonly string[], id: number, work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof NotUnderstood)) throw error;
      const where =
        this.source === undefined ? `line ${id}` : `${this.source.file}:${this.source.line + id - 1}`;
      throw new DataError(`${where}: ${error.message}`, {
        sentence: words.join(" "),
        line: `${id} of the story`,
        hint: "the reader knows the sentences of bAbI's twenty tasks; check this line and those before it",
      });
    }
  }
}

function given(inquiry: { thing: string; who?: string; to?: string }): {
  thing: string;
  from?: string;
  to?: string;
} {
  return {
    thing: inquiry.thing,
    ...(inquiry.who === undefined ? {} : { from: inquiry.who }),
    ...(inquiry.to === undefined ? {} : { to: inquiry.to }),
  };
}
