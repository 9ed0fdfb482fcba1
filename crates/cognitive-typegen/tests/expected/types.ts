// Written by `cogn types`. Do not edit: change schema.json and run it again.

/** Control plane: enough to route on without reading the data. */
export interface Meta {
  /** How sure the module is of having met its declared contract. Not a probability of being right. */
  confidence: number;
  /** The share of answers with such a confidence that people found right, once there are enough decisions. */
  calibrated_confidence?: number;
  /** The harm that acting on the answer could do. `high` in a failure of the runtime means that nothing may act on it, and says nothing about the input. */
  risk: "none" | "low" | "medium" | "high";
  /** One line for logs and review cards. */
  explain: string;
  /** The id of the run in audit records and traces. */
  trace_id?: string;
  /** provider/model */
  model?: string;
  /** The time of the whole run in milliseconds, with checks, media, parts and waiting. */
  latency_ms?: number;
  /** The part of the run's `latency_ms` that was spent in calls of models. */
  processing_time_ms?: number;
  /** Tokens of all calls: `input_tokens`, `output_tokens`, `total_tokens`; with a price, `cost` in `currency`. */
  usage?: unknown;
  media_processed?: Array<unknown>;
  media_validation?: Record<string, unknown>;
  confidence_aggregation?: "mean" | "min" | "weighted_mean";
  generation_quality?: MetaGenerationQuality;
  temporal_confidence?: MetaTemporalConfidence;
  warnings?: Array<unknown>;
}

export interface MetaGenerationQuality {
  prompt_adherence?: number;
  aesthetic_score?: number;
  technical_quality?: number;
}

export interface MetaTemporalConfidence {
  overall?: number;
  segments?: Array<unknown>;
  low_confidence_regions?: Array<unknown>;
}

export interface ErrorInfo {
  /** E1000 to E4014, E4100 and E4101 of this runtime, or the module's own. `cogn explain CODE`. */
  code: string;
  message: string;
  recoverable?: boolean;
  suggestion?: string;
  details?: Record<string, unknown>;
}

/** A value that is not in the list, with its reason. */
export interface Custom {
  custom: string;
  reason: string;
}

/** A run that met its contract. */
export interface Success<Data> {
  ok: true;
  meta: Meta;
  data: Data;
}

/** A run that did not meet its contract. */
export interface Failure {
  ok: false;
  meta: Meta;
  error: ErrorInfo;
  partial_data?: Record<string, unknown> | null;
}

/** The answer of every run; `ok` tells a success from a failure. */
export type Envelope<Data> = Success<Data> | Failure;

// all-shapes 1.2.0

export interface AllShapesInput {
  /** Ends a comment: * / and ''' */
  text: string;
  "first-name": string;
  class?: string | null;
  mood?: "it's" | "\"fine\"";
  limits?: Record<string, number>;
}

export interface AllShapesData {
  rationale: string;
  kind: "a" | "b-c" | "self" | Custom;
  level: 1 | 2 | 3;
  chain: AllShapesDataChain;
  either?: string | Array<number>;
  type?: "x";
  places?: Array<AllShapesDataPlacesItem>;
  anything?: unknown;
}

export interface AllShapesNode {
  value: number;
  next?: AllShapesNode;
}

export interface AllShapesDataChain {
  value: number;
  next?: AllShapesNode;
}

export interface AllShapesDataPlacesItem {
  line: number;
}

export type AllShapesEnvelope = Envelope<AllShapesData>;

/** Input and data of every module here, by its name. */
export interface Modules {
  "all-shapes": { input: AllShapesInput; data: AllShapesData };
}
