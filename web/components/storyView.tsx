/**
 * A story as the model read it: under each word its share in every read, as in the paper's figure, and how strongly it
 * wrote. Words are in lines, so the figure is legible at any width.
 */
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import type { AskAnswer } from "../../src/studio/api.ts";
import "../style/storyView.css";

/** A token, and what each read matched there. */
interface Column {
  readonly index: number;
  readonly word: string;
  readonly isQuestion: boolean;
  readonly answer: "given" | "own" | null;
  readonly reads: readonly { readonly name: string; readonly value: number; readonly share: number }[];
  readonly beta: number | null;
  readonly norm: number | null;
}

/** What a story view shows. */
export interface StoryViewProps {
  readonly answer: AskAnswer;
  /** Which of the story's questions. */
  readonly question: number;
  /** Called with a token and the word it is to be; without it words cannot be changed. */
  readonly onEdit?: (token: number, word: string) => void;
  /** Words that may be put in. */
  readonly words?: readonly string[];
}

/** The figure of one question. */
export function StoryView({ answer, question, onEdit, words = [] }: StoryViewProps) {
  const list = useId();
  const chosen = useSignal<number | null>(null);
  const editing = useSignal<number | null>(null);
  const lines = linesOf(answer, question);
  const asked = answer.questions[question];
  const names = asked?.rows.map(({ name }) => name) ?? [];
  const shown = chosen.value === null ? undefined : lines.flat().find(({ index }) => index === chosen.value);
  const hasMemory = answer.tokens.some(({ beta }) => beta !== null);
  return (
    <div class="story-view">
      <div class="story-legend">
        {names.length > 0 ? (
          <span>Rows: {rowNames(names)}. Stronger blue: matched more; orange: the opposite.</span>
        ) : (
          <span>This system keeps nothing that could be traced back to single words.</span>
        )}
        {hasMemory ? <span>Bottom row: strength of the write.</span> : null}
      </div>
      <ol class="story-lines" onMouseLeave={() => (chosen.value = null)}>
        {lines.map((line, i) => (
          <li key={i} class={line[0]?.isQuestion ? "asked" : ""}>
            {line.map((column) => (
              <Word
                key={column.index}
                column={column}
                list={list}
                editing={editing.value === column.index}
                editable={onEdit !== undefined && column.answer === null}
                onChoose={() => (chosen.value = column.index)}
                onStart={() => (editing.value = column.index)}
                onDone={(word) => {
                  editing.value = null;
                  if (word && word !== column.word) onEdit?.(column.index, word);
                }}
              />
            ))}
          </li>
        ))}
      </ol>
      {names.length > 0 || hasMemory ? (
        <output class="story-numbers numbers">
          {shown ? (
            <Numbers column={shown} />
          ) : (
            <span class="muted">Point at a word, or tab to it, for its numbers.</span>
          )}
        </output>
      ) : null}
      <datalist id={list}>
        {words.map((word) => (
          <option key={word} value={word} />
        ))}
      </datalist>
    </div>
  );
}

function Word(props: {
  column: Column;
  /** Id of the list of words to complete from. */
  list: string;
  editing: boolean;
  editable: boolean;
  onChoose: () => void;
  onStart: () => void;
  onDone: (word?: string) => void;
}) {
  const { column, editing, editable, onChoose, onStart, onDone } = props;
  const { word, reads, beta, answer } = column;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the numbers it shows on hover are shown on focus too
    <span class={`story-word ${answer ? "answered" : ""}`} onMouseEnter={onChoose}>
      {editing ? (
        <input
          class="story-input"
          list={props.list}
          aria-label={`Instead of ${word}`}
          defaultValue={word}
          size={Math.max(4, word.length)}
          ref={(element) => element?.select()}
          onBlur={(event) => onDone(event.currentTarget.value.trim())}
          onKeyDown={(event) => {
            if (event.key === "Enter") event.currentTarget.blur();
            if (event.key === "Escape") onDone();
          }}
        />
      ) : (
        <button
          type="button"
          class="story-text"
          aria-disabled={!editable}
          title={editable ? "Change this word" : answer === "own" ? "The model's own answer" : ""}
          onFocus={onChoose}
          onClick={() => (editable ? onStart() : undefined)}
        >
          {word}
        </button>
      )}
      <Shares reads={reads} beta={beta} />
    </span>
  );
}

const cell = 9;
/** Reads or heads that are drawn. */
const mostRows = 12;

function rowNames(names: readonly string[]): string {
  if (names.length <= 6) return names.join(", ");
  return names.length <= mostRows
    ? `${names.length} heads`
    : `the first ${mostRows} of ${names.length} heads`;
}

/** One cell per read, then a bar for the strength of the write. */
function Shares({ reads, beta }: Pick<Column, "reads" | "beta">) {
  const shownReads = reads.slice(0, mostRows);
  const height = shownReads.length * (cell + 1) + (beta === null ? 0 : cell);
  if (height === 0) return null;
  return (
    <svg
      class="story-shares"
      height={height}
      preserveAspectRatio="none"
      viewBox={`0 0 10 ${height}`}
      aria-hidden="true"
    >
      {shownReads.map(({ name, share }, i) => (
        <rect
          key={name}
          y={i * (cell + 1)}
          width="10"
          height={cell}
          class={share < 0 ? "share low" : "share high"}
          fill-opacity={0.06 + 0.94 * Math.min(1, Math.abs(share))}
        />
      ))}
      {beta === null ? null : (
        <>
          <rect y={height - cell + 3} width="10" height={cell - 5} class="strength-back" />
          <rect y={height - cell + 3} width={10 * beta} height={cell - 5} class="strength" />
        </>
      )}
    </svg>
  );
}

function Numbers({ column: { word, reads, beta, norm } }: { column: Column }) {
  return (
    <>
      <strong>{word}</strong>
      {reads.slice(0, mostRows).map(({ name, value }) => (
        <span key={name}>
          {name} {value.toPrecision(3)}
        </span>
      ))}
      {beta === null ? null : <span>write strength {beta.toFixed(3)}</span>}
      {norm === null ? null : <span>memory norm {norm.toFixed(3)}</span>}
    </>
  );
}

/** The tokens up to the question's mark, line by line; shares are relative to the strongest match of their read. */
function linesOf(answer: AskAnswer, question: number): Column[][] {
  const asked = answer.questions[question];
  const end = asked ? asked.at + 1 : answer.tokens.length;
  const tops = asked?.rows.map(({ values }) => Math.max(1e-12, ...values.map(Math.abs))) ?? [];
  const lines: Column[][] = [];
  let before: number | undefined;
  answer.tokens.slice(0, end).forEach(({ word, line, beta, norm, answer: read }, index) => {
    if (line < 0) return;
    const isQuestion = asked !== undefined && index >= asked.from;
    if (line !== before || (isQuestion && index === asked.from)) lines.push([]);
    before = line;
    lines.at(-1)!.push({
      index,
      word,
      isQuestion,
      answer: read,
      beta,
      norm,
      reads:
        asked?.rows.map(({ name, values }, i) => ({
          name,
          value: values[index] ?? 0,
          share: (values[index] ?? 0) / tops[i]!,
        })) ?? [],
    });
  });
  return lines;
}
