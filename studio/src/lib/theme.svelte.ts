// The colour theme: light, dark, or that of the system. Apart from the session, the page stores only this choice in the browser.

export type Theme = "system" | "light" | "dark";
const NAME = "cogn-studio-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

class Look {
  chosen = $state<Theme>("system");
  system = $state<"light" | "dark">(dark.matches ? "dark" : "light");
  /** The visible theme. */
  get shown(): "light" | "dark" {
    return this.chosen === "system" ? this.system : this.chosen;
  }
}

export const look = new Look();

export function choose(theme: Theme): void {
  look.chosen = theme;
  document.documentElement.dataset["theme"] = theme;
  try {
    if (theme === "system") localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, theme);
  } catch {
    // A browser without storage still applies the choice.
  }
}

/** The theme that the button selects next. */
export function next(): Theme {
  return look.shown === "dark" ? "light" : "dark";
}

dark.addEventListener("change", () => (look.system = dark.matches ? "dark" : "light"));
try {
  const kept = localStorage.getItem(NAME);
  choose(kept === "light" || kept === "dark" ? kept : "system");
} catch {
  choose("system");
}
