/** Which model, and which of its checkpoints: a list and a slider over training. */
import type { ModelEntry, ModelRef } from "../../src/studio/api.ts";

/** A model and its checkpoint. */
export interface ModelPickerProps {
  readonly label: string;
  readonly models: readonly ModelEntry[];
  readonly chosen: ModelRef | undefined;
  /** Entry for no model at all. */
  readonly none?: string;
  readonly onChoose: (ref: ModelRef | undefined) => void;
}

/** The list, and the slider where there is more than one checkpoint. */
export function ModelPicker({ label, models, chosen, none, onChoose }: ModelPickerProps) {
  const entry = models.find(({ id }) => id === chosen?.id);
  return (
    <div class="row end model-picker">
      <label class="field grow">
        {label}
        <select
          value={chosen?.id ?? ""}
          onChange={({ currentTarget: { value } }) => onChoose(value ? { id: value } : undefined)}
        >
          {none === undefined ? null : <option value="">{none}</option>}
          {models.map(({ id, label: name, system }) => (
            <option key={id} value={id}>
              {name} ({system})
            </option>
          ))}
        </select>
      </label>
      {entry && entry.checkpoints.length > 1 ? (
        <CheckpointSlider
          entry={entry}
          chosen={chosen?.checkpoint}
          onChoose={(checkpoint) => onChoose({ id: entry.id, checkpoint })}
        />
      ) : null}
    </div>
  );
}

function CheckpointSlider(props: {
  entry: ModelEntry;
  chosen: string | undefined;
  onChoose: (checkpoint: string) => void;
}) {
  const { checkpoints } = props.entry;
  const at = checkpointAt(props.entry, props.chosen);
  const { step, best, last } = checkpoints[at]!;
  const what = [best ? "best" : "", last ? "last" : ""].filter(Boolean).join(", ");
  return (
    <label class="field checkpoint-slider">
      <span class="numbers">
        checkpoint: step {step.toLocaleString("en")}
        {what ? ` (${what})` : ""}
      </span>
      <input
        type="range"
        min={0}
        max={checkpoints.length - 1}
        step={1}
        value={at}
        aria-valuetext={`step ${step}`}
        onInput={({ currentTarget }) => props.onChoose(checkpoints[currentTarget.valueAsNumber]!.name)}
      />
    </label>
  );
}

/** Which of the checkpoints a reference means: the best one unless told, else the last. */
function checkpointAt({ checkpoints }: ModelEntry, chosen: string | undefined): number {
  const find = (is: (of: ModelEntry["checkpoints"][number]) => boolean): number => checkpoints.findIndex(is);
  const named = find(({ name }) => name === chosen);
  if (named >= 0) return named;
  const best = chosen === "last" ? -1 : find((each) => each.best);
  return best >= 0 ? best : checkpoints.length - 1;
}
