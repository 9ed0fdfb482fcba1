// Light, dark, or as the system has it. The choice is the only thing that the page keeps in the browser beyond the session.

export type Theme = "system" | "light" | "dark";
const NAME = "cogn-studio-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

class Look {
  chosen = $state<Theme>("system");
  system = $state<"light" | "dark">(dark.matches ? "dark" : "light");
  /** What is shown. */
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
    // A browser that keeps nothing still shows what was chosen.
  }
}

/** What the button leads to next. */
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
