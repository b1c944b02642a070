/** Write strength and memory norm along the story: a bar and a point for every token. */
import type { AskAnswer } from "../../src/studio/api.ts";
import "../style/storyView.css";

/** The figure; nothing for a system without such a memory. `at` marks the moment that is looked at. */
export function AlongStory({ tokens, at }: { tokens: AskAnswer["tokens"]; at?: number }) {
  const n = tokens.length;
  if (n === 0 || tokens[0]!.norm === null) return null;
  const x = (i: number): number => i + 0.5;
  const norms = tokens.map(({ norm }, i) => `${x(i)},${1 - (norm ?? 0)}`).join(" ");
  const starts = tokens.flatMap(({ line }, i) => (i > 0 && line !== tokens[i - 1]!.line ? [i] : []));
  const last = tokens.at(-1)!;
  return (
    <figure class="stack tight">
      <svg
        class="along"
        viewBox={`0 -0.03 ${n} 1.06`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Write strength and memory norm over ${n} words; the norm ends at ${last.norm!.toFixed(2)}`}
      >
        {starts.map((i) => (
          <line key={i} class="line-start" x1={i} x2={i} y1="0" y2="1" />
        ))}
        <line class="base" x1="0" x2={n} y1="1" y2="1" />
        {tokens.map(({ word, beta, norm }, i) => (
          <g key={i}>
            <rect class="beta" x={i + 0.1} width="0.8" y={1 - (beta ?? 0)} height={beta ?? 0} />
            <rect class="hover" x={i} width="1" y="0" height="1" fill="transparent">
              <title>{`${word}: write strength ${beta?.toFixed(3)}, memory norm ${norm?.toFixed(3)}`}</title>
            </rect>
          </g>
        ))}
        <polyline class="norm" points={norms} />
        {at === undefined ? null : <rect class="here" x={at} width="1" y="-0.03" height="1.06" />}
      </svg>
      <figcaption class="row muted">
        <span>
          <i class="key beta" />
          write strength β
        </span>
        <span>
          <i class="key" />
          memory norm |F|, at most 1
        </span>
        <span>dotted: a new line of the story</span>
      </figcaption>
    </figure>
  );
}
