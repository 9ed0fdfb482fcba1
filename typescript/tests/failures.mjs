// The failures of the client for endpoints that are not servers: node failures.mjs exits with 0 if every failure is an envelope with the
// published code, and if the frames of a stream are read whatever way they are cut.
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { Cogn, CognError, ContextBuilder, clientFailureKind, unwrap } from "cogn-client";
import { loadContract } from "cogn-client/contract";
import { events, jsonLines } from "./node_modules/cogn-client/dist/framing.js";

/** Serves one answer to everything. */
async function serving(answer, use) {
  const server = http.createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await use(new Cogn({ baseUrl: `http://127.0.0.1:${server.address().port}/below` }));
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const told = (envelope) => [envelope.ok, envelope.error?.code, clientFailureKind(envelope)];
const page = (status) => (_, response) => response.writeHead(status, { "content-type": "text/html" }).end("<h1>no</h1>");

// No server listens. The port is that of the calling side of a connection, so that no other program can listen there meanwhile.
const caller = await new Promise((resolve) => {
  const server = net.createServer().listen(0, "127.0.0.1", () => {
    const socket = net.connect(server.address().port, "127.0.0.1", () => resolve(socket));
  });
});
const closed = caller.localPort;
const nobody = new Cogn({ baseUrl: `http://127.0.0.1:${closed}` });
const unreachable = [false, "E4001", "unreachable"];
assert.deepEqual(told(await nobody.run("m", {})), unreachable);
for (const transport of ["sse", "ndjson", "websocket"]) {
  assert.deepEqual(told(await nobody.stream("m", {}, { transport }).final), unreachable, transport);
}
await assert.rejects(nobody.modules(), (error) => error instanceof CognError && error.code === "E4001");

// Something else listens.
await serving(page(200), async (client) => {
  assert.deepEqual(told(await client.run("m", {})), [false, "E1000", "no_envelope"]);
  assert.deepEqual(told(await client.stream("m", {}).final), [false, "E1000", "no_envelope"]);
  await assert.rejects(client.health(), (error) => error.code === "E1000");
});
await serving(page(502), async (client) => {
  const envelope = await client.run("m", {});
  assert.deepEqual(told(envelope), unreachable);
  assert.equal(envelope.error.details.status, 502);
  assert.throws(() => unwrap(envelope), CognError);
});
// A module that throws: its failure is an exception with the envelope. A failure of any other module is an answer. (D-26)
const refusal = { ok: false, meta: { confidence: 0.2, risk: "high", explain: "e" }, error: { code: "E5001", message: "no" } };
for (const contract of ["throw", "error_union"]) {
  const describing = (request, response) => {
    const manifest = { failure: { contract } };
    const answer = request.method === "GET" ? { name: "m", manifest, schema: {} } : refusal;
    response.writeHead(request.method === "GET" ? 200 : 422, { "content-type": "application/json" });
    response.end(JSON.stringify(answer));
  };
  await serving(describing, async (client) => {
    const asked = client.run("m", {});
    if (contract === "throw") {
      await assert.rejects(asked, (error) => error instanceof CognError && error.envelope.error.code === "E5001");
    } else {
      assert.deepEqual(told(await asked), [false, "E5001", undefined]);
    }
  });
}

// Context from raw data, as the builder of Rust makes it.
const turns = Array.from({ length: 12 }, (_, number) => ({ role: "user", content: String(number) }));
const spoken = (builder) => builder.build().conversation_history.map((turn) => turn.content);
assert.deepEqual(spoken(new ContextBuilder().conversation(turns)), turns.slice(2).map((turn) => turn.content));
const summed = new ContextBuilder({ maxTurns: 3 }).conversation(turns, (older) => `${older.length} turns`);
assert.deepEqual(spoken(summed), ["10 turns", "10", "11"]);
const given = new ContextBuilder().sessionState({ n: 1 }).previousResult("m", refusal).intoInput({ text: "t" });
assert.deepEqual(given, { text: "t", _context: { session_state: { n: 1 } } });

const half = (request, response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
  response.write("{", () => request.socket.destroy());
};
await serving(half, async (client) => {
  assert.deepEqual(told(await client.run("m", {})), [false, "E2010", "interrupted"]);
});

// A server that never answers.
await serving(() => undefined, async (client) => {
  assert.deepEqual(told(await client.run("m", {}, { timeout: 20 })), [false, "E2002", "timeout"]);
  const late = client.stream("m", {}, { timeout: 20 });
  assert.deepEqual(told(await late.final), [false, "E2002", "timeout"]);
  const over = AbortSignal.abort();
  assert.deepEqual(told(await client.run("m", {}, { signal: over })), [false, "E2010", "cancelled"]);
  assert.deepEqual(told(await client.stream("m", {}, { signal: over }).final), [false, "E2010", "cancelled"]);
});

// A stream that says its name and then nothing: silence counts as a break, and what cannot be taken up is told.
let asked = 0;
const silent = (request, response) => {
  asked += 1;
  if (asked > 1) {
    const refused = { ok: false, meta: {}, error: { code: "E4013", message: "gone" } };
    return response.writeHead(410, { "content-type": "application/json" }).end(JSON.stringify(refused));
  }
  response.writeHead(200, { "content-type": "text/event-stream", "x-cognitive-recovery-session": "sess_1" }).flushHeaders();
};
await serving(silent, async (client) => {
  // A day of silence, which is over at once after the first answer and never again: the second one may take its time.
  const silence = 86_400_000;
  const { setTimeout: usual } = globalThis;
  let isFirst = true;
  globalThis.setTimeout = (act, delay, ...rest) => {
    const isOver = delay === silence && isFirst;
    if (isOver) isFirst = false;
    return usual(act, isOver ? 0 : delay, ...rest);
  };
  const stream = client.stream("m", {}, { silence, delay: 1 });
  assert.equal((await stream.final).error.code, "E4013");
  assert.deepEqual([asked, stream.sessionId], [2, "sess_1"]);
  globalThis.setTimeout = usual;
});
// A stream of nonsense is given up, not asked for for ever.
asked = 0;
const nonsense = (_, response) => {
  asked += 1;
  response.writeHead(200, { "content-type": "text/event-stream", "x-cognitive-recovery-session": "sess_1" }).end("data: {\n\n");
};
await serving(nonsense, async (client) => {
  assert.deepEqual(told(await client.stream("m", {}, { delay: 1, attempts: 3 }).final), [false, "E2010", "interrupted"]);
  assert.equal(asked, 4);
});

// Invalid inputs, addresses, keys for sockets, and sockets.
assert.deepEqual(told(await nobody.run("m", { big: 1n })), [false, "E1001", "no_json"]);
assert.deepEqual(told(await nobody.stream("m", undefined).final), [false, "E1001", "no_json"]);
assert.throws(() => new Cogn({ baseUrl: "ftp://example" }), TypeError);
const odd = new Cogn({ baseUrl: "http://127.0.0.1:1", key: () => "a b" });
assert.deepEqual(told(await odd.stream("m", {}, { transport: "websocket" }).final), [false, "E4010", "unsupported"]);

// Failures of the client keep the contract too.
const law = await loadContract();
for (const failure of [await nobody.run("m", {}), await odd.stream("m", {}, { transport: "websocket" }).final]) {
  assert.deepEqual(law.checkEnvelope(failure), []);
}
assert.throws(() => law.checkEnvelope(undefined), TypeError);
assert.throws(() => law.checkInput({ format: "v9", manifest: {}, schema: {} }, {}), /format/);

// Frames, cut in every way.
const body = (pieces) => new ReadableStream({
  start(controller) {
    for (const piece of pieces) controller.enqueue(piece);
    controller.close();
  },
});
const all = async (pieces) => {
  const found = [];
  for await (const piece of pieces) found.push(piece);
  return found;
};
const heard = () => undefined;
const text = ': hi\r\nretry: 3\ndata: {"a":\ndata: "é"}\nid: s:1\n\r\nevent: x\rdata:{"b":"😀"}\r\rdata: {}\n\nid: s:2\ndata: {"c":1}\n\ndata: {"cut"';
const bytes = new TextEncoder().encode(text);
const expected = [{ a: "é" }, { b: "😀" }, { c: 1 }];
const lines = new TextEncoder().encode('{"a":"é"}\n{}\r\n\n{"b":"😀"}\n{"cut"');
for (let at = 0; at <= bytes.length; at += 1) {
  assert.deepEqual(await all(events(body([bytes.slice(0, at), bytes.slice(at)]), heard)), expected, `at ${at}`);
  const cut = [lines.slice(0, at), lines.slice(at)];
  assert.deepEqual(await all(jsonLines(body(cut), heard)), [{ a: "é" }, { b: "😀" }], `at ${at}`);
}
assert.deepEqual(await all(events(body([...bytes].map((byte) => Uint8Array.of(byte))), heard)), expected);
console.log("{}");
process.exit(0);
