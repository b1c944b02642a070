/** How far a download is. */
import type { Output } from "./output.ts";

/** A bar that begins once the size of the download is known. */
export function downloadDisplay(out: Output) {
  let bar: ReturnType<Output["progress"]> | undefined;
  const show = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
  return {
    update(done: number, total: number | undefined) {
      bar ??= out.progress({ label: "download", ...(total === undefined ? {} : { total }), show });
      bar.update(done);
    },
    stop: () => bar?.stop(),
  };
}
