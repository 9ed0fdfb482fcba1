// A stream whose first connection is cut after N bytes, for every N: node cuts.mjs WORLD.json. Prints what came of it. Each run has to give every
// chunk once and the whole answer, or, if not even the headers arrived, a failure; the model counts how often it is asked the same.
import { readFileSync } from "node:fs";
import { Cogn } from "cogn-client";
import { canonical } from "./canonical.js";
import { proxy } from "./proxy.mjs";

const world = JSON.parse(readFileSync(process.argv[2], "utf8"));
const AT_ONCE = 16;
const started = Date.now();
let inputs = 0;
const seen = { runs: 0, whole: 0, resumed: 0, unbegun: 0, wrong: [] };

async function read(transport, limit, more = {}) {
  const line = await proxy(world.base, limit);
  const client = new Cogn({ baseUrl: line.url, key: world.key });
  // A distinct input, so that the model can tell the runs apart.
  const stream = client.stream("words", { text: `winter snow ${inputs++}` }, { transport, delay: 1, ...more });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  const envelope = await stream.final;
  line.close();
  seen.runs += 1;
  // A stream that was taken up before anything arrived has another opening than one that was not.
  const told = canonical(chunks.filter((chunk) => chunk.meta?.confidence !== null));
  const resumed = chunks.filter((chunk) => chunk.resumed).length;
  return { told, envelope, answer: canonical(envelope), resumed, bytes: line.seen.bytes };
}

for (const [transport, stride] of Object.entries(world.strides)) {
  const whole = await read(transport, () => Infinity);
  seen[transport] = whole.bytes;
  let next = 0;
  const work = async () => {
    // A little beyond the end: times have more digits in some runs than in others.
    for (let at = next; at < whole.bytes + 8; at = next) {
      next += stride;
      const got = await read(transport, (connection) => (connection === 0 ? at : Infinity));
      if (got.told === whole.told && got.answer === whole.answer) {
        seen.whole += 1;
        seen.resumed += got.resumed;
      } else if (got.told === "[]" && ["unreachable", "interrupted"].includes(got.envelope.error?.details?.kind)) seen.unbegun += 1;
      else seen.wrong.push({ transport, at, told: got.told, answer: got.answer });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  // Every connection is cut, each a little later than the one before.
  const patient = await read(transport, (connection) => world.cutAfter + connection * 100, { attempts: 50 });
  if (patient.answer !== whole.answer || patient.resumed === 0) seen.wrong.push({ transport, at: "always", answer: patient.answer });
}
seen.milliseconds = Date.now() - started;
seen.wrong = seen.wrong.slice(0, 3);
process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0));
