/** Text: how surprising each word of a passage is to one language model or two, and what they write themselves. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import {
  type GenerateAnswer,
  limits,
  type ModelEntry,
  type ModelRef,
  type PassageAnswer,
} from "../../src/studio/api.ts";
import { call } from "../api.ts";
import { ModelPicker } from "../components/modelPicker.tsx";
import { Empty, Failed, Loading } from "../components/states.tsx";
import { query, setQuery } from "../router.ts";
import "../style/text.css";
import { parseRef, showRef, useModels } from "../useModels.ts";

/** The page. */
export default function TextPage() {
  const { models, reload } = useModels("text");
  const { list, error } = models.value;
  if (error) return <Failed what="The models could not be listed" error={error} retry={reload} />;
  if (!list) return <Loading what="Looking for language models" />;
  if (list.length === 0) {
    return (
      <Empty title="No language model">
        <p>
          Train one: <code>fwm train ptb-fwm-small</code>, or on a text of your own
          (docs/language-modelling.md). It appears here with its first checkpoint.
        </p>
      </Empty>
    );
  }
  return <TextView models={list} />;
}

/** What is read if nothing is given. */
const sample = "the company said it expects to report a loss for the quarter\nthe company said";

function TextView({ models }: { models: readonly ModelEntry[] }) {
  const state = query.value;
  const known = (ref: ModelRef | undefined): ModelRef | undefined =>
    models.some(({ id }) => id === ref?.id) ? ref : undefined;
  const first = known(parseRef(state.get("model"))) ?? { id: models[0]!.id };
  const second = known(parseRef(state.get("second")));
  return (
    <>
      <div class="page-head">
        <h1>Text</h1>
        <p>Bits of each word: how far its probability was from certain. Less is better.</p>
      </div>
      <div class="columns even">
        <div class="panel">
          <ModelPicker
            label="Model"
            models={models}
            chosen={first}
            onChoose={(ref) => setQuery({ model: showRef(ref) })}
          />
        </div>
        <div class="panel">
          <ModelPicker
            label="Compared with"
            models={models}
            chosen={second}
            none="none"
            onChoose={(ref) => setQuery({ second: showRef(ref) })}
          />
        </div>
      </div>
      <Passage first={first} second={second} />
      <Generation first={first} second={second} />
    </>
  );
}

interface Losses {
  readonly answer?: PassageAnswer;
  readonly error?: unknown;
}

/** Losses of a passage under a model; those before stay until they are there. */
function useLosses(ref: ModelRef | undefined, text: string): Losses {
  const state = useSignal<Losses>({});
  const key = showRef(ref);
  useEffect(() => {
    if (!ref || text.trim() === "") {
      state.value = {};
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(() => {
      call<PassageAnswer>("passage", { body: { model: ref, text }, signal: stop.signal }).then(
        (answer) => {
          state.value = { answer };
        },
        (error: unknown) => {
          if (!stop.signal.aborted) state.value = { error };
        },
      );
    }, 120);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
    // The key says all that matters of the reference.
  }, [key, text, state]);
  return state.value;
}

function Passage({ first, second }: { first: ModelRef; second: ModelRef | undefined }) {
  const text = query.value.get("text") ?? sample;
  const one = useLosses(first, text);
  const two = useLosses(second, text);
  const error = one.error ?? two.error;
  const words = one.answer?.words ?? [];
  // While one of the answers is still of the passage before, only the other is shown.
  const others = two.answer && two.answer.words.length === words.length ? two.answer.words : undefined;
  return (
    <section class="panel" aria-label="Passage">
      <label class="field">
        Passage
        <textarea
          rows={4}
          maxLength={limits.storyCharacters}
          value={text}
          spellcheck={false}
          onInput={({ currentTarget }) => setQuery({ text: currentTarget.value || " " })}
        />
      </label>
      {error ? <Failed what="The passage could not be read" error={error} /> : null}
      <Summary name={first.id} losses={one} />
      {second ? <Summary name={second.id} losses={two} /> : null}
      <ol class="passage" aria-label="Words with their bits">
        {words.map(({ word, known, bits }, i) => (
          <PassageWord key={i} word={word} known={known} bits={bits} other={others?.[i]?.bits} />
        ))}
      </ol>
      <small>
        {second
          ? "Upper bar: the first model; lower bar: the second. Blue words are less surprising to the second model, orange ones to the first; the stronger, the further apart."
          : "The longer the bar, the more surprising the word. Choose a second model to see where the two differ."}
      </small>
    </section>
  );
}

/** Bits at which a bar is full. */
const mostBits = 16;

function PassageWord(props: { word: string; known: boolean; bits: number; other: number | undefined }) {
  const { word, known, bits, other } = props;
  const difference = other === undefined ? 0 : bits - other;
  const strength = Math.min(1, Math.abs(difference) / 4);
  const said =
    other === undefined ? `${bits.toFixed(2)} bits` : `${bits.toFixed(2)} and ${other.toFixed(2)} bits`;
  const bar = (value: number): number => (40 * Math.min(mostBits, value)) / mostBits;
  return (
    <li
      title={`${word}: ${said}${known ? "" : "; not in the vocabulary"}`}
      class={word === "<eos>" ? "line-end" : undefined}
    >
      <span class="word-box">
        <svg class="tint" aria-hidden="true" preserveAspectRatio="none" viewBox="0 0 1 1">
          <rect
            width="1"
            height="1"
            fill={`rgb(var(${difference >= 0 ? "--scale-high" : "--scale-low"}))`}
            opacity={(0.35 * strength).toFixed(2)}
          />
        </svg>
        <span class={known ? "word" : "word unknown"}>{word === "<eos>" ? "↵" : word}</span>
      </span>
      <svg width="40" height={other === undefined ? 5 : 11} aria-hidden="true">
        <rect class="track" width="40" height="5" />
        <rect class="series-1" width={bar(bits)} height="5" />
        {other === undefined ? null : (
          <>
            <rect class="track" y="6" width="40" height="5" />
            <rect class="series-2" y="6" width={bar(other)} height="5" />
          </>
        )}
      </svg>
      <span class="visually-hidden">{said}</span>
    </li>
  );
}

function Summary({ name, losses: { answer, error } }: { name: string; losses: Losses }) {
  const words = answer?.words ?? [];
  const mean = words.reduce((sum, { bits }) => sum + bits, 0) / Math.max(1, words.length);
  return (
    <p class="numbers">
      <strong>{name.replace(/^(run|shipped):/, "")}</strong>{" "}
      {answer
        ? `${mean.toFixed(3)} bits per word, perplexity ${(2 ** mean).toFixed(1)} on ${words.length} words`
        : error
          ? "could not read it"
          : "reading …"}
    </p>
  );
}

function Generation({ first, second }: { first: ModelRef; second: ModelRef | undefined }) {
  const state = query.value;
  const number = (name: string, usual: number): number => {
    const given = Number(state.get(name) ?? usual);
    return Number.isFinite(given) ? given : usual;
  };
  const options = {
    prompt: state.get("prompt") ?? "the company",
    words: Math.min(limits.generatedWords, Math.max(1, Math.trunc(number("words", 40)))),
    temperature: Math.min(2, Math.max(0, number("temperature", 0.8))),
    topK: Math.max(0, Math.trunc(number("topk", 40))),
    seed: Math.max(0, Math.trunc(number("seed", 1))),
  };
  const field = (name: string, label: string, value: number, step: number) => (
    <label class="field">
      {label}
      <input
        type="number"
        min={0}
        step={step}
        value={value}
        onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
      />
    </label>
  );
  return (
    <section class="panel" aria-label="Generation">
      <h2>Generation</h2>
      <div class="generation">
        <label class="field prompt">
          Prompt
          <input
            value={options.prompt}
            onInput={({ currentTarget }) => setQuery({ prompt: currentTarget.value || " " })}
          />
        </label>
        {field("words", "Words", options.words, 10)}
        {field("temperature", "Temperature", options.temperature, 0.1)}
        {field("topk", "Top k (0: all)", options.topK, 10)}
        {field("seed", "Seed", options.seed, 1)}
      </div>
      <Generated key={showRef(first)} model={first} options={options} />
      {second ? <Generated key={showRef(second)} model={second} options={options} /> : null}
    </section>
  );
}

function Generated(props: {
  model: ModelRef;
  options: { prompt: string; words: number; temperature: number; topK: number; seed: number };
}) {
  const { model, options } = props;
  const state = useSignal<{ answer?: GenerateAnswer; prompt?: string; error?: unknown; isBusy?: boolean }>(
    {},
  );
  const generate = (): void => {
    state.value = { ...state.value, isBusy: true };
    call<GenerateAnswer>("generate", { body: { model, ...options } }).then(
      (answer) => {
        state.value = { answer, prompt: options.prompt };
      },
      (error: unknown) => {
        state.value = { error };
      },
    );
  };
  const { answer, prompt, error, isBusy } = state.value;
  return (
    <div class="generated">
      <div class="row">
        <strong>{model.id.replace(/^(run|shipped):/, "")}</strong>
        <button type="button" class="primary" disabled={isBusy} onClick={generate}>
          {isBusy ? "Writing …" : "Generate"}
        </button>
      </div>
      {error ? <Failed what="Nothing was generated" error={error} /> : null}
      {answer && answer.unknown.length > 0 ? (
        <p class="notice warn">Not in the vocabulary, read as &lt;unk&gt;: {answer.unknown.join(", ")}</p>
      ) : null}
      {answer ? (
        <p class="generated-text" aria-live="polite">
          <span class="muted">{prompt} </span>
          {answer.words.map(({ word, probability }, i) =>
            word === "<eos>" ? (
              <br key={i} />
            ) : (
              <span key={i} title={`${(100 * probability).toFixed(1)} %`}>
                {word}{" "}
              </span>
            ),
          )}
        </p>
      ) : null}
    </div>
  );
}
