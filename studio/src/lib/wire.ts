// The types of messages between the page and the server: envelopes, chunks, modules, runs, reviews. Contains no code.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  total_tokens?: number;
  cost?: string | number;
  currency?: string;
}

export interface RunWarning {
  code: string;
  message: string;
}

export interface Meta {
  confidence: number | null;
  /** A plain value, or `{custom, reason}`. */
  risk: Json;
  explain: string;
  trace_id?: string;
  model?: string;
  latency_ms?: number;
  usage?: Usage;
  warnings?: RunWarning[];
  calibrated_confidence?: number;
  [name: string]: unknown;
}

export interface Violation {
  path: string;
  code?: string;
  rule?: string;
  message: string;
}

export interface ErrorInfo {
  code: string;
  message: string;
  recoverable?: boolean;
  suggestion?: string;
  details?: { violations?: Violation[]; role?: string; kind?: string; [name: string]: unknown };
}

export interface Success {
  ok: true;
  meta: Meta;
  data: JsonObject;
}

export interface Failure {
  ok: false;
  meta: Meta;
  error: ErrorInfo;
  partial_data?: JsonObject | null;
}

export type Envelope = Success | Failure;

/** One piece of a streamed answer. */
export interface Chunk {
  ok?: boolean;
  final?: true;
  session_id?: string;
  meta?: Meta;
  data?: JsonObject;
  usage?: Usage;
  error?: ErrorInfo;
  partial_data?: JsonObject | null;
  chunk?: { type: "delta"; field: string; delta: string } | { type: "snapshot"; data: JsonObject };
  progress?: { percent: number; stage?: string; message?: string };
}

export type Role = "run" | "author" | "review" | "admin";

export interface Session {
  name: string | null;
  roles: Role[];
  keyed: boolean;
  version: string;
  studio: number;
  has: { runs: boolean; payloads: boolean; review: boolean; edit: boolean };
}

export interface ModuleSummary {
  name: string;
  valid: boolean;
  version?: string;
  tier?: string;
  responsibility?: string;
  response_mode?: string;
  /** Part of the program, and not of the project or the user. */
  bundled?: boolean;
}

export type Schema = boolean | { [keyword: string]: unknown };

export interface ModuleDescription {
  name: string;
  format: string;
  manifest: JsonObject;
  schema: JsonObject;
  warnings: RunWarning[];
}

export interface Price {
  input_per_million: string;
  output_per_million: string;
  currency: string;
  as_of: string;
}

export interface Model {
  name: string;
  is_default: boolean;
  is_local: boolean;
  price: Price | null;
}

/** Files that replace those on disk for one run. */
export type Draft = Record<string, string>;

/** A version of a module that can be run. */
export interface ModuleVersion {
  id: string;
  version: string | null;
  /** `project`, `user`, `extra`, `bundled` or `git`. */
  origin: string;
  is_current: boolean;
  at?: string;
  about?: string;
}

export interface RunOptions {
  model?: string;
  draft?: Draft;
  version?: string;
  /** The server stores the model's reply, for a test made of the answer. */
  record?: boolean;
  receipt?: boolean;
  no_cache?: boolean;
  seed?: number;
}

export interface Preview {
  calls: PreviewedCall[];
  ceiling: { cost: string; currency: string } | null;
}

/** A model call: its prompt, the modules whose answers it needs first, or the reason why no prompt is sent. */
export interface PreviewedCall {
  module: string;
  instructions?: string;
  examples?: { input: Json; answer: Json }[];
  input?: Json;
  estimated_tokens?: number;
  request?: { method: string; url: string; headers: Record<string, string>; body: Json } | null;
  curl?: string | null;
  waits_for?: string[];
  not_sent?: string;
}

export interface Finding {
  severity: "error" | "warning" | "info" | string;
  file: string | null;
  line: number | null;
  column: number | null;
  rule?: string;
  message: string;
  hint?: string | null;
}

export interface ModuleFile {
  path: string;
  text: string | null;
  bytes: number;
}

export interface ModuleFiles {
  editable: boolean;
  hash: string;
  files: ModuleFile[];
  findings: Finding[];
  tests: { name: string }[];
}

export interface PlanStep {
  from: string[];
  to: string[];
  condition?: string;
  mapping: { member: string; path: string }[];
}

export interface Plan {
  module: string;
  pattern: string;
  runs: string[];
  answer: string;
  timeout_ms: number;
  depth: number;
  calls: number;
  steps: PlanStep[];
  rules: { condition: string; next: string | null }[];
  modules: { name: string; version: string; needs: { name: string; version: string | null; optional: boolean; fallback: string | null }[] }[];
}

export interface Case {
  id: string;
  set: string;
  input: Json;
  expect?: Json;
}

/** The comparison of an answer with the expectation of its case. */
export interface CaseVerdict {
  right: boolean;
  wrong: { place: string; expected: string; got: string }[];
}

export interface RunRow {
  run_id: string;
  trace_id: string;
  ts: string;
  module: string;
  version: string | null;
  model: string | null;
  ok: boolean | null;
  code: string | null;
  risk: string | null;
  confidence: number | null;
  latency_ms: number | null;
  usage: Usage | null;
  cost: string | number | null;
  key: string | null;
  user: string | null;
  has_payload: boolean;
  unfinished: boolean;
}

export interface RunPage {
  runs: RunRow[];
  next: string | null;
}

export interface StatsBucket {
  at: string;
  runs: number;
  failures: number;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  input_tokens: number;
  output_tokens: number;
  cost: string | number | null;
}

export interface RunStats {
  from: string | null;
  to: string | null;
  buckets: StatsBucket[];
  codes: Record<string, number>;
  models: Record<string, number>;
  modules: Record<string, number>;
  confidence: number[];
  totals: Record<string, number | string | null>;
}

export interface SpanNode {
  name: string;
  module?: string | null;
  start_ms: number;
  duration_ms: number | null;
  ok: boolean | null;
  code?: string | null;
  children: SpanNode[];
}

export interface RunDetails {
  run: RunRow;
  records: JsonObject[];
  tree: SpanNode | null;
  input?: Json;
  envelope?: Envelope;
}

export interface Change {
  path: string;
  before?: Json;
  after?: Json;
}

export interface Replay {
  before: Envelope;
  after: Envelope;
  diff: Change[];
}

export type Verdict = "approve" | "reject" | "correct";

export interface Review {
  id: string;
  at: string;
  module: string;
  version: string | null;
  model: string | null;
  risk: Json;
  confidence: number | null;
  calibrated_confidence?: number | null;
  explain: string;
  state: "open" | "decided";
  rule: string;
  run_id: string;
  trace_id: string;
  decision?: { verdict: Verdict; reason: string; by: string | null; at: string; data?: Json } | null;
  input?: Json;
  envelope?: Envelope;
}

export interface ReviewPage {
  reviews: Review[];
  open: number;
  next: string | null;
}

export interface CalibrationFigures {
  decisions: number;
  bins: { from: number; to: number; count: number; right: number; mean_confidence: number | null }[];
  raw_error: number | null;
  calibrated_error: number | null;
  curve: [number, number][];
}

/** All decisions together, and each module and model separately, because confidence differs between them. */
export interface Calibration extends CalibrationFigures {
  models: (CalibrationFigures & { module: string; model: string })[];
}
