/** Horizontal bars with their numbers: answers, a policy, accuracy by task. */
import "../style/bars.css";

/** One bar. */
export interface Bar {
  readonly label: string;
  /** 0 to 1. */
  readonly value: number;
  /** Instead of the value in per cent. */
  readonly text?: string;
  /** Whether this is the right one, or a wrong one that came first. */
  readonly mark?: "right" | "wrong" | undefined;
  readonly color?: number;
}

/** The bars, in the order given. `rows` keeps room for as many, so that nothing below moves when there are fewer. */
export function Bars({ bars, label, rows }: { bars: readonly Bar[]; label: string; rows?: number }) {
  return (
    <ol class="bars" aria-label={label} data-rows={rows}>
      {bars.map((bar) => (
        <li key={bar.label} class={bar.mark ?? ""}>
          <span class="bars-label">{bar.label}</span>
          <svg class="bars-track" aria-hidden="true" preserveAspectRatio="none" viewBox="0 0 100 1">
            <rect class="bars-back" width="100" height="1" />
            <rect
              class={`bars-fill series-${((bar.color ?? 0) % 8) + 1}`}
              width={100 * Math.max(0, Math.min(1, bar.value))}
              height="1"
            />
          </svg>
          <span class="bars-value numbers">{bar.text ?? percent(bar.value)}</span>
          <span class="bars-mark">
            {bar.mark === "right" ? (
              <>
                <span aria-hidden="true">✓</span>
                <span class="visually-hidden">right</span>
              </>
            ) : bar.mark === "wrong" ? (
              <>
                <span aria-hidden="true">✗</span>
                <span class="visually-hidden">wrong</span>
              </>
            ) : null}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** A fraction in per cent, with one digit. */
export function percent(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}
