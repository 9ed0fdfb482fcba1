// A run with a streamed answer: reads the server-sent events of one request, reports each one, and ends with one envelope. A stop
// first cancels the run on the server, so that the model does not continue.

import { address, failureOf, isEnvelope, noAnswer, refuse, runBody, send } from "./api";
import { assignAt } from "./json";
import type { Chunk, Envelope, JsonObject, RunOptions } from "./wire";

/** The callbacks of a running stream. */
export interface Heard {
  /** The data so far; provisional. */
  data(data: JsonObject): void;
  progress(percent: number, stage: string, message: string): void;
}

/** The events of a body in their order. An incomplete event is left out. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<Chunk> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  let data = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const each of lines) {
      const line = each.endsWith("\r") ? each.slice(0, -1) : each;
      if (line === "" && data !== "") {
        yield JSON.parse(data) as Chunk;
        data = "";
      } else if (line.startsWith("data:")) {
        data += (data === "" ? "" : "\n") + line.slice(line[5] === " " ? 6 : 5);
      }
    }
  }
}

/** Returns the envelope of a last chunk; `null` for all others. */
function envelopeOf(chunk: Chunk): Envelope | null {
  if (chunk.final && chunk.meta && chunk.data) {
    const meta = chunk.usage === undefined ? chunk.meta : { usage: chunk.usage, ...chunk.meta };
    return { ok: true, meta, data: chunk.data };
  }
  if (chunk.ok === false && chunk.meta && chunk.error) {
    return { ok: false, meta: chunk.meta, error: chunk.error, partial_data: chunk.partial_data ?? null };
  }
  return null;
}

/** Runs a module and reports the growing answer. */
export async function stream(
  module: string, input: string, options: RunOptions, heard: Heard, stopped: AbortSignal,
): Promise<Envelope> {
  const connection = new AbortController();
  let session: string | null = null;
  const stop = () => {
    if (session === null) return connection.abort();
    // The stream then ends with the envelope of a cancelled run.
    send(address(`v1/streams/${encodeURIComponent(session)}`), { method: "DELETE" }).catch(() => connection.abort());
  };
  stopped.addEventListener("abort", stop);
  try {
    const response = await send(address(`v1/modules/${encodeURIComponent(module)}/execute`), {
      method: "POST",
      body: runBody(input, options),
      headers: { accept: "text/event-stream, application/json;q=0.5" },
      signal: connection.signal,
    });
    const type = response.headers.get("content-type") ?? "";
    if (!type.startsWith("text/event-stream")) {
      const value: unknown = await response.clone().json().catch(() => null);
      return isEnvelope(value) ? value : await refuse(response);
    }
    session = response.headers.get("x-cognitive-recovery-session");
    if (stopped.aborted) stop();
    let data: JsonObject = {};
    for await (const chunk of events(response.body ?? new ReadableStream())) {
      session ??= chunk.session_id ?? null;
      const envelope = envelopeOf(chunk);
      if (envelope !== null) return envelope;
      if (chunk.chunk?.type === "delta") heard.data((data = assignAt(data, chunk.chunk.field, chunk.chunk.delta)));
      if (chunk.chunk?.type === "snapshot") heard.data((data = chunk.chunk.data));
      if (chunk.progress) heard.progress(chunk.progress.percent, chunk.progress.stage ?? "", chunk.progress.message ?? "");
    }
    return noAnswer("the connection was lost before the answer was complete");
  } catch (thrown) {
    return failureOf(thrown);
  } finally {
    stopped.removeEventListener("abort", stop);
    connection.abort();
  }
}
