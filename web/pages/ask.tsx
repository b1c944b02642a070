/** Ask: a story on the left, answers on the right, and below what each read of the memory matched. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { AskAnswer, ModelEntry, ModelRef } from "../../src/studio/api.ts";
import { BackendError, useBackend } from "../backend.ts";
import { AlongStory } from "../components/alongStory.tsx";
import { Bars } from "../components/bars.tsx";
import { ModelPicker } from "../components/modelPicker.tsx";
import { Empty, Failed, Loading } from "../components/states.tsx";
import { StoryPanel } from "../components/storyPanel.tsx";
import { StoryView } from "../components/storyView.tsx";
import { exampleOf, replaceWord } from "../examples.ts";
import { query, setQuery } from "../router.ts";
import { type Asking, useAnswer } from "../useAnswer.ts";
import { parseRef, showRef, useModels } from "../useModels.ts";

/** The page. */
export default function AskPage() {
  const { models, reload } = useModels("answers");
  const { list, error } = models.value;
  if (error) return <Failed what="The models could not be listed" error={error} retry={reload} />;
  if (!list) return <Loading what="Looking for models" />;
  if (list.length === 0) {
    return (
      <Empty title="No model that answers questions">
        <p>
          Train one: <code>fwm train catbabi-qa-fwm</code>. It appears here with its first checkpoint.
        </p>
      </Empty>
    );
  }
  return <Ask models={list} />;
}

/** The page with models to choose from. */
export function Ask({ models, revision = 0 }: { models: readonly ModelEntry[]; revision?: number }) {
  const state = query.value;
  const first = known(models, parseRef(state.get("model"))) ?? { id: models[0]!.id };
  const second = known(models, parseRef(state.get("second")));
  const story = state.get("story") ?? exampleOf(15, 0).story;
  const answers = [useAnswer(first, story, { revision }), useAnswer(second, story, { revision })] as const;
  const words = useVocabulary(first);
  const question = Number(state.get("question") ?? -1);
  const chosen = second ? [first, second] : [first];
  return (
    <>
      <div class="page-head">
        <h1>Ask</h1>
        <p>Tell a model a story and ask it questions; see which words each read of its memory matched.</p>
      </div>
      <div class="panel">
        <div class="columns even">
          <ModelPicker
            label="Model"
            models={models}
            chosen={first}
            onChoose={(ref) => setQuery({ model: showRef(ref) })}
          />
          <ModelPicker
            label="Beside it"
            models={models}
            chosen={second}
            none="no second model"
            onChoose={(ref) => setQuery({ second: showRef(ref) })}
          />
        </div>
      </div>
      <div class="columns">
        <StoryPanel story={story} />
        <div class="stack">
          {chosen.map((ref, i) => (
            <AnswerPanel
              key={i}
              model={labelOf(models, ref)}
              asking={answers[i]!.value}
              question={question}
            />
          ))}
        </div>
      </div>
      <div class={second ? "columns even" : "stack"}>
        {chosen.map((ref, i) => {
          const { answer } = answers[i]!.value;
          return answer ? (
            <TracePanel
              key={i}
              title={second ? labelOf(models, ref) : undefined}
              answer={answer}
              question={question}
              words={words}
              onEdit={(token, word) => setQuery({ story: edited(story, answer, token, word) })}
            />
          ) : null;
        })}
      </div>
    </>
  );
}

/** The answers to one question of the story; the last one unless another is chosen. */
function AnswerPanel(props: { model: string; asking: Asking; question: number }) {
  const { answer, error, isWaiting } = props.asking;
  const asked = answer && questionOf(answer, props.question);
  return (
    <section class="panel answer-panel" aria-label={`Answer of ${props.model}`} aria-busy={isWaiting}>
      <div class="panel-head">
        <h2>{asked ? plain(asked.question) : "Answer"}</h2>
        <small class="numbers">{answer ? `${props.model}, ${Math.round(answer.ms)} ms` : props.model}</small>
      </div>
      {error ? (
        <AskFailed error={error} />
      ) : asked ? (
        <>
          <div aria-live="polite" class="visually-hidden">
            {`${asked.answers[0]!.word}, ${(100 * asked.answers[0]!.probability).toFixed(0)} per cent`}
          </div>
          <Bars
            label="Most probable answers"
            rows={5}
            bars={asked.answers.map(({ word, probability }, i) => ({
              label: word,
              value: probability,
              mark: markOf(word, i, asked.given?.word),
            }))}
          />
          <small class="numbers answer-given">
            {asked.given
              ? `The story gives the true answer: ${asked.given.word} (${(100 * asked.given.probability).toFixed(1)} %).`
              : "The story gives no true answer; put it behind the question after a tab."}
          </small>
        </>
      ) : answer ? (
        <p class="muted">The story has no question. End a line in “?”.</p>
      ) : (
        <Loading what="The model is loading" />
      )}
    </section>
  );
}

function markOf(word: string, rank: number, given: string | undefined): "right" | "wrong" | undefined {
  if (given === undefined) return undefined;
  return word === given ? "right" : rank === 0 ? "wrong" : undefined;
}

/** What is wrong with the story, with words to take instead of unknown ones. */
function AskFailed({ error }: { error: unknown }) {
  const unknown = error instanceof BackendError ? Object.entries(error.unknownWords) : [];
  if (unknown.length === 0) return <Failed what="No answer" error={error} />;
  const story = query.value.get("story") ?? "";
  const replace = (word: string, by: string): void =>
    setQuery({ story: story.replace(new RegExp(`(?<![\\w-])${escaped(word)}(?![\\w-])`, "gi"), by) });
  return (
    <div class="failure" role="alert">
      <strong>The model does not know {unknown.length === 1 ? "this word" : "these words"}</strong>
      {unknown.map(([word, near]) => (
        <div key={word} class="row">
          <span>“{word}”</span>
          {near.length === 0 ? (
            <span class="muted">nothing near it is known</span>
          ) : (
            <span class="muted">put in:</span>
          )}
          {near.map((by) => (
            <button key={by} type="button" onClick={() => replace(word, by)}>
              {by}
            </button>
          ))}
        </div>
      ))}
    </div>
  );
}

function TracePanel(props: {
  title: string | undefined;
  answer: AskAnswer;
  question: number;
  words: readonly string[];
  onEdit: (token: number, word: string) => void;
}) {
  const { title, answer, question, words, onEdit } = props;
  const index = indexOf(answer, question);
  const what =
    answer.shows === "reads"
      ? "What each read matched"
      : answer.shows === "attention"
        ? "What each head attended to"
        : "The story as it was read";
  return (
    <section class="panel trace-panel" aria-label={title ? `${what}: ${title}` : what}>
      <div class="panel-head">
        <h2>{title ? `${what}: ${title}` : what}</h2>
        {answer.questions.length > 1 ? (
          <label class="row muted">
            Question
            <select value={index} onChange={({ currentTarget: { value } }) => setQuery({ question: value })}>
              {answer.questions.map(({ at, question: text }, i) => (
                <option key={at} value={i}>
                  {plain(text)}
                </option>
              ))}
            </select>
          </label>
        ) : null}
      </div>
      <StoryView answer={answer} question={index} words={words} onEdit={onEdit} />
      <AlongStory tokens={answer.tokens} />
    </section>
  );
}

/** The words that a model knows; none until they are there. */
function useVocabulary(model: ModelRef): readonly string[] {
  const backend = useBackend();
  const words = useSignal<readonly string[]>([]);
  const { id, checkpoint } = model;
  const ref = useMemo(() => ({ id, ...(checkpoint ? { checkpoint } : {}) }), [id, checkpoint]);
  useEffect(() => {
    backend.vocabulary(ref).then(
      (known) => {
        words.value = known;
      },
      // Completion is a convenience; what keeps the model from loading is said where its answer would stand.
      () => {
        words.value = [];
      },
    );
  }, [backend, ref, words]);
  return words.value;
}

function known(models: readonly ModelEntry[], ref: ModelRef | undefined): ModelRef | undefined {
  return models.some(({ id }) => id === ref?.id) ? ref : undefined;
}

function labelOf(models: readonly ModelEntry[], ref: ModelRef): string {
  return models.find(({ id }) => id === ref.id)?.label ?? ref.id;
}

function indexOf({ questions }: AskAnswer, chosen: number): number {
  return chosen >= 0 && chosen < questions.length ? chosen : questions.length - 1;
}

function questionOf(answer: AskAnswer, chosen: number): AskAnswer["questions"][number] | undefined {
  return answer.questions[indexOf(answer, chosen)];
}

/** The story with another word in place of a token. */
function edited(story: string, { tokens }: AskAnswer, token: number, word: string): string {
  const { line } = tokens[token]!;
  const nth = tokens.slice(0, token).filter((each) => each.line === line && each.answer === null).length;
  return replaceWord(story, line, nth, word);
}

/** Words as a person writes them: the mark right behind the last one. */
function plain(question: string): string {
  return (question.charAt(0).toUpperCase() + question.slice(1)).replace(/ ([.?])$/, "$1");
}

function escaped(word: string): string {
  return word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
