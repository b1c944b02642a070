/** A small directed graph on a circle: locations, edges with the actions that lead along them, who is where. */
import type { RolloutAnswer, WalkStep } from "../../src/studio/api.ts";
import "../style/graphView.css";

/** An edge: all actions that lead from one location to another. */
interface Edge {
  readonly from: number;
  readonly to: number;
  readonly actions: readonly number[];
  /** Whether one of them has been taken. */
  readonly known: boolean;
}

/** What is drawn. */
export interface GraphViewProps {
  readonly graph: RolloutAnswer["graph"];
  /** Steps so far; the last one is under way. */
  readonly steps: readonly WalkStep[];
  readonly label: string;
}

const size = 240;
const center = size / 2;
const radius = 88;
const node = 18;

/** Names of the actions. */
export const actionNames = ["a", "b", "c"] as const;

/** The graph. */
export function GraphView({ graph, steps, label }: GraphViewProps) {
  const edges = edgesOf(graph, steps);
  const now = steps.at(-1);
  const known = edges.filter((edge) => edge.known).length;
  const description = now
    ? `${label}: agent at ${now.agent + 1}, reward at ${now.goal + 1}, ${known} of ${edges.length} edges found`
    : `${label}: not begun`;
  return (
    <svg class="graph-view" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={description}>
      <defs>
        {["known", "unknown", "taken"].map((kind) => (
          <marker
            key={kind}
            id={`arrow-${kind}-${label}`}
            class={`arrow ${kind}`}
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="6"
            markerHeight="6"
            orient="auto-start-reverse"
          >
            <path d="M0 0 8 4 0 8z" />
          </marker>
        ))}
      </defs>
      {edges.map((edge) => {
        const isTaken = now !== undefined && now.agent === edge.from && now.to === edge.to;
        const kind = isTaken ? "taken" : edge.known ? "known" : "unknown";
        const { path, x, y } = curve(edge, graph.length);
        return (
          <g key={`${edge.from}-${edge.to}`}>
            <path class={`edge-line ${kind}`} d={path} marker-end={`url(#arrow-${kind}-${label})`} />
            <text class={`edge-label ${kind}`} x={x} y={y}>
              {edge.actions.map((action) => actionNames[action] ?? action).join(",")}
            </text>
          </g>
        );
      })}
      {graph.map((_, i) => {
        const { x, y } = place(i, graph.length);
        const kind = now?.agent === i ? "agent" : "";
        return (
          <g key={i}>
            <circle class={`node ${kind}`} cx={x} cy={y} r={node} />
            <text class={`node-label ${kind}`} x={x} y={y}>
              {i + 1}
            </text>
            {now?.goal === i ? <circle class="goal-ring" cx={x} cy={y} r={node + 4} /> : null}
          </g>
        );
      })}
    </svg>
  );
}

function edgesOf(graph: RolloutAnswer["graph"], steps: readonly WalkStep[]): Edge[] {
  const edges = new Map<string, { from: number; to: number; actions: number[]; known: boolean }>();
  graph.forEach((row, from) => {
    row.forEach((to, action) => {
      if (to === null) return;
      const key = `${from} ${to}`;
      const edge = edges.get(key) ?? { from, to, actions: [], known: false };
      edge.actions.push(action);
      edge.known ||= steps.some((step) => step.agent === from && step.action === action);
      edges.set(key, edge);
    });
  });
  return [...edges.values()];
}

function place(i: number, count: number): { x: number; y: number } {
  const angle = (2 * Math.PI * i) / count - Math.PI / 2;
  return { x: center + radius * Math.cos(angle), y: center + radius * Math.sin(angle) };
}

/** A bow to the right of the straight way, so that the edge back has room of its own; from a location to itself a loop. */
function curve({ from, to }: Edge, count: number): { path: string; x: number; y: number } {
  const [a, b] = [place(from, count), place(to, count)];
  if (from === to) {
    const [ux, uy] = [(a.x - center) / radius, (a.y - center) / radius];
    const [sx, sy] = [a.x + node * (0.8 * ux - 0.6 * uy), a.y + node * (0.8 * uy + 0.6 * ux)];
    const [ex, ey] = [a.x + node * (0.8 * ux + 0.6 * uy), a.y + node * (0.8 * uy - 0.6 * ux)];
    const [cx, cy] = [a.x + 46 * ux, a.y + 46 * uy];
    return {
      path: `M${sx} ${sy}Q${cx - 14 * uy} ${cy + 14 * ux} ${cx} ${cy}T${ex} ${ey}`,
      x: a.x + 30 * ux,
      y: a.y + 30 * uy,
    };
  }
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = Math.hypot(dx, dy);
  const [ux, uy] = [dx / length, dy / length];
  const bow = 16;
  const [mx, my] = [(a.x + b.x) / 2 - bow * uy, (a.y + b.y) / 2 + bow * ux];
  const start = { x: a.x + node * ux - 5 * uy, y: a.y + node * uy + 5 * ux };
  const end = { x: b.x - (node + 3) * ux - 5 * uy, y: b.y - (node + 3) * uy + 5 * ux };
  // On the curve, a third of the way along: in the middle many edges cross.
  const on = (from: number, by: number, to: number): number => 0.45 * from + 0.44 * by + 0.11 * to;
  return {
    path: `M${start.x} ${start.y}Q${mx} ${my} ${end.x} ${end.y}`,
    x: on(start.x, mx, end.x),
    y: on(start.y, my, end.y),
  };
}
