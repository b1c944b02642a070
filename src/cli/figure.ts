/** The options of a figure, and the file they lead to: the same for every command that draws one. */
import { UsageError } from "../errors.ts";
import type { BarsSpec } from "../report/bars.ts";
import type { FigureSpec } from "../report/figure.ts";
import { integer, type OptionValues, text, value } from "./params.ts";
import { writeResult } from "./writeResult.ts";

/** The options; `shows` says what is in the figure. */
export function figureParams(shows: string) {
  return {
    figure: value({ placeholder: "file.svg", help: `SVG file: ${shows}` }, svgFile),
    title: text({ help: "title of the figure" }),
    width: integer({ min: 100, max: 4000, help: "width of the plot in pixels; default 640" }),
    height: integer({ min: 80, max: 4000, help: "height of the plot in pixels; default 320" }),
  };
}

/** Draws bars, if they were asked for, and gives their path. */
export async function writeBars(path: string | undefined, spec: () => BarsSpec): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const { drawBars } = await import("../report/bars.ts");
  await writeResult(path, await drawBars(spec()));
  return path;
}

/** Draws the figure, if one was asked for, and gives its path. */
export async function writeFigure(
  { figure: path, title, width, height }: OptionValues<ReturnType<typeof figureParams>>,
  specOf: () => FigureSpec | Promise<FigureSpec>,
): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const { drawFigure } = await import("../report/figure.ts");
  const chosen = {
    ...(title === undefined ? {} : { title }),
    ...(width === undefined ? {} : { width }),
    ...(height === undefined ? {} : { height }),
  };
  await writeResult(path, await drawFigure({ ...(await specOf()), ...chosen }));
  return path;
}

/** A path that ends in `.svg`. */
export function svgFile(path: string, name: string): string {
  if (/[^/\\]\.svg$/i.test(path)) return path;
  throw new UsageError(`${name} ${path}: figures are SVG files`, {
    hint: "give a name that ends in .svg; a browser, Inkscape or rsvg-convert makes a PNG of it",
  });
}
