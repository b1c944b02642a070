/** The studio. */
import { render } from "preact";
import { studioBackend } from "./api.ts";
import { BackendContext } from "./backend.ts";
import { Shell } from "./components/shell.tsx";
import { pages } from "./pages/index.ts";
import "./theme.ts";

render(
  <BackendContext.Provider value={studioBackend}>
    <Shell brand="fwm studio" pages={pages} />
  </BackendContext.Provider>,
  document.getElementById("app")!,
);
