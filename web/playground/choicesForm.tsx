/** What is trained: tasks, sizes, reads, and how. */
import { formatTasks, parseTasks } from "../../src/data/catbabi.ts";
import { taskList } from "../examples.ts";
import { type Choices, defaultChoices, type NumberChoice, sameChoices } from "./choices.ts";

/** Sets of tasks to begin with. */
const presets: readonly { readonly name: string; readonly tasks: string }[] = [
  { name: "one fact", tasks: "1" },
  { name: "one and two facts", tasks: "1-2" },
  { name: "lists", tasks: "8" },
  { name: "deduction", tasks: "15" },
  { name: "all twenty", tasks: "1-20" },
];

/** The form. Changes count from the next start on. */
export function ChoicesForm(props: {
  choices: Choices;
  isRunning: boolean;
  onChange: (change: Partial<Choices>) => void;
}) {
  const { choices, isRunning, onChange } = props;
  const chosen = parseTasks(choices.tasks);
  const toggle = (task: number): void => {
    const next = chosen.includes(task)
      ? chosen.filter((each) => each !== task)
      : [...chosen, task].sort((a, b) => a - b);
    if (next.length > 0) onChange({ tasks: formatTasks(next) });
  };
  return (
    <fieldset class="panel choices" disabled={isRunning}>
      <legend class="visually-hidden">Settings</legend>
      <div class="panel-head">
        <h2>Settings</h2>
        <small>{isRunning ? "pause to change them" : "in the address: share the link"}</small>
      </div>
      <div class="row">
        {presets.map(({ name, tasks }) => (
          <button
            key={name}
            type="button"
            aria-pressed={tasks === choices.tasks}
            onClick={() => onChange({ tasks })}
          >
            {name}
          </button>
        ))}
      </div>
      <details>
        <summary>Tasks: {choices.tasks.replaceAll(",", ", ").replaceAll("-", "–")}</summary>
        <div class="task-list">
          {taskList.map(({ task, name }) => (
            <label key={task} class="check">
              <input type="checkbox" checked={chosen.includes(task)} onChange={() => toggle(task)} />
              {task} {name}
            </label>
          ))}
        </div>
      </details>
      <div class="fields">
        <Pick
          name="hidden"
          label="hidden units"
          values={[16, 32, 48, 64, 96, 128, 256]}
          {...{ choices, onChange }}
        />
        <Pick name="memory" label="memory width" values={[4, 8, 12, 16, 24, 32]} {...{ choices, onChange }} />
        <Pick name="reads" label="reads" values={[1, 2, 3, 4]} {...{ choices, onChange }} />
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={choices.lstm}
          onChange={({ currentTarget }) => onChange({ lstm: currentTarget.checked })}
        />
        an LSTM of the same width learns beside it
      </label>
      <details>
        <summary>How it is trained</summary>
        <div class="fields">
          <Pick name="batch" label="batch" values={[4, 8, 16, 32, 64]} {...{ choices, onChange }} />
          <Pick name="window" label="window" values={[25, 50, 100, 200]} {...{ choices, onChange }} />
          <Pick
            name="rate"
            label="learning rate"
            values={[0.001, 0.002, 0.004, 0.006, 0.01]}
            {...{ choices, onChange }}
          />
          <Pick name="steps" label="steps" values={[200, 400, 800, 1600, 5000]} {...{ choices, onChange }} />
          <Pick name="seed" label="seed" values={[1, 2, 3, 4, 5]} {...{ choices, onChange }} />
        </div>
      </details>
      <small class="numbers">
        {(choices.memory ** 3).toLocaleString("en")} fast weights; Adam with a cosine schedule.{" "}
        {sameChoices(choices, defaultChoices) ? null : (
          <button type="button" class="plain small" onClick={() => onChange(defaultChoices)}>
            back to the defaults
          </button>
        )}
      </small>
    </fieldset>
  );
}

/** One of a few numbers; a value that the address brought stays among them. */
function Pick<Name extends NumberChoice>(props: {
  name: Name;
  label: string;
  values: readonly number[];
  choices: Choices;
  onChange: (change: Partial<Choices>) => void;
}) {
  const { name, label, values, choices, onChange } = props;
  const value = choices[name];
  const all = values.includes(value) ? values : [...values, value].sort((a, b) => a - b);
  return (
    <label class="field">
      {label}
      <select
        value={value}
        onChange={({ currentTarget }) =>
          onChange({ [name]: Number(currentTarget.value) } as Partial<Choices>)
        }
      >
        {all.map((each) => (
          <option key={each} value={each}>
            {each.toLocaleString("en")}
          </option>
        ))}
      </select>
    </label>
  );
}
