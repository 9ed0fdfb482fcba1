// The types of the wire: envelopes, chunks, and the catalogue of a server. Types only, no code.
// They fit those that `cogn types --lang typescript` writes: an `Envelope` of this file is one of theirs.

/** The harm that acting on an answer could do. */
export type Risk = "none" | "low" | "medium" | "high";

/** Tokens of all calls of a run. */
export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  total_tokens?: number;
}

/** A notice that does not change the outcome. */
export interface RunWarning {
  code: string;
  message: string;
}

/** The control plane of an answer: enough to route on without reading the data. */
export interface Meta {
  /** How sure the module is of having met its contract, 0 to 1. */
  confidence: number;
  risk: Risk;
  /** One line for logs and review cards. */
  explain: string;
  trace_id?: string;
  /** provider/model */
  model?: string;
  latency_ms?: number;
  usage?: Usage;
  warnings?: RunWarning[];
}

/** The place at which a stream can be resumed. */
export interface Recovery {
  last_seq: number;
  last_checkpoint?: Checkpoint;
  retry_after_ms: number;
  max_retries: number;
}

/** Why a run did not work out. `cogn explain CODE` says more. */
export interface ErrorInfo {
  code: string;
  message: string;
  recoverable?: boolean;
  suggestion?: string;
  details?: Record<string, unknown>;
  recovery?: Recovery;
}

/** A run that met its contract. */
export interface Success<Data> {
  ok: true;
  meta: Meta;
  data: Data;
  _emitted_context?: Record<string, unknown>;
}

/** A run that did not meet its contract. */
export interface Failure {
  ok: false;
  meta: Meta;
  error: ErrorInfo;
  partial_data?: Record<string, unknown> | null;
  _emitted_context?: Record<string, unknown>;
  streaming?: boolean;
  session_id?: string;
}

/** The answer of every run; `ok` tells a success from a failure. */
export type Envelope<Data = Record<string, unknown>> = Success<Data> | Failure;

/** The state of one field when a delta was sent. */
export interface Checkpoint {
  offset: number;
  hash: string;
}

/** A stream starts or resumes after a break (`resumed`). */
export interface OpeningChunk {
  ok: true;
  streaming: true;
  session_id: string;
  meta: Omit<Meta, "confidence"> & { confidence: number | null };
  resumed?: true;
  resume_from_seq?: number;
}

/** The growth of one field. Provisional: the last chunk overrules it. */
export interface DeltaChunk {
  chunk: { type: "delta"; seq: number; field: string; delta: string; checkpoint?: Checkpoint };
}

/** All data so far. Provisional as well. */
export interface SnapshotChunk<Data> {
  chunk: { type: "snapshot"; seq: number; data: Partial<Data> };
}

/** Progress of the run. */
export interface ProgressChunk {
  progress: { percent: number; stage?: string; message?: string };
}

/** The complete, validated answer. */
export interface FinalChunk<Data> {
  final: true;
  meta: Meta;
  data: Data;
  usage?: Usage;
  _emitted_context?: Record<string, unknown>;
}

/** The end of a failed stream. */
export interface FailedChunk {
  ok: false;
  streaming: true;
  session_id: string;
  meta: Meta;
  error: ErrorInfo;
  partial_data?: Record<string, unknown>;
  _emitted_context?: Record<string, unknown>;
}

/** One piece of a streamed answer. */
export type Chunk<Data = Record<string, unknown>> =
  | OpeningChunk
  | DeltaChunk
  | SnapshotChunk<Data>
  | ProgressChunk
  | FinalChunk<Data>
  | FailedChunk;

/** Input and data of one module, as `Modules` of `cogn types` lists them. */
export interface ModuleTypes {
  input: unknown;
  data: unknown;
}

/** A module that no types are known of. */
export interface AnyModule {
  input: object;
  data: Record<string, unknown>;
}

/** The modules of a program without generated types: every name, any input. */
export interface AnyModules {
  [name: string]: AnyModule;
}

/** Summary of a module. */
export interface ModuleSummary {
  name: string;
  valid: boolean;
  version?: string;
  tier?: string;
  responsibility?: string;
  response_mode?: string;
}

/** Manifest and schema of a module: what `Contract` needs to judge by its law. */
export interface ModuleDescription {
  name: string;
  format: string;
  manifest: Record<string, unknown>;
  schema: Record<string, unknown>;
  warnings: RunWarning[];
}

/** The process is alive. */
export interface Health {
  status: "ok";
  version: string;
  modules_count: number;
}

/** Capabilities of the runtime with its provider. */
export interface RuntimeCapabilities {
  runtime: string;
  version: string;
  spec_versions: string[];
  conformance_level: number;
  capabilities: Record<string, unknown>;
}

/** One place where a value breaks a contract. */
export interface Violation {
  /** JSON pointer. */
  path: string;
  code: string;
  rule: string;
  message: string;
}
