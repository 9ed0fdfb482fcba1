// The same runs by every way: node equal.mjs CASES.json prints for each module the envelope of the command line, of a bare HTTP request, of the client
// and of its stream, and of the chunks put together by the contract, as texts to be compared byte by byte; and what the contract has against it.
import { readFileSync } from "node:fs";
import { Cogn } from "cogn-client";
import { loadContract } from "cogn-client/contract";
import { canonical } from "./canonical.js";

const { base, key, cases } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const law = await loadContract();
const client = new Cogn({ baseUrl: base, key });
const judged = new Cogn({ baseUrl: base, key, contract: law });
const seen = {};

/** A module that does not stream reports this only to callers that request a stream. */
function unasked(envelope) {
  const { warnings = [], ...meta } = envelope.meta;
  const others = warnings.filter(({ code }) => code !== "E4010");
  return { ...envelope, meta: others.length === 0 ? meta : { ...meta, warnings: others } };
}

for (const { module, input, cli } of cases) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
  const bare = await fetch(`${base}/api/run/${module}`, { method: "POST", headers, body: JSON.stringify(input) });
  const described = await client.describe(module);
  const ways = { cli: JSON.parse(cli), http: JSON.parse(await bare.text()), client: await judged.run(module, input) };
  for (const transport of ["sse", "ndjson", "websocket"]) {
    const stream = client.stream(module, input, { transport });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    ways[transport] = unasked(await stream.final);
    if (chunks.length > 0) ways[`${transport} by wasm`] = unasked(law.assemble(chunks, described));
  }
  const texts = Object.fromEntries(Object.entries(ways).map(([way, envelope]) => [way, canonical(envelope)]));
  seen[module] = { texts, violations: law.checkEnvelope(ways.cli, ways.cli.ok ? described : undefined), input: law.checkInput(described, input) };
}
process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0));
