/** Light or dark: as the system says, until somebody chooses. */
import { effect, signal } from "@preact/signals";

/** What can be chosen. */
export type ThemeChoice = "system" | "light" | "dark";

const key = "fwm.theme";
const darkQuery = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(darkQuery.matches);
darkQuery.addEventListener("change", ({ matches }) => {
  systemDark.value = matches;
});

/** The choice; kept in this browser. */
export const themeChoice = signal<ThemeChoice>(storedChoice());

/** Which of the two looks is on; charts on canvas follow it. */
export const theme = signal<"light" | "dark">("light");

effect(() => {
  const choice = themeChoice.value;
  theme.value = choice === "system" ? (systemDark.value ? "dark" : "light") : choice;
  document.documentElement.dataset.theme = theme.value;
});

/** Takes the next choice, and keeps it. */
export function cycleTheme(): void {
  const order: readonly ThemeChoice[] = ["system", "light", "dark"];
  themeChoice.value = order[(order.indexOf(themeChoice.value) + 1) % order.length]!;
  try {
    localStorage.setItem(key, themeChoice.value);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}

/** The value of a custom property now, for canvas and SVG that need numbers. */
export function token(name: `--${string}`): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function storedChoice(): ThemeChoice {
  try {
    const stored = localStorage.getItem(key);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system";
  }
}
