// The input of a run, as a value and as the text to send. A form changes the value, a text field the text; both always match. Bytes
// of dropped files are stored separately under a name, and are inserted when a request is written.

import { bytes as size } from "./format";
import { parsed, pretty } from "./json";
import type { Json } from "./wire";

/** A dropped file. */
export interface Attached {
  name: string;
  type: string;
  base64: string;
  /** The address for its preview. */
  url: string;
}

/** Files by their placeholders. */
const attached = new Map<string, Attached>();

/** Returns the file behind a placeholder. */
export function attachedFile(token: unknown): Attached | undefined {
  return typeof token === "string" ? attached.get(token) : undefined;
}

async function base64(file: Blob): Promise<string> {
  const all = new Uint8Array(await file.arrayBuffer());
  let text = "";
  // In pieces that fit into the arguments of one call, and whose base64 can be joined.
  const piece = 0x8000 - (0x8000 % 3);
  for (let from = 0; from < all.length; from += piece) text += btoa(String.fromCharCode(...all.subarray(from, from + piece)));
  return text;
}

/** The types with a preview. A picture that is a document, such as SVG, has none: opened directly, it would be a page of this origin. */
const PREVIEWED = /^(image\/(png|jpeg|gif|webp|avif)|audio\/.*|video\/.*)$/;

/** Stores a file and returns its placeholder. */
export async function attach(file: File): Promise<{ token: string; type: string }> {
  const made: Attached = { name: file.name, type: file.type, base64: await base64(file), url: PREVIEWED.test(file.type) ? URL.createObjectURL(file) : "" };
  const same = [...attached].find(([, each]) => each.base64 === made.base64 && each.name === made.name);
  if (same !== undefined) return { token: same[0], type: made.type };
  const token = `«file ${attached.size + 1}: ${file.name}, ${size(file.size)}»`;
  attached.set(token, made);
  return { token, type: made.type };
}

/** Replaces the placeholders in a JSON text with the bytes of the files. */
export function withFiles(text: string): string {
  let whole = text;
  for (const [token, file] of attached) whole = whole.replaceAll(JSON.stringify(token), `"${file.base64}"`);
  return whole;
}

export class InputText {
  text = $state("{}");
  value = $state.raw<Json>({});
  /** The reason why the text is not JSON. The value is then the last valid one. */
  problem = $state("");

  constructor(value: Json = {}) {
    this.setValue(value);
  }

  setValue(value: Json): void {
    this.value = value;
    this.text = pretty(value);
    this.problem = "";
  }

  setText(text: string): void {
    this.text = text;
    const read = parsed(text);
    if ("value" in read) {
      this.value = read.value;
      this.problem = "";
    } else {
      this.problem = read.problem;
    }
  }

  /** The text to send. */
  get whole(): string {
    return withFiles(this.text);
  }
}
