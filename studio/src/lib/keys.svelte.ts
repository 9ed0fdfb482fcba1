// Shortcuts: each page declares its own, and the help lists exactly these. Single letters work only outside of fields. They can be
// turned off, because voice control would trigger them.

export interface Shortcut {
  /** The key as displayed and compared: `a`, `Ctrl+Enter`, `g r`, `Escape`. */
  keys: string;
  does: string;
  act: () => void;
  /** True if it also works in a text field. */
  inFields?: boolean;
}

class Keys {
  /** The active shortcuts, by their component. */
  groups = $state<Record<string, Shortcut[]>>({});
  lettersOn = $state(true);
  help = $state(false);
}

export const keys = new Keys();
/** The first of two keys, until the second one is pressed. */
let begun = "";

/** Adds shortcuts while a component is mounted: `$effect(() => shortcuts("Run", […]))`. */
export function shortcuts(group: string, list: Shortcut[]): () => void {
  keys.groups[group] = list;
  return () => {
    delete keys.groups[group];
  };
}

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

/** Checkboxes and radio buttons accept no letters. */
function takesLetters(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button", "file", "range"].includes(target.type);
  return isField(target);
}

function pressed(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key : event.key.replace("Esc", "Escape").replace("Escapeape", "Escape");
  return (event.ctrlKey || event.metaKey ? "Ctrl+" : "") + (event.altKey ? "Alt+" : "") + key;
}

function find(combination: string, typing: boolean): Shortcut | undefined {
  const all = Object.values(keys.groups).reverse().flat();
  return all.find((each) => {
    if (each.keys !== combination || (typing && !each.inFields)) return false;
    return keys.lettersOn || combination.length > 1 || combination === "?";
  });
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  // A dialog has its own keys; Escape closes it without this code.
  if (document.querySelector("dialog[open]") !== null) return;
  const key = pressed(event);
  const typing = takesLetters(event.target);
  const two = begun === "" ? undefined : find(`${begun} ${key}`, typing);
  begun = "";
  const shortcut = two ?? find(key, typing);
  if (shortcut !== undefined) {
    event.preventDefault();
    shortcut.act();
  } else if (!typing && keys.lettersOn && key === "g") {
    begun = key;
  }
});
