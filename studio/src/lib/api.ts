// All requests of the page to the server; the page uses no other network. A failed answer is thrown as a `Refused` that holds the
// envelope, so that pages show one shape of error. The session is a cookie that scripts cannot read.

import type {
  Calibration, Case, CaseVerdict, Envelope, Failure, Finding, Json, Model, ModuleDescription, ModuleFiles, ModuleSummary, ModuleVersion, Plan,
  Preview, Replay, Review, ReviewPage, RunDetails, RunOptions, RunPage, RunStats, Session, Verdict,
} from "./wire";

/** A failed request, as an envelope. */
export class Refused extends Error {
  constructor(
    readonly envelope: Failure,
    readonly status: number,
    readonly retryAfter: number | null = null,
  ) {
    super(envelope.error.message);
  }
}

/** The failure that the page shows if no envelope arrived. */
export function noAnswer(message: string, suggestion?: string): Failure {
  const error = suggestion === undefined ? { code: "–", message } : { code: "–", message, suggestion };
  return { ok: false, meta: { confidence: 0, risk: "none", explain: message }, error };
}

/** Returns the failure for a thrown value. */
export function failureOf(thrown: unknown): Failure {
  if (thrown instanceof Refused) return thrown.envelope;
  if (thrown instanceof DOMException && thrown.name === "AbortError") return noAnswer("stopped");
  if (thrown instanceof TypeError) {
    return noAnswer("the server cannot be reached", "Check that `cogn serve` is running, then try again");
  }
  return noAnswer(thrown instanceof Error ? thrown.message : String(thrown));
}

export function isEnvelope(value: unknown): value is Envelope {
  return typeof value === "object" && value !== null && "ok" in value && "meta" in value && ("data" in value || "error" in value);
}

type Query = Record<string, string | number | boolean | null | undefined>;

/** Returns an address of this server, relative to the path of the page. */
export function address(path: string, query: Query = {}): string {
  const url = new URL(path, document.baseURI.replace(/#.*$/, ""));
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, String(value));
  }
  return url.href;
}

interface Asked {
  method?: string;
  body?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** Sends a request. The body of the returned answer has not been read. */
export async function send(url: string, asked: Asked = {}): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json", "x-cogn-studio": "1", ...asked.headers };
  if (asked.body !== undefined) headers["content-type"] = "application/json";
  const init: RequestInit = { method: asked.method ?? "GET", headers, credentials: "same-origin", cache: "no-cache" };
  if (asked.body !== undefined) init.body = asked.body;
  if (asked.signal !== undefined) init.signal = asked.signal;
  const response = await fetch(url, init);
  // The session is over: the same address now has the login page.
  if (response.status === 401) location.reload();
  return response;
}

/** Throws the failure of an answer that is not a success. */
export async function refuse(response: Response): Promise<never> {
  const wait = Number(response.headers.get("retry-after") ?? Number.NaN);
  const value: unknown = await response.json().catch(() => null);
  const envelope = isEnvelope(value) && !value.ok ? value : noAnswer(`the server answered with status ${response.status}`);
  throw new Refused(envelope, response.status, Number.isFinite(wait) ? wait : null);
}

async function ask<T>(path: string, query: Query = {}, asked: Asked = {}): Promise<T> {
  const response = await send(address(path, query), asked);
  if (!response.ok) return refuse(response);
  return (await response.json()) as T;
}

function post<T>(path: string, body: unknown, method = "POST", signal?: AbortSignal): Promise<T> {
  return ask(path, {}, { method, body: JSON.stringify(body), signal });
}

const name = encodeURIComponent;

export const session = () => ask<Session>("v1/session");
export const logOut = () => send(address("v1/session"), { method: "DELETE" });

export async function modules(): Promise<ModuleSummary[]> {
  const answer = await ask<ModuleSummary[] | { modules: ModuleSummary[] }>("api/modules");
  return Array.isArray(answer) ? answer : answer.modules;
}
export const createModule = (called: string, tier: string) => post<{ hash: string }>("v1/modules", { name: called, tier });
export const module = (of: string) => ask<ModuleDescription>(`api/modules/${name(of)}`);
export const models = async () => (await ask<{ models: Model[] }>("v1/models")).models;
export const plan = (of: string) => ask<Plan>(`v1/modules/${name(of)}/plan`);
export const files = (of: string) => ask<ModuleFiles>(`v1/modules/${name(of)}/files`);
export const cases = async (of: string) => (await ask<{ cases: Case[] }>(`v1/modules/${name(of)}/cases`)).cases;

export const versions = async (of: string) => (await ask<{ versions: ModuleVersion[] }>(`v1/modules/${name(of)}/versions`)).versions;
export const judge = async (of: string, set: string, id: string, envelopes: Envelope[], signal?: AbortSignal) =>
  (await post<{ verdicts: CaseVerdict[] }>(`v1/modules/${name(of)}/judge`, { set, id, envelopes }, "POST", signal)).verdicts;

/** The body of a run. It contains the input as typed, so that no number changes. */
export function runBody(input: string, options: RunOptions): string {
  return `{"input":${input},"_options":${JSON.stringify(options)}}`;
}

export const preview = (of: string, input: string, options: RunOptions, signal?: AbortSignal) =>
  ask<Preview>(`v1/modules/${name(of)}/preview`, {}, { method: "POST", body: runBody(input, options), signal });

/** Runs a module and returns the whole answer. A failure is an answer, too; only an answer that is not an envelope is thrown. */
export async function execute(of: string, input: string, options: RunOptions, signal?: AbortSignal): Promise<Envelope> {
  const asked: Asked = { method: "POST", body: runBody(input, options), signal };
  const response = await send(address(`v1/modules/${name(of)}/execute`), asked);
  // A response that asks the caller to wait is not an answer.
  if (response.status === 429) return refuse(response);
  const value: unknown = await response.json().catch(() => null);
  return isEnvelope(value) ? value : noAnswer(`the server answered with status ${response.status}`);
}

type Changed = Record<string, string | null>;
export const check = (of: string, changed: Changed, signal?: AbortSignal) =>
  post<{ findings: Finding[] }>(`v1/modules/${name(of)}/check`, { files: changed }, "POST", signal);
export const save = (of: string, hash: string, changed: Changed) =>
  post<{ hash: string; findings: Finding[] }>(`v1/modules/${name(of)}/files`, { hash, files: changed }, "PUT");

export interface NewCase {
  kind: "golden" | "example" | "case";
  name: string;
  input: Json;
  envelope: Envelope;
}
export const addCase = (of: string, made: NewCase) => post<{ paths: string[]; recorded: boolean }>(`v1/modules/${name(of)}/cases`, made);

export const runs = (filter: Query, signal?: AbortSignal) => ask<RunPage>("v1/runs", filter, { signal });
export const stats = (filter: Query, signal?: AbortSignal) => ask<RunStats>("v1/runs/stats", filter, { signal });
export const run = (id: string) => ask<RunDetails>(`v1/runs/${name(id)}`);
export const replay = (id: string, how: Pick<RunOptions, "model" | "draft" | "version">, signal?: AbortSignal) =>
  post<Replay>(`v1/runs/${name(id)}/replay`, how, "POST", signal);

export const reviews = (filter: Query) => ask<ReviewPage>("v1/reviews", filter);
export const review = (id: string) => ask<Review>(`v1/reviews/${name(id)}`);
export const decide = (id: string, verdict: Verdict, reason: string, data?: Json) =>
  post<Review>(`v1/reviews/${name(id)}/decision`, data === undefined ? { verdict, reason } : { verdict, reason, data });
export const calibration = (of: string) => ask<Calibration>("v1/reviews/calibration", { module: of });
export const exportAddress = (as: "decisions" | "cases", of: string) => address("v1/reviews/export", { as, module: of });
