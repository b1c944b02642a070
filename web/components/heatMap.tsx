/**
 * A triangle of numbers between -1 and 1, every word against every earlier one, on canvas. The words stand along the
 * diagonal, where the free half is, and name rows and columns at once.
 */
import { useEffect, useRef } from "preact/hooks";
import { theme, token } from "../theme.ts";

/** What a heat map shows. */
export interface HeatMapProps {
  readonly words: readonly string[];
  /** Value of a row and a column, column at most row. */
  readonly value: (row: number, column: number) => number;
  /** Rows after this one are drawn pale: they have not been read yet. */
  readonly upTo: number;
  /** The cell that is marked. */
  readonly marked: readonly [row: number, column: number];
  readonly onMark: (row: number, column: number) => void;
  readonly description: string;
}

const cell = 13;
const labelRoom = 110;

/** The map. */
export function HeatMap({ words, value, upTo, marked, onMark, description }: HeatMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [row, column] = marked;
  const look = theme.value;
  useEffect(() => {
    draw(canvas.current!, { words, value, upTo, row, column, look });
  }, [words, value, upTo, row, column, look]);
  const size = words.length * cell;
  return (
    // The lists beside the map choose the same words by keyboard.
    <canvas
      ref={canvas}
      class="heat-map"
      role="img"
      aria-label={description}
      width={size + labelRoom}
      height={size + 2}
      onClick={(event) => {
        const at = cellAt(event, words.length);
        if (at) onMark(...at);
      }}
    />
  );
}

function cellAt(event: MouseEvent, size: number): [number, number] | undefined {
  const [row, column] = [Math.floor(event.offsetY / cell), Math.floor(event.offsetX / cell)];
  return row >= 0 && row < size && column >= 0 && column <= row ? [row, column] : undefined;
}

function draw(
  canvas: HTMLCanvasElement,
  given: Pick<HeatMapProps, "words" | "value" | "upTo"> & { row: number; column: number; look: string },
): void {
  const { words, value, upTo, row: markedRow, column: markedColumn } = given;
  const size = words.length * cell;
  const density = window.devicePixelRatio || 1;
  canvas.width = (size + labelRoom) * density;
  canvas.height = (size + 2) * density;
  canvas.style.width = `${size + labelRoom}px`;
  canvas.style.height = `${size + 2}px`;
  const context = canvas.getContext("2d")!;
  context.scale(density, density);
  const [low, high, back, text, muted, accent] = (
    ["--scale-low", "--scale-high", "--sunken", "--text", "--muted", "--accent"] as const
  ).map(token);
  context.font = `11px ${token("--sans")}`;
  context.textBaseline = "middle";
  for (let row = 0; row < words.length; row++) {
    context.globalAlpha = row <= upTo ? 1 : 0.25;
    for (let column = 0; column <= row; column++) {
      const shade = Math.max(-1, Math.min(1, value(row, column)));
      context.fillStyle = back!;
      context.fillRect(column * cell, row * cell, cell - 1, cell - 1);
      context.fillStyle = `rgb(${shade < 0 ? low : high} / ${Math.abs(shade)})`;
      context.fillRect(column * cell, row * cell, cell - 1, cell - 1);
    }
    context.fillStyle = row <= upTo ? text! : muted!;
    context.globalAlpha = 1;
    context.fillText(words[row]!, (row + 1) * cell + 4, row * cell + cell / 2);
  }
  context.strokeStyle = accent!;
  context.lineWidth = 2;
  context.strokeRect(markedColumn * cell - 0.5, markedRow * cell - 0.5, cell, cell);
}
