// The `_context` of an input, from the raw data of an application. Sends nothing.

import type { Envelope } from "./types.js";

/** One turn of a conversation. */
export interface Turn {
  role: "user" | "assistant" | "system";
  content: string;
  /** The time, in the format of RFC 3339. */
  timestamp?: string;
}

/** Builds context from raw data. A later value of the same type replaces the earlier one. */
export class ContextBuilder {
  readonly #maxTurns: number;
  readonly #context: Record<string, unknown> = {};

  /** A builder that keeps the last ten turns of a conversation, or `maxTurns`. */
  constructor({ maxTurns = 10 }: { maxTurns?: number } = {}) {
    this.#maxTurns = Math.max(1, maxTurns);
  }

  /** Adds the last turns of a conversation. With `summarise`, one turn with its text replaces the older ones. */
  conversation(turns: readonly Turn[], summarise?: (older: readonly Turn[]) => string): this {
    if (turns.length <= this.#maxTurns) return this.add("conversation_history", [...turns]);
    if (summarise === undefined) return this.add("conversation_history", turns.slice(-this.#maxTurns));
    const recent = turns.length - (this.#maxTurns - 1);
    const summary: Turn = { role: "system", content: summarise(turns.slice(0, recent)) };
    return this.add("conversation_history", [summary, ...turns.slice(recent)]);
  }

  /** Adds facts about the user. */
  userProfile(profile: object): this {
    return this.add("user_profile", profile);
  }

  /** Adds the state of the session. */
  sessionState(state: object): this {
    return this.add("session_state", state);
  }

  /** Adds the answer of an earlier module. A failure has no result and changes nothing. */
  previousResult(module: string, envelope: Envelope): this {
    if (!envelope.ok) return this;
    return this.add("previous_result", { module, meta: envelope.meta, data: envelope.data });
  }

  /** Adds context of any type. */
  add(kind: string, value: unknown): this {
    this.#context[kind] = value;
    return this;
  }

  /** Returns the context by type. */
  build(): Record<string, unknown> {
    return { ...this.#context };
  }

  /** Returns an input with this context. */
  intoInput<Input extends object>(input: Input): Input & { _context: Record<string, unknown> } {
    return { ...input, _context: this.build() };
  }
}
