// One program that uses the whole package, run unchanged in Node, in Deno and in a browser. It says what it saw; the test that started
// it judges. Uses nothing that only one of them has.

import { Cogn, CognError, freeText, unwrap, type Chunk, type Envelope } from "cogn-client";
import { loadContract, type ContractSource } from "cogn-client/contract";
import { canonical } from "./canonical.js";
import type { Modules } from "./modules.js";

/** A module of the test's own, beside those that `cogn types` wrote. */
interface Words {
  input: { text: string };
  data: { rationale: string; words: string[] };
}

type All = Modules & { words: Words };

export interface World {
  base: string;
  /** The same server behind proxies that cut connections, one for each transport. */
  cut: Record<"sse" | "ndjson" | "websocket", string>;
  key: string;
  /** An input of `image-analyzer` with its picture as base64. */
  image: { images: { data: string; media_type: string }[] };
  contract?: ContractSource;
}

type Seen = Record<string, unknown>;
const INPUT = { text: "winter snow" };

/** A stream that was taken up before anything arrived has another opening than one that was not. */
function isOpening(chunk: object): boolean {
  return "meta" in chunk && (chunk.meta as { confidence: unknown }).confidence === null;
}

/** All chunks of a stream that say something new, and its envelope. */
async function read<Data>(stream: AsyncIterable<Chunk<Data>> & { final: Promise<Envelope<Data>> }) {
  const chunks: Chunk<Data>[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const envelope = await stream.final;
  const told = canonical(chunks.filter((chunk) => !isOpening(chunk)));
  return { chunks, envelope, told, resumed: chunks.filter((chunk) => "resumed" in chunk).length };
}

export async function scenario(world: World): Promise<Seen> {
  const client = new Cogn<All>({ baseUrl: world.base, key: world.key });
  const seen: Seen = { sync: canonical(await client.run("words", INPUT)) };
  await streams(world, client, seen);
  await contract(world, seen);
  await cancels(client, seen);
  await catalogue(world, client, seen);
  const [picture] = world.image.images;
  if (picture !== undefined) {
    const bytes = Uint8Array.from(atob(picture.data), (letter) => letter.charCodeAt(0));
    const image = await client.upload(new Blob([bytes], { type: picture.media_type }));
    const { images, ...rest } = world.image as { images: object[] };
    const uploaded = { ...rest, images: [image, ...images.slice(1)] } as never;
    const answer = await client.run("image-analyzer", uploaded);
    const direct = await client.run("image-analyzer", world.image as never);
    seen["uploaded"] = canonical(unwrap(answer)) === canonical(unwrap(direct));
  }
  return seen;
}

async function streams(world: World, client: Cogn<All>, seen: Seen): Promise<void> {
  for (const transport of ["sse", "ndjson", "websocket"] as const) {
    const { envelope, told } = await read(client.stream("words", INPUT, { transport }));
    seen[transport] = canonical(envelope);
    seen[`${transport} chunks`] = told;
    const broken = new Cogn<All>({ baseUrl: world.cut[transport], key: world.key });
    const options = { transport, delay: 1, attempts: 3 };
    const again = await read(broken.stream("words", INPUT, options));
    seen[`${transport} resumed`] = again.told === told && canonical(again.envelope) === canonical(envelope) && again.resumed > 0;
  }
  const both = [client.stream("words", INPUT, { transport: "websocket" }), client.stream("words", INPUT, { transport: "websocket" })];
  const finals = await Promise.all(both.map((stream) => stream.final));
  seen["two over one socket"] = finals.every((envelope) => canonical(envelope) === seen["sync"]);
  const snapshots = await read(client.stream("words", INPUT, { chunkType: "snapshot" }));
  const last = snapshots.chunks.filter((chunk) => "chunk" in chunk).pop();
  seen["snapshot"] = last !== undefined && "chunk" in last && last.chunk.type === "snapshot" && last.chunk.data.words !== undefined;
  seen["whole"] = (await client.stream("text-classifier", INPUT).final).ok;
}

async function contract(world: World, seen: Seen): Promise<void> {
  const law = await loadContract(world.contract);
  const client = new Cogn<All>({ baseUrl: world.base, key: world.key, contract: law });
  const described = await client.describe("words");
  const { chunks, envelope } = await read(client.stream("words", INPUT));
  seen["wasm envelope"] = law.checkEnvelope(envelope, described);
  seen["wasm stream"] = law.checkStream(chunks);
  seen["wasm assembled"] = canonical(law.assemble(chunks)) === seen["sync"];
  seen["wasm broken off"] = canonical(law.assemble(chunks.slice(0, -1)));
  seen["wasm violations"] = law.checkEnvelope({ ok: true, meta: { confidence: 2 } }).map(({ path }) => path);
  seen["wasm data"] = law.checkData(described, { rationale: 1 }).map(({ path }) => path);
  const wrong = { text: 1 } as unknown as Words["input"];
  const refused = await client.check("words", wrong);
  const sent = await new Cogn<All>({ baseUrl: world.base, key: world.key }).run("words", wrong);
  seen["wasm input"] = refused !== null && canonical(refused.error) === canonical(sent.ok ? null : sent.error);
  // Nothing listens there: what is refused here is never sent.
  const unheard = new Cogn<All>({ baseUrl: world.base, key: world.key, contract: law, fetch: guarded() });
  const run = await unheard.run("words", wrong);
  const streamed = await unheard.stream("words", wrong).final;
  seen["wasm refuses"] = [run, streamed].map((each) => (each.ok ? "ok" : each.error.code));
}

/** A `fetch` that fails the test when a run is sent. */
function guarded(): typeof fetch {
  return (input, init) => (init?.method === "POST" ? Promise.reject(new Error("it was sent")) : fetch(input, init));
}

/** The model holds these until a client disconnects; the test sees in the model that four did. */
async function cancels(client: Cogn<All>, seen: Seen): Promise<void> {
  const held = { text: "HOLD" };
  for (const transport of ["sse", "ndjson", "websocket"] as const) {
    const controller = new AbortController();
    const stream = client.stream("words", held, { transport, signal: controller.signal });
    for await (const chunk of stream) if ("chunk" in chunk) controller.abort();
    const envelope = await stream.final;
    seen[`${transport} cancelled`] = envelope.ok ? "ok" : [envelope.error.code, envelope.error.details?.["kind"]];
    await stream.cancel();
  }
  const stream = client.stream("words", held);
  for await (const chunk of stream) if ("chunk" in chunk) break;
  const left = await stream.final;
  seen["left"] = left.ok ? "ok" : left.error.details?.["kind"];
  // Long enough for the model to be asked, also on a busy machine; it never answers.
  const late = await client.run("words", held, { timeout: 5_000 });
  seen["late"] = late.ok ? "ok" : [late.error.code, late.error.details?.["kind"]];
}

async function catalogue(world: World, client: Cogn<All>, seen: Seen): Promise<void> {
  const codeOf = async (promise: Promise<unknown>) => promise.then(() => "none", (error) => (error as CognError).code);
  seen["modules"] = (await client.modules()).map(({ name }) => name);
  seen["health"] = (await client.health()).status;
  seen["ready"] = await client.ready();
  seen["capabilities"] = (await client.capabilities()).runtime;
  seen["unknown"] = await codeOf(client.describe("nothing"));
  seen["no file"] = await codeOf(client.file("/v1/media/files/none"));
  const stranger = new Cogn<All>({ baseUrl: world.base, key: "wrong" });
  const refused = await stranger.run("words", INPUT);
  seen["stranger"] = refused.ok ? "ok" : refused.error.code;
  const named = client.module<Words>("words");
  seen["module"] = unwrap(await named.run(INPUT)).words;
  const text = await client.run("words", freeText("winter snow"));
  seen["text"] = text.ok ? text.data.words : text.error.code;
}
