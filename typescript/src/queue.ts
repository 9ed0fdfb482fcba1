// A queue of chunks with one reader. A push never waits, so a slow reader does not block the connection: the server disconnects
// clients that read too slowly.

/** A queue with one reader. It ends once, with or without an error. */
export class Queue<T> {
  readonly #items: T[] = [];
  #end: { error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  push(item: T): void {
    if (this.#end !== undefined) return;
    this.#items.push(item);
    this.#wake?.();
  }

  end(): void {
    this.#end ??= {};
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  /** Returns the next item as soon as there is one. */
  async next(): Promise<IteratorResult<T, undefined>> {
    for (;;) {
      if (this.#items.length > 0) return { done: false, value: this.#items.shift() as T };
      if (this.#end !== undefined) {
        if ("error" in this.#end) throw this.#end.error;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
  }
}
