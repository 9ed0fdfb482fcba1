// The types of requests and answers: those of the server in `wireTypes.ts`, with the data of a module in them. Contains no code.
// They match those of `cogn types --lang typescript`: an `Envelope` of this file is assignable to theirs.

import type * as wire from "./wireTypes.js";

export type {
  Checkpoint,
  FailedChunk,
  Failure,
  Health,
  Meta,
  ModuleDetail as ModuleDescription,
  ModuleSummary,
  OpeningChunk,
  ProgressChunk,
  Recovery,
  RunError as ErrorInfo,
  RunWarning,
  RuntimeCapabilities,
  Usage,
  Violation,
} from "./wireTypes.js";

/** The harm that acting on the answer could do. */
export type Risk = wire.Meta["risk"];

/** A run that met its contract. */
export interface Success<Data> extends Omit<wire.Success, "data"> {
  data: Data;
}

/** The answer of every run; `ok` distinguishes the two forms. */
export type Envelope<Data = Record<string, unknown>> = Success<Data> | wire.Failure;

/** The growth of one field. Provisional: the last chunk overrides it. */
export interface DeltaChunk {
  chunk: wire.DeltaText;
}

/** All data so far. Provisional as well. */
export interface SnapshotChunk<Data> {
  chunk: Omit<wire.DataSnapshot, "data"> & { data: Partial<Data> };
}

/** The whole, validated answer. */
export interface FinalChunk<Data> extends Omit<wire.FinalChunk, "data"> {
  data: Data;
}

/** One piece of a streamed answer. */
export type Chunk<Data = Record<string, unknown>> =
  | wire.OpeningChunk
  | DeltaChunk
  | SnapshotChunk<Data>
  | wire.ProgressChunk
  | FinalChunk<Data>
  | wire.FailedChunk;

/** Input and data of one module, as `Modules` of `cogn types` lists them. */
export interface ModuleTypes {
  input: unknown;
  data: unknown;
}

/** A module without known types. */
export interface AnyModule {
  input: object;
  data: Record<string, unknown>;
}

/** The modules of a program without generated types: every name, any input. */
export interface AnyModules {
  [name: string]: AnyModule;
}
