/** A held-out story and what the systems answer at the present step: asked again after every evaluation. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { parseTasks } from "../../src/data/catbabi.ts";
import { Bars } from "../components/bars.tsx";
import { Failed } from "../components/states.tsx";
import { exampleOf } from "../examples.ts";
import { href } from "../router.ts";
import { useAnswer } from "../useAnswer.ts";
import { type Choices, type SystemName, systemsOf, systemTitles } from "./choices.ts";
import { curves, status } from "./client.ts";

/** The panel. */
export function AskNow({ choices }: { choices: Choices }) {
  const tasks = parseTasks(choices.tasks);
  const number = useSignal(0);
  const task = tasks[(tasks.length - 1 + number.value) % tasks.length]!;
  const { story } = exampleOf(task, number.value);
  const edited = useSignal<string | null>(null);
  useEffect(() => {
    edited.value = null;
  }, [story, edited]);
  const text = edited.value ?? story;
  const isReady = status.value?.choices !== null && status.value !== null;
  return (
    <section class="panel" aria-label="Ask it now">
      <div class="panel-head">
        <h2>Ask it now</h2>
        <a href={href("ask", { story: text, model: "trained:fwm" })}>what each read matched</a>
      </div>
      <div class="columns">
        <div class="stack tight">
          <textarea
            rows={8}
            aria-label="Story and question"
            spellcheck={false}
            value={text}
            onInput={({ currentTarget }) => {
              edited.value = currentTarget.value;
            }}
          />
          <div class="row">
            <button type="button" onClick={() => number.value++}>
              Another one
            </button>
            <small>a story of task {task} that is not trained on; change it as you like</small>
          </div>
        </div>
        <div class="stack">
          {systemsOf(choices).map((system) => (
            <Answers key={system} system={system} story={text} isReady={isReady} />
          ))}
        </div>
      </div>
    </section>
  );
}

function Answers({ system, story, isReady }: { system: SystemName; story: string; isReady: boolean }) {
  const revision = curves.value[system]?.length ?? 0;
  const asking = useAnswer(isReady ? { id: `trained:${system}` } : undefined, story, {
    revision: revision + (status.value?.phase === "paused" ? 0.5 : 0),
  });
  const { answer, error } = asking.value;
  const asked = answer?.questions.at(-1);
  return (
    <div class="stack tight answers-now" aria-busy={asking.value.isWaiting}>
      <div class="panel-head">
        <h3>{systemTitles[system]}</h3>
        <small class="numbers">{answer ? `step ${answer.step?.toLocaleString("en")}` : ""}</small>
      </div>
      {error ? (
        <Failed what="No answer" error={error} />
      ) : asked ? (
        <Bars
          label={`Answers of the ${systemTitles[system]}`}
          rows={3}
          bars={asked.answers.slice(0, 3).map(({ word, probability }, i) => ({
            label: word,
            value: probability,
            color: system === "fwm" ? 0 : 1,
            mark: !asked.given
              ? undefined
              : word === asked.given.word
                ? "right"
                : i === 0
                  ? "wrong"
                  : undefined,
          }))}
        />
      ) : (
        <p class="muted">
          {answer ? "The story has no question. End a line in “?”." : "It answers once it is compiled."}
        </p>
      )}
    </div>
  );
}
