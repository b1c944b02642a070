/** The studio's pages, in the order of the navigation; each is loaded when it is first shown. */
import type { PageEntry } from "../components/shell.tsx";

/** All pages. */
export const pages: readonly PageEntry[] = [
  { name: "runs", title: "Runs", load: async () => (await import("./runs.tsx")).default },
  { name: "sweep", title: "Sweep", load: async () => (await import("./sweep.tsx")).default },
  { name: "ask", title: "Ask", load: async () => (await import("./ask.tsx")).default },
  { name: "memory", title: "Memory", load: async () => (await import("./memory.tsx")).default },
  { name: "agent", title: "Agent", load: async () => (await import("./agent.tsx")).default },
  { name: "text", title: "Text", load: async () => (await import("./text.tsx")).default },
];
