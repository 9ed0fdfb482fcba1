// The input of a run, as a value and as the text that is sent: a form changes the one, a text field the other, and both are always
// the same. Bytes of dropped files stay outside of both, under a name; they are put in when a request is written.

import { bytes as size } from "./format";
import { parsed, pretty } from "./json";
import type { Json } from "./wire";

/** A file that was dropped. */
export interface Attached {
  name: string;
  type: string;
  base64: string;
  /** Shows it in the page. */
  url: string;
}

/** Files by what stands in their place. */
const attached = new Map<string, Attached>();

/** The file that a value stands for. */
export function attachedFile(token: unknown): Attached | undefined {
  return typeof token === "string" ? attached.get(token) : undefined;
}

async function base64(file: Blob): Promise<string> {
  const all = new Uint8Array(await file.arrayBuffer());
  let text = "";
  // In pieces that fit into the arguments of one call, and that base64 can be cut at.
  const piece = 0x8000 - (0x8000 % 3);
  for (let from = 0; from < all.length; from += piece) text += btoa(String.fromCharCode(...all.subarray(from, from + piece)));
  return text;
}

/** What a preview may be of. A picture that is a document, such as SVG, gets no address: opened by itself it would be a page of this origin. */
const PREVIEWED = /^(image\/(png|jpeg|gif|webp|avif)|audio\/.*|video\/.*)$/;

/** Takes a file in; what comes back stands for its bytes. */
export async function attach(file: File): Promise<{ token: string; type: string }> {
  const made: Attached = { name: file.name, type: file.type, base64: await base64(file), url: PREVIEWED.test(file.type) ? URL.createObjectURL(file) : "" };
  const same = [...attached].find(([, each]) => each.base64 === made.base64 && each.name === made.name);
  if (same !== undefined) return { token: same[0], type: made.type };
  const token = `«file ${attached.size + 1}: ${file.name}, ${size(file.size)}»`;
  attached.set(token, made);
  return { token, type: made.type };
}

/** A text of JSON with the bytes of files in the place of their names. */
export function withFiles(text: string): string {
  let whole = text;
  for (const [token, file] of attached) whole = whole.replaceAll(JSON.stringify(token), `"${file.base64}"`);
  return whole;
}

export class InputText {
  text = $state("{}");
  value = $state.raw<Json>({});
  /** Why the text is no JSON; the value is then the last that was. */
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

  /** What is sent. */
  get whole(): string {
    return withFiles(this.text);
  }
}
