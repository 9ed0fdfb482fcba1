// The client of one server: runs modules, streams their answers, lists modules. A run always returns an envelope, unless its module
// declares `failure.contract: throw`. Other requests throw `CognError`. No run is ever sent twice.

import { Connection, type ConnectionOptions, unreachable } from "./connection.js";
import type { Contract } from "./contract.js";
import { Deadline } from "./deadline.js";
import { CognError, clientFailure, clientFailureKind, reason } from "./failure.js";
import { file, upload, type UploadOptions, type UploadReference, type UploadSource } from "./media.js";
import { SharedSocket } from "./socket.js";
import { RunStream, type StreamOptions } from "./stream.js";
import type {
  AnyModules,
  Chunk,
  Envelope,
  Failure,
  Health,
  ModuleDescription,
  ModuleSummary,
  ModuleTypes,
  RuntimeCapabilities,
} from "./types.js";
import { envelopeOf, FreeText, question, valueOf, wireOptions, type RunOptions } from "./wire.js";

/** The options of a client. */
export interface CognOptions extends ConnectionOptions {
  /** Validates inputs before they are sent, and assembles streams as the runtime does. From `loadContract`. */
  contract?: Contract;
}

/** The modules of a server: `Modules` of `cogn types`, or any. */
type ModuleMap<M> = { [Name in keyof M]: ModuleTypes };

/** A client of `cogn serve`. `Cogn<Modules>` knows the types of all modules that `cogn types` wrote. */
export class Cogn<M extends ModuleMap<M> = AnyModules> {
  readonly #connection: Connection;
  readonly #socket: SharedSocket;
  readonly #contract: Contract | undefined;
  readonly #descriptions = new Map<string, Promise<ModuleDescription>>();

  constructor(options: CognOptions) {
    this.#connection = new Connection(options);
    this.#socket = new SharedSocket(this.#connection);
    this.#contract = options.contract;
  }

  /**
   * Runs a module. A failure is an envelope with `ok: false`. It rejects with a `CognError` that has the envelope only if the
   * module declares `failure.contract: throw`.
   */
  async run<N extends keyof M & string>(
    module: N,
    input: M[N]["input"] | FreeText,
    options: RunOptions = {},
  ): Promise<Envelope<M[N]["data"]>> {
    const envelope = await this.#answer<N>(module, input, options);
    if (!envelope.ok && (await this.#throws(module, envelope))) throw new CognError(envelope);
    return envelope;
  }

  /** Returns whether a module declares that its failures are thrown; `false` for a module without a description. */
  async #throws(module: string, refused: Failure): Promise<boolean> {
    // A server that did not answer the run is not asked again.
    const isAnswer = clientFailureKind(refused) === undefined;
    const described = await (isAnswer ? this.describe(module) : this.#descriptions.get(module))?.catch(() => undefined);
    const failure = described?.manifest["failure"];
    return typeof failure === "object" && failure !== null && "contract" in failure && failure.contract === "throw";
  }

  async #answer<N extends keyof M & string>(
    module: N,
    input: M[N]["input"] | FreeText,
    options: RunOptions,
  ): Promise<Envelope<M[N]["data"]>> {
    const asked = question(module, input, wireOptions(options));
    if ("ok" in asked) return asked;
    const deadline = new Deadline(options.signal, options.timeout);
    try {
      if (deadline.hasPassed) return deadline.failure();
      const refused = await this.#refusal(module, input);
      if (refused !== null) return refused;
      return await this.#sent(asked.path, asked.body, options, deadline);
    } finally {
      deadline.release();
    }
  }

  async #sent<Data>(path: string, body: string, options: RunOptions, deadline: Deadline): Promise<Envelope<Data>> {
    // No `accept` header: modules that stream would add a warning if the request excluded streams.
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (options.traceparent !== undefined) headers["traceparent"] = options.traceparent;
    let response: Response | undefined;
    try {
      // The server ends a run whose connection is closed, so cancelling here is enough.
      response = await this.#connection.request(path, { method: "POST", body, signal: deadline.signal }, headers);
      return await envelopeOf<Data>(response);
    } catch (error) {
      if (deadline.hasPassed) return deadline.failure();
      if (response === undefined) return unreachable(this.#connection, error);
      return clientFailure("interrupted", `the connection was lost before the answer arrived: ${reason(error)}`);
    }
  }

  /** Streams the answer of a module. The run starts at once. */
  stream<N extends keyof M & string>(
    module: N,
    input: M[N]["input"] | FreeText,
    options: StreamOptions = {},
  ): RunStream<M[N]["data"]> {
    const written = wireOptions(options);
    if (options.chunkType !== undefined) written["chunk_type"] = options.chunkType;
    if (options.requireStreaming !== undefined) written["require_streaming"] = options.requireStreaming;
    const given = input instanceof FreeText ? { args: input.text } : { input };
    const trace = options.traceparent === undefined ? {} : { traceparent: options.traceparent };
    const contract = this.#contract;
    const asked = question(module, input, written);
    if ("ok" in asked) return new RunStream<M[N]["data"]>(asked, options);
    return new RunStream<M[N]["data"]>(
      {
        connection: this.#connection,
        socket: this.#socket,
        module,
        question: asked,
        message: { module, ...given, options: written, ...trace },
        refusal: () => this.#refusal(module, input),
        assemble: contract && ((chunks: Chunk<never>[]) => contract.assemble<never>(chunks)),
      },
      options,
    );
  }

  /** One module, with its types: `client.module("text-classifier")`, or `client.module<Modules["x"]>("x")`. */
  module<N extends keyof M & string>(name: N): ModuleClient<M[N]>;
  module<T extends ModuleTypes>(name: string): ModuleClient<T>;
  module<T extends ModuleTypes>(name: string): ModuleClient<T> {
    return new ModuleClient<T>(this as unknown as Cogn<Record<string, ModuleTypes>>, name);
  }

  /** Returns the failure with which the runtime would reject an input; `null` if it would accept it. Needs a contract. */
  async check<N extends keyof M & string>(module: N, input: M[N]["input"]): Promise<Failure | null> {
    if (this.#contract === undefined) throw new TypeError("`check` needs the option `contract`");
    return this.#contract.checkInput(await this.describe(module), input);
  }

  /** Returns the refusal of an input, if there is a contract. The server judges inputs of modules that cannot be described. */
  async #refusal(module: string, input: unknown): Promise<Failure | null> {
    if (this.#contract === undefined || input instanceof FreeText) return null;
    const described = await this.describe(module).catch(() => undefined);
    if (described === undefined) return null;
    try {
      return this.#contract.checkInput(described, input);
    } catch {
      return null;
    }
  }

  /** Returns manifest and schema of a module. The result is cached; `again` requests it again. */
  describe(module: string, { again = false } = {}): Promise<ModuleDescription> {
    const known = again ? undefined : this.#descriptions.get(module);
    if (known !== undefined) return known;
    const asked = this.#get<ModuleDescription>(`api/modules/${encodeURIComponent(module)}`, "manifest");
    this.#descriptions.set(module, asked);
    asked.catch(() => this.#descriptions.delete(module));
    return asked;
  }

  /** The offered modules. */
  async modules(): Promise<ModuleSummary[]> {
    return (await this.#get<{ modules: ModuleSummary[] }>("api/modules", "modules")).modules;
  }

  /** Checks that the process is alive. */
  health(): Promise<Health> {
    return this.#get("health", "status");
  }

  /** Checks that the server is ready for requests. */
  async ready(): Promise<boolean> {
    const response = await this.#connection.ask("ready", {});
    await response.body?.cancel();
    return response.ok;
  }

  /** Capabilities of the runtime with its provider. */
  capabilities(): Promise<RuntimeCapabilities> {
    return this.#get("capabilities", "capabilities");
  }

  /** Uploads media before a run; the returned reference goes into the input. */
  upload(source: UploadSource, options: UploadOptions = {}): Promise<UploadReference> {
    return upload(this.#connection, source, options);
  }

  /** Returns the bytes of a medium whose address is in an answer (`mediaOut: "url"`). */
  file(url: string, signal?: AbortSignal): Promise<Response> {
    return file(this.#connection, url, signal);
  }

  async #get<T>(path: string, member: string): Promise<T> {
    return valueOf<T>(await this.#connection.ask(path, {}, { accept: "application/json" }), member);
  }
}

/** One module of a server. */
export class ModuleClient<T extends ModuleTypes> {
  constructor(
    readonly client: Cogn<Record<string, ModuleTypes>>,
    readonly name: string,
  ) {}

  run(input: T["input"] | FreeText, options?: RunOptions): Promise<Envelope<T["data"]>> {
    return this.client.run(this.name, input, options) as Promise<Envelope<T["data"]>>;
  }

  stream(input: T["input"] | FreeText, options?: StreamOptions): RunStream<T["data"]> {
    return this.client.stream(this.name, input, options) as RunStream<T["data"]>;
  }

  check(input: T["input"]): Promise<Failure | null> {
    return this.client.check(this.name, input);
  }

  describe(options?: { again?: boolean }): Promise<ModuleDescription> {
    return this.client.describe(this.name, options);
  }
}

/** The data of a success; a failure is thrown as `CognError`. */
export function unwrap<Data>(envelope: Envelope<Data>): Data {
  if (envelope.ok) return envelope.data;
  throw new CognError(envelope);
}
