// The exports for programs. `cogn-client/contract` has the contract as WebAssembly, in a separate file because of its size.

export { Cogn, ModuleClient, unwrap, type CognOptions } from "./client.js";
export type { ConnectionOptions, WebSocketMaker } from "./connection.js";
export { ContextBuilder, type Turn } from "./context.js";
export { CognError, clientFailureKind, type ClientFailureKind } from "./failure.js";
export type { UploadOptions, UploadReference, UploadSource } from "./media.js";
export { RunStream, type StreamOptions } from "./stream.js";
export type * from "./types.js";
export { freeText, FreeText, type RunOptions } from "./wire.js";
