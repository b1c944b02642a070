/** Memory: what is stored at any moment of a story, which facts overlap, and what a pair of words retrieves. */
import { useMemo } from "preact/hooks";
import { StoryMemory } from "../../src/inference/storyMemory.ts";
import type { AskAnswer, ModelEntry } from "../../src/studio/api.ts";
import { AlongStory } from "../components/alongStory.tsx";
import { Bars } from "../components/bars.tsx";
import { HeatMap } from "../components/heatMap.tsx";
import { ModelPicker } from "../components/modelPicker.tsx";
import { ScrollArea } from "../components/scrollArea.tsx";
import { Empty, Failed, Loading } from "../components/states.tsx";
import { StoryPanel } from "../components/storyPanel.tsx";
import { exampleOf } from "../examples.ts";
import { query, setQuery } from "../router.ts";
import "../style/memory.css";
import { useAnswer } from "../useAnswer.ts";
import { parseRef, showRef, useModels } from "../useModels.ts";

/** The page. */
export default function MemoryPage() {
  const { models, reload } = useModels("answers");
  const { list, error } = models.value;
  if (error) return <Failed what="The models could not be listed" error={error} retry={reload} />;
  if (!list) return <Loading what="Looking for models" />;
  const withMemory = list.filter(({ memory }) => memory);
  if (withMemory.length === 0) {
    return (
      <Empty title="No model with a Fast Weight Memory">
        <p>
          Train one: <code>fwm train catbabi-qa-fwm</code>. It appears here with its first checkpoint.
        </p>
      </Empty>
    );
  }
  return <MemoryView models={withMemory} />;
}

function MemoryView({ models }: { models: readonly ModelEntry[] }) {
  const state = query.value;
  const asked = parseRef(state.get("model"));
  const model = models.some(({ id }) => id === asked?.id) ? asked! : { id: models[0]!.id };
  const story = state.get("story") ?? exampleOf(15, 0).story;
  const { answer, error } = useAnswer(model, story, { writes: true }).value;
  return (
    <>
      <div class="page-head">
        <h1>Memory</h1>
        <p>Every word writes a value under a pair of keys. Step through the story and see what is stored.</p>
      </div>
      <div class="panel">
        <ModelPicker
          label="Model"
          models={models}
          chosen={model}
          onChoose={(ref) => setQuery({ model: showRef(ref) })}
        />
      </div>
      <div class="columns even">
        <StoryPanel story={story} />
        {error ? (
          <Failed what="The story could not be read" error={error} />
        ) : answer?.writes ? (
          <Moment answer={answer} />
        ) : (
          <div class="panel">
            <Loading what="The model is reading" />
          </div>
        )}
      </div>
      {answer?.writes && !error ? <Overlaps answer={answer} /> : null}
    </>
  );
}

/** The memory of an answer; computed once for each. */
function useMemory({ writes }: AskAnswer): StoryMemory {
  return useMemo(() => new StoryMemory(writes!), [writes]);
}

/** Which token the page looks at: the last one unless the address says. */
function momentOf({ tokens }: AskAnswer): number {
  return within(query.value.get("at"), tokens.length, tokens.length - 1);
}

/** The two tokens whose key halves are joined: by default one word of the last question, with itself. */
function pairOf(answer: AskAnswer, at: number): readonly [number, number] {
  const usual = Math.min(at, defaultWord(answer));
  const first = within(query.value.get("first"), answer.tokens.length, usual);
  return [first, within(query.value.get("second"), answer.tokens.length, first)];
}

function within(text: string | undefined, size: number, usual: number): number {
  const value = text === undefined ? Number.NaN : Number(text);
  return Number.isInteger(value) && value >= 0 && value < size ? value : usual;
}

/** The word of the last question that writes most. */
function defaultWord({ questions, tokens }: AskAnswer): number {
  const { from, at } = questions.at(-1) ?? { from: 0, at: tokens.length };
  let best = from;
  for (let i = from; i < at; i++) if ((tokens[i]!.beta ?? 0) > (tokens[best]!.beta ?? 0)) best = i;
  return best;
}

/** Where the story stands, and what a pair of words retrieves there. */
function Moment({ answer }: { answer: AskAnswer }) {
  const memory = useMemory(answer);
  const { tokens } = answer;
  const at = momentOf(answer);
  const [first, second] = pairOf(answer, at);
  const { match, norm } = memory.retrieve(first, second, at);
  const kept = memory.kept(at);
  const best = match
    .map((likeness, index) => ({ likeness, index }))
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, 6);
  const move = (to: number): void => setQuery({ at: String(Math.max(0, Math.min(tokens.length - 1, to))) });
  return (
    <section class="panel" aria-label="Moment of the story">
      <div class="panel-head">
        <h2>After “{tokens[at]!.word}”</h2>
        <small class="numbers">
          word {at + 1} of {tokens.length}; norm {(tokens[at]!.norm ?? 0).toFixed(3)}
        </small>
      </div>
      <div class="row">
        <button type="button" disabled={at === 0} onClick={() => move(at - 1)}>
          Word back
        </button>
        <button type="button" disabled={at === tokens.length - 1} onClick={() => move(at + 1)}>
          Next word
        </button>
        <input
          class="grow"
          type="range"
          min={0}
          max={tokens.length - 1}
          value={at}
          aria-label="Word of the story"
          aria-valuetext={`${tokens[at]!.word}, word ${at + 1}`}
          onInput={({ currentTarget }) => move(currentTarget.valueAsNumber)}
        />
      </div>
      <p class="kept">
        {tokens.map(({ word }, i) => (
          <span
            key={`${i} ${word}`}
            class={`kept-word level-${i > at ? "none" : levelOf(kept[i]!)} ${i === at ? "here" : ""}`}
            title={i > at ? "not read yet" : `left of its write: ${kept[i]!.toFixed(2)}`}
          >
            {word}
          </span>
        ))}
      </p>
      <small>
        Stronger colour: the word's own keys still retrieve the value it wrote (cosine). Pale: overwritten, or
        not read yet.
      </small>
      <h3>What a pair of words retrieves</h3>
      <div class="row">
        <WordPick
          label="first key of"
          value={first}
          tokens={tokens}
          onPick={(value) => setQuery({ first: value, second: String(second) })}
        />
        <WordPick
          label="second key of"
          value={second}
          tokens={tokens}
          onPick={(value) => setQuery({ first: String(first), second: value })}
        />
      </div>
      <Bars
        label="Values that the retrieved one resembles"
        rows={6}
        bars={best.map(({ likeness, index }) => ({
          label: `${index + 1} ${tokens[index]!.word}`,
          value: Math.max(0, likeness),
          text: likeness.toFixed(2),
        }))}
      />
      <small class="numbers">
        Cosine with the values that words wrote. Length of what was retrieved: {norm.toPrecision(2)}.
      </small>
      <AlongStory tokens={tokens} at={at} />
    </section>
  );
}

function WordPick(props: {
  label: string;
  value: number;
  tokens: AskAnswer["tokens"];
  onPick: (value: string) => void;
}) {
  return (
    <label class="field">
      {props.label}
      <select value={props.value} onChange={({ currentTarget }) => props.onPick(currentTarget.value)}>
        {props.tokens.map(({ word }, i) => (
          <option key={`${i} ${word}`} value={i}>
            {i + 1} {word}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The write keys against each other, and the facts that share the most. */
function Overlaps({ answer }: { answer: AskAnswer }) {
  const memory = useMemory(answer);
  const at = momentOf(answer);
  const [first, second] = pairOf(answer, at);
  const words = useMemo(() => answer.tokens.map(({ word }) => word), [answer]);
  const value = useMemo(() => (row: number, column: number) => memory.overlap(row, column), [memory]);
  const facts = useMemo(() => overlappingLines(answer, memory), [answer, memory]);
  const [row, column] = first >= second ? [first, second] : [second, first];
  return (
    <section class="panel" aria-label="Overlap of write keys">
      <div class="panel-head">
        <h2>Write keys against each other</h2>
        <small class="numbers">
          {words[row]} ({row + 1}) and {words[column]} ({column + 1}):{" "}
          {memory.overlap(row, column).toFixed(3)}
        </small>
      </div>
      <div class="columns">
        <ScrollArea label="Map of the write keys">
          <HeatMap
            words={words}
            value={value}
            upTo={at}
            marked={[row, column]}
            onMark={(r, c) => setQuery({ first: String(r), second: String(c) })}
            description={`Cosine of the write keys of ${words.length} words; the table beside it has the lines that overlap most`}
          />
        </ScrollArea>
        <div class="stack tight">
          <h3>Facts that overlap most</h3>
          <table>
            <thead>
              <tr>
                <th>words of two lines</th>
                <th class="number">cosine</th>
                <th class="number">strength</th>
              </tr>
            </thead>
            <tbody>
              {facts.map(({ a, b, cosine }) => (
                <tr key={`${a} ${b}`}>
                  <td>
                    {words[a]} <small>(line {answer.tokens[a]!.line + 1})</small>, {words[b]}{" "}
                    <small>(line {answer.tokens[b]!.line + 1})</small>
                  </td>
                  <td class="number">{cosine.toFixed(2)}</td>
                  <td class="number">{memory.strength[b]!.toFixed(2)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <small>
            Largest first by cosine of the keys times strength of the later write: 1 would replace what the
            earlier one stored, 0 leaves it alone. On the map blue is positive, orange negative; a click
            chooses the pair above.
          </small>
        </div>
      </div>
    </section>
  );
}

/** For every two lines the words of which the later one overwrites most of the earlier one's value, the strongest first. */
function overlappingLines({ tokens }: AskAnswer, memory: StoryMemory) {
  const best = new Map<string, { a: number; b: number; cosine: number; effect: number }>();
  tokens.forEach(({ line, word }, a) => {
    if (line < 0 || word === "." || word === "?") return;
    for (let b = 0; b < a; b++) {
      const other = tokens[b]!;
      if (other.line < 0 || other.line === line || other.word === "." || other.word === "?") continue;
      const key = `${other.line} ${line}`;
      const cosine = memory.overlap(a, b);
      const effect = Math.abs(cosine) * memory.strength[a]!;
      if (effect > (best.get(key)?.effect ?? 0)) best.set(key, { a: b, b: a, cosine, effect });
    }
  });
  return [...best.values()].sort((x, y) => y.effect - x.effect).slice(0, 8);
}

/** 0 to 4: how dark a word is. */
function levelOf(kept: number): number {
  return Math.max(0, Math.min(4, Math.round(4 * kept)));
}
