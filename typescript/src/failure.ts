// Failures of this client, in the form of the server's failures: a published code, a message, a suggestion. `details.made_by` is
// `client` in all of them, and `details.kind` is one of the kinds below. Throws nothing.

import type { Failure } from "./types.js";

/** The kinds of failures on this side of the connection. */
export type ClientFailureKind =
  /** The server does not respond at this address, or a gateway reports that. */
  | "unreachable"
  /** The connection broke and could not be resumed. */
  | "interrupted"
  /** The caller's signal was aborted. */
  | "cancelled"
  /** The caller's time limit was reached. */
  | "timeout"
  /** The answer is not an envelope. */
  | "no_envelope"
  /** The input cannot be written as JSON. */
  | "no_json"
  /** This environment does not support the request, such as a WebSocket. */
  | "unsupported";

interface Entry {
  code: string;
  opening: string;
  recoverable: boolean;
}

const CATALOGUE: Record<ClientFailureKind, Entry> = {
  unreachable: { code: "E4001", opening: "Server unreachable", recoverable: true },
  interrupted: { code: "E2010", opening: "Connection lost", recoverable: true },
  cancelled: { code: "E2010", opening: "Cancelled by the caller", recoverable: true },
  timeout: { code: "E2002", opening: "Time limit exceeded", recoverable: true },
  no_envelope: { code: "E1000", opening: "Answer is no envelope", recoverable: false },
  no_json: { code: "E1001", opening: "Input validation failed", recoverable: true },
  unsupported: { code: "E4010", opening: "Not possible here", recoverable: true },
};

/** The longest `explain` that the contract allows. */
const EXPLAIN_LIMIT = 280;

/** Further properties of a failure. */
export interface FailureMore {
  suggestion?: string;
  details?: Record<string, unknown>;
  sessionId?: string | undefined;
}

/** Creates a failure of this client. */
export function clientFailure(kind: ClientFailureKind, message: string, more: FailureMore = {}): Failure {
  const { code, opening, recoverable } = CATALOGUE[kind];
  const explain = [...`${opening}: ${message}`].slice(0, EXPLAIN_LIMIT).join("");
  const failure: Failure = {
    ok: false,
    meta: { confidence: 0, risk: "high", explain },
    error: {
      code,
      message,
      recoverable,
      ...(more.suggestion === undefined ? {} : { suggestion: more.suggestion }),
      details: { kind, made_by: "client", ...more.details },
    },
  };
  if (more.sessionId !== undefined) {
    failure.streaming = true;
    failure.session_id = more.sessionId;
  }
  return failure;
}

/** Returns the kind of a failure of this client; `undefined` for one that a server sent. */
export function clientFailureKind(failure: Failure): ClientFailureKind | undefined {
  const details = failure.error.details;
  return details?.["made_by"] === "client" ? (details["kind"] as ClientFailureKind) : undefined;
}

/** A failure as an exception: for `unwrap`, and for requests that are not runs, such as the list of modules. */
export class CognError extends Error {
  /** The published code, such as `E4006`. */
  readonly code: string;

  constructor(readonly envelope: Failure) {
    super(`${envelope.error.code}: ${envelope.error.message}`);
    this.name = "CognError";
    this.code = envelope.error.code;
  }
}

/** Returns the message of an exception of `fetch` or of a stream, in one line. */
export function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Node hides the reason of "fetch failed" in `cause`.
  const cause = error.cause instanceof Error && error.cause.message !== "" ? `: ${error.cause.message}` : "";
  return `${error.message}${cause}`;
}
