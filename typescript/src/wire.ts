// Requests and answers: the form of the options, and the failure for an answer that is not an envelope. Everything that `fetch`
// throws becomes a failure here.

import { CognError, clientFailure, reason } from "./failure.js";
import { type RunSettings, wireSettings } from "./runSettings.js";
import type { Envelope, Failure } from "./types.js";

/** Free text instead of an input, without validation by the schema. Created by `freeText`. */
export class FreeText {
  constructor(readonly text: string) {}
}

/** Creates free text instead of an input: `client.run("code-reviewer", freeText("look at this: …"))`. */
export function freeText(text: string): FreeText {
  return new FreeText(text);
}

/** The form of the answer. */
export interface RunOptions extends RunSettings {
  /** Cancels the run, here and on the server. */
  signal?: AbortSignal;
  /** Milliseconds after which the run is cancelled, here and on the server. */
  timeout?: number;
  /** The conversation that stored context belongs to. */
  session?: string;
  /** `url`: media of the answer stay on the server for an hour, and the answer has addresses (`client.file`). */
  mediaOut?: "base64" | "url";
  /** W3C trace context of the caller. */
  traceparent?: string;
}

/** `_options` of a request. */
export function wireOptions(options: RunOptions): Record<string, unknown> {
  const written: Record<string, unknown> = {
    ...wireSettings(options),
    session: options.session,
    media_out: options.mediaOut,
  };
  return Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined));
}

/** The body of a run, and its address. */
export interface Question {
  path: string;
  body: string;
}

/** Builds a request; returns a failure if the input cannot be written as JSON. */
export function question(module: string, input: unknown, options: Record<string, unknown>): Question | Failure {
  try {
    if (input instanceof FreeText) {
      return { path: "run", body: JSON.stringify({ module, args: input.text, _options: options }) };
    }
    const path = `api/run/${encodeURIComponent(module)}`;
    const text: string | undefined = JSON.stringify(input);
    if (text === undefined) throw new TypeError("the input is undefined");
    // Only objects can hold options; the server reports all other bodies.
    const body = text.startsWith("{") ? `{"input":${text},"_options":${JSON.stringify(options)}}` : text;
    return { path, body };
  } catch (error) {
    return clientFailure("no_json", `the input cannot be written as JSON: ${reason(error)}`);
  }
}

/** Returns whether a value is an envelope, as far as a program must know before it reads `ok`. */
export function isEnvelope(value: unknown): value is Envelope<never> {
  if (typeof value !== "object" || value === null || !("ok" in value) || !("meta" in value)) return false;
  const payload = value.ok === true ? "data" : "error";
  return typeof value.ok === "boolean" && isObject(value.meta) && isObject((value as Record<string, unknown>)[payload]);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The statuses of a gateway whose server is unavailable. */
const AWAY = [502, 503, 504];

/** Returns the envelope of an answer. Anything else becomes a failure that describes the answer. */
export async function envelopeOf<Data>(response: Response): Promise<Envelope<Data>> {
  const value = await jsonOf(response);
  if (isEnvelope(value)) return value;
  return noEnvelope(response);
}

function noEnvelope(response: Response): Failure {
  const details = { status: response.status };
  if (AWAY.includes(response.status)) {
    return clientFailure("unreachable", `a gateway answered with status ${response.status}`, { details });
  }
  const what = response.headers.get("content-type") ?? "nothing";
  const message = `the answer is no envelope: status ${response.status}, ${what}`;
  return clientFailure("no_envelope", message, { details, suggestion: "Check `baseUrl`" });
}

async function jsonOf(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the JSON of an answer that has `member`. Throws for every other answer. */
export async function valueOf<T>(response: Response, member: string): Promise<T> {
  const value = await jsonOf(response);
  if (response.ok && isObject(value) && member in value) return value as T;
  throw new CognError(isEnvelope(value) && !value.ok ? value : noEnvelope(response));
}
