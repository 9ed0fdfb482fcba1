// The contract of Cognitive Modules as WebAssembly: the code with which the runtime validates. It exchanges text, and opens only
// its own code file, when it is loaded.

import type { Chunk, Envelope, Failure, ModuleDescription, Violation } from "./types.js";

/** The source of the code: an address, a response of `fetch`, bytes, or a compiled module, as edge runtimes import one. */
export type ContractSource = URL | string | Response | Promise<Response> | BufferSource | WebAssembly.Module;

interface Exports {
  memory: WebAssembly.Memory;
  cogn_question(length: number): number;
  cogn_answer(): number;
  cogn_text(): number;
}

/** A module description for validation, as `client.describe` returns it. */
export type JudgingModule = Pick<ModuleDescription, "format" | "manifest" | "schema">;

/** Loads the contract. By default, the code file is next to this file. */
export async function loadContract(source?: ContractSource): Promise<Contract> {
  return new Contract(await compiled(source ?? new URL("./contract.wasm", import.meta.url)));
}

async function compiled(source: ContractSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  const url = typeof source === "string" ? new URL(source, import.meta.url) : source;
  if (url instanceof URL && url.protocol === "file:") return WebAssembly.compile(await fileBytes(url));
  const response = await (url instanceof URL ? fetch(url) : url);
  if (!response.ok) throw new Error(`the contract cannot be loaded: status ${response.status}`);
  // Many servers do not know the type of the file, so the bytes are compiled after they arrived. This works with all of them.
  return WebAssembly.compile(await response.arrayBuffer());
}

/** `fetch` in Node cannot read files; that of other environments can. */
async function fileBytes(url: URL): Promise<BufferSource> {
  interface Files {
    readFile(url: URL): Promise<Uint8Array<ArrayBuffer>>;
  }
  const host = globalThis as { process?: { getBuiltinModule?: (name: string) => Files | undefined } };
  const files = host.process?.getBuiltinModule?.("node:fs/promises");
  return files === undefined ? (await fetch(url)).arrayBuffer() : files.readFile(url);
}

/** Validates envelopes, streams and inputs as the runtime does. */
export class Contract {
  readonly #code: WebAssembly.Module;
  #instance: Exports;

  constructor(code: WebAssembly.Module) {
    this.#code = code;
    this.#instance = instance(code);
  }

  /** Returns the violations of an envelope, by the contract of a module if one is given. An empty list means that it is valid. */
  checkEnvelope(envelope: unknown, module?: JudgingModule): Violation[] {
    return this.#ask("envelope", envelope, module);
  }

  /** Returns the violations of a complete list of chunks. */
  checkStream(chunks: readonly unknown[]): Violation[] {
    return this.#ask("stream", chunks);
  }

  /** Returns the envelope of chunks in any order; a failure with `partial_data` if the last chunk is missing. */
  assemble<Data = Record<string, unknown>>(chunks: readonly Chunk<Data>[], module?: JudgingModule): Envelope<Data> {
    return this.#ask("assemble", chunks, module);
  }

  /** Returns the failure with which the runtime would reject an input; `null` if it would accept it. */
  checkInput(module: JudgingModule, input: unknown): Failure | null {
    return this.#ask("input", input, module);
  }

  /** Returns the violations of the data of an answer. */
  checkData(module: JudgingModule, data: unknown): Violation[] {
    return this.#ask("data", data, module);
  }

  /** A string is passed on as JSON, so that no number becomes a JavaScript number; any other value is serialised. */
  #ask<T>(asked: string, value: unknown, module?: JudgingModule): T {
    const text: string | undefined = typeof value === "string" ? value : JSON.stringify(value);
    if (text === undefined) throw new TypeError("the input is undefined");
    const { format, manifest, schema } = module ?? {};
    const described = module === undefined ? "" : JSON.stringify({ format, manifest, schema });
    const answer = JSON.parse(this.#answer(`${asked}\n${described}\n${text}`)) as { result: T } | { error: string };
    if ("error" in answer) throw new TypeError(answer.error);
    return answer.result;
  }

  #answer(question: string): string {
    const { memory, cogn_question, cogn_answer, cogn_text } = this.#instance;
    const bytes = new TextEncoder().encode(question);
    try {
      const place = cogn_question(bytes.length);
      new Uint8Array(memory.buffer, place, bytes.length).set(bytes);
      const length = cogn_answer();
      return new TextDecoder().decode(new Uint8Array(memory.buffer, cogn_text(), length));
    } catch (error) {
      // Out of memory or a fault of this library: the state of the instance cannot be trusted any more.
      this.#instance = instance(this.#code);
      throw error;
    }
  }
}

function instance(code: WebAssembly.Module): Exports {
  let memory: WebAssembly.Memory | undefined;
  const random = (place: number, length: number) => {
    if (memory !== undefined) crypto.getRandomValues(new Uint8Array(memory.buffer, place, length));
  };
  const { exports } = new WebAssembly.Instance(code, { host: { random } });
  memory = exports["memory"] as WebAssembly.Memory;
  return exports as unknown as Exports;
}
