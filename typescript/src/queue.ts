// What was pushed and is not taken yet. One reads; a push never waits, so that a slow reader does not hold up the connection: the
// server lets go of clients that do not take what they are sent.

/** A queue with one reader. It ends once, well or with an error. */
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

  /** The next item, once there is one. */
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
