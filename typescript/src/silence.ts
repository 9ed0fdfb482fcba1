// Detects dead connections: the server sends something every 15 seconds, so a longer silence means that the connection is lost.

/** Aborts after too long a silence, or when the connection is closed. */
export class Silence {
  readonly #controller = new AbortController();
  readonly #line: AbortSignal;
  readonly #after: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #stop = () => this.#controller.abort(new Error("the connection was silent for too long"));

  constructor(after: number, line: AbortSignal) {
    this.#after = after;
    this.#line = line;
    if (line.aborted) this.#stop();
    line.addEventListener("abort", this.#stop, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Restarts the timer: data has arrived, or is expected from now on. */
  readonly heard = (): void => {
    clearTimeout(this.#timer);
    if (Number.isFinite(this.#after)) this.#timer = setTimeout(this.#stop, this.#after);
  };

  release(): void {
    clearTimeout(this.#timer);
    this.#line.removeEventListener("abort", this.#stop);
  }

  /** Reads until the connection is silent for too long. */
  async *over<T>(source: AsyncGenerator<T, void, undefined>): AsyncGenerator<T, void, undefined> {
    const { signal } = this;
    const silent = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    silent.catch(() => undefined);
    for (;;) {
      const next = await Promise.race([source.next(), silent]);
      if (next.done) return;
      yield next.value;
    }
  }
}
