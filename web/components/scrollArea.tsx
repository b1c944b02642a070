/** Something wider than the page, which scrolls by itself, with the keyboard too. */
import type { ComponentChildren } from "preact";

/** The area; its label names it for those who tab into it. */
export function ScrollArea({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys scroll what has the focus
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
