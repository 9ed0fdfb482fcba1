// Makes untrusted text safe to display: names characters that hide or turn text, and cuts lines to a length that a browser can lay
// out at once. Creates no markup.

/** Characters that turn the direction of text or are invisible. */
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

export interface Piece {
  text: string;
  /** True for the name of an invisible character. */
  isControl: boolean;
}

function nameOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Splits a text into pieces, with hidden characters replaced by their names. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) found.push({ text: text.slice(from, match.index), isControl: false });
    found.push({ text: nameOf(match[0]), isControl: true });
    from = match.index + match[0].length;
  }
  if (from < text.length || found.length === 0) found.push({ text: text.slice(from), isControl: false });
  return found;
}

/** Does the same for places that only accept plain text. */
export function plain(text: string): string {
  return text.replace(HIDDEN, (character) => `⟨${nameOf(character)}⟩`);
}

/** Returns the end of a cut that splits no character. */
export function cutAt(text: string, most: number): number {
  if (text.length <= most) return text.length;
  const last = text.charCodeAt(most - 1);
  return last >= 0xd800 && last < 0xdc00 ? most - 1 : most;
}

/** Returns the starts of the rows of a text: at every line, and in long lines after a fixed number of characters. */
export function rowStarts(text: string, width: number): Uint32Array {
  const starts: number[] = [];
  let from = 0;
  for (;;) {
    const found = text.indexOf("\n", from);
    const end = found === -1 ? text.length : found;
    starts.push(from);
    for (let at = from + width; at < end; at += width) starts.push(at);
    if (found === -1) break;
    from = found + 1;
  }
  return Uint32Array.from(starts);
}

/** Returns the text of one row. */
export function row(text: string, starts: Uint32Array, index: number): string {
  const from = starts[index] ?? text.length;
  const to = index + 1 < starts.length ? (starts[index + 1] as number) : text.length;
  return text.slice(from, to).replace(/\r?\n$/, "");
}
