// Several runs over one WebSocket. It is opened for the first run and closed after the last one, so that it does not keep a program
// alive. If it breaks, its runs are notified; `stream.ts` resumes their streams over HTTP.

import type { Connection } from "./connection.js";
import { isHeartbeat, isLast, type Piece } from "./framing.js";
import { Queue } from "./queue.js";

/** The error for a WebSocket that cannot be opened, with the message for the caller. */
export class NoSocket extends Error {}

/** The characters that a key may have in a handshake. */
const SHOWABLE = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** The `readyState` of an open socket. */
const OPEN = 1;

/** A run over the socket. */
export interface SocketRun {
  pieces(heard: () => void): AsyncGenerator<Piece, void, undefined>;
  /** Asks the server to cancel the run. Returns `false` if the message cannot be sent. */
  cancel(sessionId: string): boolean;
  /** Detaches from the run. */
  leave(): void;
}

/** The only socket of a client. */
export class SharedSocket {
  readonly #connection: Connection;
  #live: Promise<LiveSocket> | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Starts a run. `message` is the whole message without its id. */
  async start(message: Record<string, unknown>): Promise<SocketRun> {
    let live = await (this.#live ??= this.#connect());
    // The last run of the old socket may have ended during the wait.
    if (!live.isOpen) live = await (this.#live = this.#connect());
    return live.start(message);
  }

  #connect(): Promise<LiveSocket> {
    const connected = this.#dial();
    const forget = () => {
      if (this.#live === connected) this.#live = undefined;
    };
    connected.then((live) => (live.onEnd = forget), forget);
    return connected;
  }

  async #dial(): Promise<LiveSocket> {
    const Maker = this.#connection.socketMaker;
    if (Maker === undefined) throw new NoSocket("this environment has no WebSocket; pass one as the option `WebSocket`");
    const key = await this.#connection.key();
    if (key !== undefined && !SHOWABLE.test(key)) {
      throw new NoSocket("a WebSocket cannot carry some characters of this key; use another transport");
    }
    const url = this.#connection.url("ws").replace(/^http/, "ws");
    const socket = new Maker(url, key === undefined ? ["cogn"] : ["cogn", `cogn.bearer.${key}`]);
    return new Promise((resolve, reject) => {
      const live = new LiveSocket(socket);
      socket.addEventListener("open", () => resolve(live));
      socket.addEventListener("message", (event: MessageEvent) => live.hear(String(event.data)));
      const lose = (message: string) => {
        const lost = new Error(message);
        live.lose(lost);
        reject(lost);
      };
      // Some implementations fire `error` and never `close`.
      socket.addEventListener("error", () => lose("the WebSocket failed"));
      socket.addEventListener("close", ({ code, reason }: CloseEvent) => {
        lose(`the WebSocket was closed with ${code} ${reason}`.trimEnd());
      });
    });
  }
}

/** One socket and its runs, from the first to the last. */
class LiveSocket {
  readonly #socket: WebSocket;
  readonly #runs = new Map<number, Queue<Piece>>();
  /** The runs without a message so far, oldest first. */
  readonly #silent = new Set<number>();
  #next = 1;
  onEnd: () => void = () => undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  get isOpen(): boolean {
    return this.#socket.readyState === OPEN;
  }

  start(message: Record<string, unknown>): SocketRun {
    const id = this.#next++;
    const queue = new Queue<Piece>();
    this.#runs.set(id, queue);
    this.#silent.add(id);
    this.#socket.send(JSON.stringify({ type: "run", id, ...message }));
    return {
      pieces: (heard) => pieces(queue, heard),
      cancel: (session_id) => {
        if (!this.isOpen) return false;
        this.#socket.send(JSON.stringify({ type: "cancel", session_id }));
        return true;
      },
      leave: () => this.#leave(id),
    };
  }

  hear(text: string): void {
    let message: { id?: number };
    try {
      message = JSON.parse(text);
    } catch {
      return this.#socket.close(1002);
    }
    // The refusal of an unreadable message has no id.
    const [silent] = this.#silent;
    const { id = silent, ...chunk } = message;
    const run = id === undefined ? undefined : this.#runs.get(id);
    if (id === undefined || run === undefined) return;
    this.#silent.delete(id);
    run.push(chunk as Piece);
    if (isLast(chunk)) run.end();
  }

  /** The socket is closed, and so are its runs. */
  lose(lost: Error): void {
    this.onEnd();
    for (const run of this.#runs.values()) run.fail(lost);
    this.#runs.clear();
  }

  #leave(id: number): void {
    this.#silent.delete(id);
    if (!this.#runs.delete(id) || this.#runs.size > 0) return;
    this.onEnd();
    this.#socket.close(1000);
  }
}

async function* pieces(queue: Queue<Piece>, heard: () => void): AsyncGenerator<Piece, void, undefined> {
  for (;;) {
    const next = await queue.next();
    heard();
    if (next.done) return;
    if (!isHeartbeat(next.value)) yield next.value;
  }
}
