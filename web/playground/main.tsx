/** The playground: train, ask, look into the memory, all in the visitor's browser. */
import { render } from "preact";
import { BackendContext } from "../backend.ts";
import { type PageEntry, Shell } from "../components/shell.tsx";
import { workerBackend } from "./client.ts";
import TrainPage from "./trainPage.tsx";
import "../theme.ts";

const pages: readonly PageEntry[] = [
  { name: "train", title: "Train", load: () => Promise.resolve(TrainPage) },
  { name: "ask", title: "Ask", load: async () => (await import("../pages/ask.tsx")).default },
  { name: "memory", title: "Memory", load: async () => (await import("../pages/memory.tsx")).default },
];

render(
  <BackendContext.Provider value={workerBackend}>
    <Shell brand="fwm playground" pages={pages} />
  </BackendContext.Provider>,
  document.getElementById("app")!,
);
