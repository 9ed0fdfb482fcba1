// Parses the chunks of an HTTP response: server-sent events or one JSON object per line. An incomplete chunk is left out: the
// reader resumes after the last complete one. Knows nothing of sessions.

import type { Chunk } from "./types.js";

/** One chunk of a stream, with any data. */
export type Piece = Chunk<never>;

/** The lines of a body, without their ends. An unterminated last line is dropped. */
async function* lines(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      heard();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      // A `\r` at the very end may be half of `\r\n`, so it waits for the next bytes.
      let start = 0;
      const ends = /\r\n|\n|\r(?!$)/g;
      for (let end = ends.exec(rest); end !== null; end = ends.exec(rest)) {
        yield rest.slice(start, end.index);
        start = ends.lastIndex;
      }
      rest = rest.slice(start);
    }
  } finally {
    // A reader that stops early also releases the connection.
    await reader.cancel().catch(() => undefined);
  }
}

/** A heartbeat is an empty object and not a chunk. */
export function isHeartbeat(chunk: object): boolean {
  return Object.keys(chunk).length === 0;
}

/** The chunks of `text/event-stream`. */
export async function* events(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<Piece, void, undefined> {
  let data = "";
  for await (const line of lines(body, heard)) {
    if (line === "") {
      const chunk: Piece | undefined = data === "" ? undefined : JSON.parse(data);
      if (chunk !== undefined && !isHeartbeat(chunk)) yield chunk;
      data = "";
      continue;
    }
    // Names and numbers of events repeat the contents of their chunks.
    if (!line.startsWith("data:")) continue;
    const value = line.slice(line[5] === " " ? 6 : 5);
    data += data === "" ? value : `\n${value}`;
  }
}

/** The chunks of `application/x-ndjson`. */
export async function* jsonLines(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<Piece, void, undefined> {
  for await (const line of lines(body, heard)) {
    if (line.trim() === "") continue;
    const chunk: Piece = JSON.parse(line);
    if (!isHeartbeat(chunk)) yield chunk;
  }
}

/** Returns whether a chunk is the last of its stream. */
export function isLast(chunk: object): boolean {
  return "final" in chunk || ("ok" in chunk && chunk.ok === false);
}
