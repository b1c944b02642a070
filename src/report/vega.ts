/** Draws a Vega-Lite specification as SVG, without a browser. Vega is an optional package, loaded when it is needed. */
import type { TopLevelSpec } from "vega-lite";
import { missingPackage } from "../errors.ts";

/** How Vega measures a text; its types leave it out. */
interface TextMetrics {
  width: (
    item: { readonly fontSize?: number; readonly fontWeight?: string | number },
    text: unknown,
  ) => number;
}

/** The specification as SVG text. */
export async function drawSpec(spec: TopLevelSpec): Promise<string> {
  const [vega, { compile }] = await Promise.all([import("vega"), import("vega-lite")]).catch(
    (error: unknown) => {
      throw missingPackage("a figure", ["vega", "vega-lite"], error);
    },
  );
  // Without a canvas Vega takes letters for wider than they are, and leaves that room blank.
  const { textMetrics } = vega as unknown as { textMetrics: TextMetrics };
  textMetrics.width = (item, text) => textWidth(String(text), item.fontSize ?? 11, item.fontWeight);
  const view = new vega.View(vega.parse(compile(spec).spec), { renderer: "none" });
  try {
    return await view.toSVG();
  } finally {
    view.finalize();
  }
}

/** Pixels that a text takes up in a sans-serif face, rather too many than too few. */
export function textWidth(text: string, size: number, weight?: string | number): number {
  return text.length * size * (weight === "bold" || Number(weight) >= 600 ? 0.66 : 0.6);
}

/** Told apart side by side and on paper; beyond these they repeat. */
export const colors = [
  "#0b6e4f",
  "#c8553d",
  "#2f4b7c",
  "#8d6a9f",
  "#7a7a7a",
  "#e0a526",
  "#4fa3c7",
  "#7b3f2a",
  "#8fb339",
  "#d16ba5",
  "#1f1f1f",
  "#43c59e",
];
