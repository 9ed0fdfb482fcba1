// The connection to one server: addresses, headers, the key. Holds no other state.

import { CognError, clientFailure, reason } from "./failure.js";

/** The constructor of a WebSocket: that of the environment, or a compatible one. */
export type WebSocketMaker = new (url: string, protocols: string[]) => WebSocket;

/** The address and the key of a server. */
export interface ConnectionOptions {
  /** The address of `cogn serve`, such as `http://localhost:8000`; it may have a path. */
  baseUrl: string | URL;
  /** The API key, or a function that returns it on demand. */
  key?: string | (() => string | Promise<string>);
  /** Headers of every request, for a proxy in front of the server. */
  headers?: Record<string, string>;
  /** A replacement for the `fetch` of the environment. */
  fetch?: typeof globalThis.fetch;
  /** A replacement for the `WebSocket` of the environment. Node has one from version 22 on. */
  WebSocket?: WebSocketMaker;
}

/** A server that accepts requests. */
export class Connection {
  readonly base: URL;
  readonly #options: ConnectionOptions;

  constructor(options: ConnectionOptions) {
    const base = new URL(options.baseUrl);
    if (base.protocol !== "http:" && base.protocol !== "https:") {
      throw new TypeError(`\`baseUrl\` must begin with http:// or https://: ${base.href}`);
    }
    if (!base.pathname.endsWith("/")) base.pathname += "/";
    this.base = base;
    this.#options = options;
  }

  /** Returns the address of a path. A path that begins with `/` is relative to the server behind a proxy. */
  url(path: string): string {
    return new URL(path.replace(/^\/+/, ""), this.base).href;
  }

  async key(): Promise<string | undefined> {
    const { key } = this.#options;
    return typeof key === "function" ? await key() : key;
  }

  get socketMaker(): WebSocketMaker | undefined {
    return this.#options.WebSocket ?? (globalThis as { WebSocket?: WebSocketMaker }).WebSocket;
  }

  /** Sends a request. Throws what `fetch` throws. */
  async request(path: string, init: RequestInit, headers: Record<string, string> = {}): Promise<Response> {
    const key = await this.key();
    const all = new Headers(this.#options.headers);
    if (key !== undefined) all.set("authorization", `Bearer ${key}`);
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    const call = this.#options.fetch ?? globalThis.fetch;
    return call(this.url(path), { ...init, headers: all });
  }

  /** Sends a request that is not a run. Throws if the server cannot be reached. */
  async ask(path: string, init: RequestInit, headers: Record<string, string> = {}): Promise<Response> {
    try {
      return await this.request(path, init, headers);
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new CognError(unreachable(this, error));
    }
  }
}

/** The failure of a request without an answer. */
export function unreachable(connection: Connection, error: unknown) {
  const message = `the server cannot be reached: ${reason(error)}`;
  const suggestion = `Check that \`cogn serve\` answers at ${connection.base.origin}, and in a browser that \`--cors\` names this page`;
  return clientFailure("unreachable", message, { suggestion });
}
