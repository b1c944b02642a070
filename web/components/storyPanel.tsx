/** The story as text, to be typed or taken from the generator. It is part of the page's address. */
import { exampleOf, taskList } from "../examples.ts";
import { query, setQuery } from "../router.ts";

/** The editor and its examples. */
export function StoryPanel({ story }: { story: string }) {
  const task = Number(query.value.get("task") ?? 15);
  const index = Number(query.value.get("index") ?? 0);
  const take = (of: number, at: number): void =>
    setQuery({ task: String(of), index: String(at), story: exampleOf(of, at).story, question: undefined });
  return (
    <section class="panel" aria-label="Story">
      <div class="panel-head">
        <h2>Story</h2>
        <small>a line per sentence; a question ends in “?”</small>
      </div>
      <textarea
        rows={Math.max(6, Math.min(14, story.split("\n").length + 1))}
        aria-label="Story and question"
        spellcheck={false}
        value={story}
        onInput={({ currentTarget: { value } }) => setQuery({ story: value, question: undefined })}
      />
      <div class="row end">
        <label class="field grow">
          Example of task
          <select value={task} onChange={({ currentTarget: { value } }) => take(Number(value), 0)}>
            {taskList.map(({ task: number, name }) => (
              <option key={number} value={number}>
                {number}: {name}
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => take(task, index + 1)}>
          Another one
        </button>
      </div>
    </section>
  );
}
