// Links that restore an input: compressed, in the part of the address that no server ever sees.

/** Longer links are cut off somewhere on their way. */
export const LONGEST = 8000;

async function through(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream): Promise<Uint8Array> {
  const body = new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array>);
  return new Uint8Array(await new Response(body).arrayBuffer());
}

/** A text as it stands in a link. */
export async function packed(text: string): Promise<string> {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let letters = "";
  for (const each of bytes) letters += String.fromCharCode(each);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The most that a link may hold once it is unpacked. */
const MOST = 1_000_000;

/** The text of a link; `null` if it is none. */
export async function unpacked(link: string): Promise<string | null> {
  try {
    const letters = atob(link.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const text = new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
    return text.length > MOST ? null : text;
  } catch {
    return null;
  }
}
