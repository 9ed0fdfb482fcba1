// Links that restore an input. It is compressed in the fragment of the address, which is never sent to a server.

/** The maximum length of a link. Some programs truncate longer ones. */
export const LONGEST = 8000;

/** The maximum size of the unpacked input, and the maximum number of letters to unpack. */
const MOST = 1_000_000;
const MOST_LETTERS = 100_000;

/** Sends bytes through a stream; returns `null` if the output exceeds the limit. */
async function through(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream, most = Number.POSITIVE_INFINITY): Promise<Uint8Array | null> {
  const reader = new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array>).getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for (let length = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(pieces).arrayBuffer());
    length += value.length;
    if (length > most) {
      await reader.cancel();
      return null;
    }
    pieces.push(new Uint8Array(value));
  }
}

/** Encodes a text for a link. */
export async function packed(text: string): Promise<string> {
  const bytes = (await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"))) ?? [];
  let letters = "";
  for (const each of bytes) letters += String.fromCharCode(each);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Decodes the text of a link; `null` if it is invalid or too long. */
export async function unpacked(link: string): Promise<string | null> {
  if (link.length > MOST_LETTERS) return null;
  try {
    const letters = atob(link.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const text = await through(bytes, new DecompressionStream("deflate-raw"), MOST);
    return text === null ? null : new TextDecoder().decode(text);
  } catch {
    return null;
  }
}
