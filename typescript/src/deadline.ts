// The two ways to end a run: a signal and a time limit of the caller. Both become one signal and one failure.

import { clientFailure } from "./failure.js";
import type { Failure } from "./types.js";

/** Ends at the caller's signal or time limit. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #timeout: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #late = false;
  readonly #onAbort = () => this.#controller.abort();

  constructor(signal: AbortSignal | undefined, timeout: number | undefined) {
    this.#caller = signal;
    this.#timeout = timeout;
    if (signal?.aborted) this.#controller.abort();
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    if (timeout !== undefined) {
      this.#timer = setTimeout(() => {
        this.#late = true;
        this.#controller.abort();
      }, timeout);
    }
  }

  /** Aborted when the run must end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get hasPassed(): boolean {
    return this.#controller.signal.aborted;
  }

  /** The failure for the caller. */
  failure(sessionId?: string): Failure {
    if (this.#late) {
      const message = `no answer within ${this.#timeout} ms`;
      return clientFailure("timeout", message, { suggestion: "Raise `timeout`, or send less", sessionId });
    }
    return clientFailure("cancelled", "the run was cancelled by the caller", { sessionId });
  }

  /** Releases timer and signal. The creator calls this at the end of the run. */
  release(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#onAbort);
  }
}

/** Waits for a time, or until the signal is aborted. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done, { once: true });
  });
}
