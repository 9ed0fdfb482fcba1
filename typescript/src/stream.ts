// A streamed answer: chunks as they arrive, and the envelope at the end. After a lost connection the stream is resumed. The server
// is asked not to start a new run, so a lost connection never costs a second model call.

import { type Connection, unreachable } from "./connection.js";
import { Deadline, pause } from "./deadline.js";
import { clientFailure, reason } from "./failure.js";
import { events, isLast, jsonLines, type Piece } from "./framing.js";
import { Queue } from "./queue.js";
import { Silence } from "./silence.js";
import { NoSocket, type SharedSocket, type SocketRun } from "./socket.js";
import type { Chunk, Envelope, FailedChunk, Failure, FinalChunk } from "./types.js";
import { envelopeOf, type Question, type RunOptions } from "./wire.js";

/** The options of a stream. */
export interface StreamOptions extends RunOptions {
  /** The transport; server-sent events by default. All transports carry the same chunks. */
  transport?: "sse" | "ndjson" | "websocket";
  /** `snapshot`: every chunk contains all data so far. */
  chunkType?: "delta" | "snapshot";
  /** Fail with E4010 if the answer cannot be streamed. */
  requireStreaming?: boolean;
  /** The maximum number of reconnects in a row without a new chunk; the default is 5. */
  attempts?: number;
  /** Milliseconds before the first reconnect: 250. Each further delay is twice as long, up to 8 seconds. */
  delay?: number;
  /** Milliseconds of silence after which a connection counts as lost: 45,000. The server sends a heartbeat every 15 seconds. */
  silence?: number;
}

const LONGEST_DELAY = 8_000;
/** The time to wait for the id of a run that was cancelled before it had one. The server needs the id to cancel it. */
const NAMELESS = 10_000;

/** The functions of the client that a stream needs. */
export interface StreamSource {
  connection: Connection;
  socket: SharedSocket;
  module: string;
  question: Question;
  /** Opens the stream over a WebSocket. */
  message: Record<string, unknown>;
  /** Returns the reason why the input is invalid, before anything is sent. */
  refusal: () => Promise<Failure | null>;
  /** Assembles the chunks; without it, the last chunk is used. */
  assemble?: ((chunks: Chunk<never>[]) => Envelope<never>) | undefined;
}

/** The error for an answer that is not a stream: a whole answer, or a refusal. */
class Answered {
  constructor(
    readonly envelope: Envelope<never>,
    readonly retryAfter: number | undefined,
  ) {}

  /** Returns whether a stream may be resumed later: too many streams at once, or a gateway without its server. */
  get mayPass(): boolean {
    return !this.envelope.ok && ["E4001", "E4002"].includes(this.envelope.error.code);
  }
}

/**
 * A streamed answer. Iterate over it for the chunks, and await `final` for the envelope, with or without reading the chunks.
 * Leaving the loop early cancels the run.
 */
export class RunStream<Data> implements AsyncIterable<Chunk<Data>> {
  /** The answer. Never rejects: an error becomes a failure. */
  readonly final: Promise<Envelope<Data>>;

  readonly #source: StreamSource | Failure;
  readonly #options: StreamOptions;
  readonly #deadline: Deadline;
  readonly #chunks = new Queue<Chunk<Data>>();
  readonly #log: Chunk<never>[] = [];
  /** Closes the current connection. */
  readonly #line = new AbortController();
  #resolve: (envelope: Envelope<Data>) => void = () => undefined;
  #isOver = false;
  #told: Promise<void> | undefined;
  #run: SocketRun | undefined;
  #session: string | undefined;
  #named: () => void = () => undefined;
  /** The chunks that have arrived; the server counts them too. */
  #place = 0;
  /** The connections in a row without a new chunk. */
  #fruitless = 0;

  /** Created by `Cogn.stream`. */
  constructor(source: StreamSource | Failure, options: StreamOptions) {
    this.#source = source;
    this.#options = options;
    this.final = new Promise((resolve) => (this.#resolve = resolve));
    this.#deadline = new Deadline(options.signal, options.timeout);
    if (this.#deadline.hasPassed) this.#give(this.#deadline.failure());
    else if ("ok" in source) this.#give(source);
    else {
      this.#deadline.signal.addEventListener("abort", () => {
        this.#give(this.#deadline.failure(this.#session));
        void this.#tell(source);
      });
      void this.#follow(source);
    }
  }

  /** The id of the stream on the server, as soon as it is known. */
  get sessionId(): string | undefined {
    return this.#session;
  }

  /** Cancels the run, here and on the server. Resolves when the server has received the request. */
  async cancel(): Promise<void> {
    const message = "the run was cancelled by the caller";
    this.#give(clientFailure("cancelled", message, { sessionId: this.#session }));
    if (!("ok" in this.#source)) await this.#tell(this.#source);
  }

  [Symbol.asyncIterator](): AsyncIterator<Chunk<Data>, undefined> {
    return {
      next: () => this.#chunks.next(),
      return: async () => {
        if (!this.#isOver) await this.cancel();
        return { done: true, value: undefined };
      },
    };
  }

  /** Ends the stream with its answer. Later chunks are ignored. */
  #give(envelope: Envelope<Data>): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#deadline.release();
    this.#resolve(envelope);
    this.#chunks.end();
  }

  /** Asks the server, once, to cancel the run. An ended run needs no request. */
  #tell(source: StreamSource): Promise<void> {
    if (this.#line.signal.aborted) return this.#told ?? Promise.resolve();
    return (this.#told ??= this.#tellNow(source));
  }

  async #tellNow({ connection }: StreamSource): Promise<void> {
    if (this.#session === undefined) {
      const named = new AbortController();
      this.#named = () => named.abort();
      await pause(NAMELESS, named.signal);
    }
    const session = this.#session;
    if (session !== undefined && this.#run?.cancel(session) !== true) {
      // `keepalive` sends the request even while the page is closed.
      const asked = connection.request(`v1/streams/${session}`, { method: "DELETE", keepalive: true });
      await asked.then((response) => response.body?.cancel()).catch(() => undefined);
    }
    this.#end();
  }

  /** Nothing more is read. */
  #end(): void {
    this.#line.abort();
    this.#named();
    this.#run?.leave();
    this.#run = undefined;
  }

  /** Reads one connection after the other, up to the last chunk. */
  async #follow(source: StreamSource): Promise<void> {
    const refused = await source.refusal();
    if (refused !== null) this.#give(refused);
    while (!this.#isOver) {
      const wait = await this.#readOne(source);
      if (this.#isOver) break;
      await pause(wait, this.#line.signal);
    }
    this.#end();
  }

  /** Reads one connection. Returns the answer if there is one, else the delay before the next attempt. */
  async #readOne(source: StreamSource): Promise<number> {
    let trouble: unknown = new Error("the stream ended without its last chunk");
    try {
      for await (const chunk of this.#pieces(source)) this.#take(source, chunk);
    } catch (error) {
      trouble = error;
    }
    const begun = this.#run !== undefined;
    this.#run?.leave();
    this.#run = undefined;
    if (this.#isOver) return 0;
    const { attempts = 5, delay = 250 } = this.#options;
    this.#fruitless += 1;
    const isSpent = this.#session === undefined || this.#fruitless > attempts;
    if (trouble instanceof Answered) {
      if (isSpent || !trouble.mayPass) this.#give(trouble.envelope as Envelope<Data>);
      if (trouble.retryAfter !== undefined) return trouble.retryAfter;
    } else if (trouble instanceof NoSocket) {
      this.#give(clientFailure("unsupported", trouble.message));
    } else if (this.#session === undefined && !begun) {
      this.#give(unreachable(source.connection, trouble));
    } else if (isSpent) {
      const message = `the connection was lost and could not be taken up again: ${reason(trouble)}`;
      this.#give(clientFailure("interrupted", message, { details: { attempts }, sessionId: this.#session }));
    }
    return Math.min(delay * 2 ** (this.#fruitless - 1), LONGEST_DELAY);
  }

  #take(source: StreamSource, chunk: Piece): void {
    if ("session_id" in chunk) this.#name(chunk.session_id);
    // The first chunk of a resumed stream is not new, unless the original first chunk never arrived.
    const isNew = !("resumed" in chunk) || this.#place === 0;
    if (isNew) [this.#place, this.#fruitless] = [this.#place + 1, 0];
    if (this.#isOver) return;
    if (source.assemble !== undefined) this.#log.push(chunk);
    this.#chunks.push(chunk as Chunk<Data>);
    if (!isLast(chunk)) return;
    const last = chunk as FinalChunk<never> | FailedChunk;
    this.#give((source.assemble?.(this.#log) ?? envelopeOfLast(last)) as Envelope<Data>);
    this.#end();
  }

  #name(session: string | null): void {
    if (session === null || this.#session !== undefined) return;
    this.#session = session;
    this.#named();
  }

  async *#pieces(source: StreamSource): AsyncGenerator<Piece, void, undefined> {
    const { transport = "sse", silence: after = 45_000 } = this.#options;
    const silence = new Silence(after, this.#line.signal);
    try {
      if (transport === "websocket" && this.#session === undefined) {
        this.#run = await source.socket.start(source.message);
        silence.heard();
        yield* silence.over(this.#run.pieces(silence.heard));
        return;
      }
      // A run that has not started may still wait for its model; a resumed one answers at once.
      if (this.#session !== undefined) silence.heard();
      const kind = transport === "ndjson" ? "application/x-ndjson" : "text/event-stream";
      const response = await this.#request(source, kind, silence.signal);
      silence.heard();
      this.#name(response.headers.get("x-cognitive-recovery-session"));
      if (response.body === null) return;
      yield* (transport === "ndjson" ? jsonLines : events)(response.body, silence.heard);
    } finally {
      silence.release();
    }
  }

  async #request({ connection, question, module }: StreamSource, kind: string, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { accept: `${kind}, application/json;q=0.5`, "content-type": "application/json" };
    if (this.#options.traceparent !== undefined) headers["traceparent"] = this.#options.traceparent;
    let { path, body } = question;
    if (this.#session !== undefined) {
      path = `api/run/${encodeURIComponent(module)}`;
      body = `{"_options":{"resume_only":true}}`;
      headers["last-event-id"] = `${this.#session}:${this.#place}`;
    }
    const response = await connection.request(path, { method: "POST", body, signal }, headers);
    if (response.ok && response.headers.get("content-type")?.startsWith(kind)) return response;
    const after = Number(response.headers.get("retry-after") ?? "NaN");
    throw new Answered(await envelopeOf<never>(response), Number.isNaN(after) ? undefined : after * 1_000);
  }
}

/** Returns the envelope of a last chunk. A validated answer does not need the chunks before it. */
export function envelopeOfLast<Data>(chunk: FinalChunk<Data> | FailedChunk): Envelope<Data> {
  const emitted = chunk._emitted_context === undefined ? {} : { _emitted_context: chunk._emitted_context };
  if ("final" in chunk) {
    const meta = chunk.usage === undefined ? chunk.meta : { ...chunk.meta, usage: chunk.usage };
    return { ok: true, meta, data: chunk.data, ...emitted };
  }
  const { meta, error, partial_data, session_id } = chunk;
  const partial = partial_data === undefined ? {} : { partial_data };
  return { ok: false, meta, error, ...partial, ...emitted, streaming: true, session_id };
}
