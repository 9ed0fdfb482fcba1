// Lists the tools, calls every module and cancels a call, and prints what it saw: over the standard streams of `cogn mcp` with the
// older package, or at `/mcp` of a server with the newer one, where the world has a `url`. Usage: client.mjs WORLD
import { readFileSync } from "node:fs";

const world = JSON.parse(readFileSync(process.argv[2], "utf8"));
let client;
if (world.url) {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  client = new Client({ name: "test", version: "1" }, world.options);
  await client.connect(new StreamableHTTPClientTransport(new URL(world.url)));
} else {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  client = new Client({ name: "test", version: "1" });
  await client.connect(new StdioClientTransport({ command: world.command, args: world.args, env: world.env, stderr: "inherit" }));
}
// The older package hides its options behind a schema of results.
const call = (params, options) =>
  world.url ? client.callTool(params, options) : client.callTool(params, undefined, options);

const { tools } = await client.listTools();
const results = {};
const progress = [];
const onprogress = ({ message }) => progress.push(message);
for (const { module, input } of world.calls) {
  const result = await call({ name: module, arguments: input }, { onprogress });
  results[module] = { blocks: result.content, structured: result.structuredContent, is_error: result.isError };
}

// The model holds this call. A line on the standard input says that it does.
const control = new AbortController();
process.stdin.once("data", () => control.abort());
let cancelled = false;
try {
  await call({ name: world.held.module, arguments: world.held.input }, { signal: control.signal });
} catch {
  cancelled = control.signal.aborted;
}
const schemas = tools.filter((tool) => tool.outputSchema?.type === "object").length;
const revision = client.getNegotiatedProtocolVersion?.();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), schemas, results, progress, cancelled, revision }));
for await (const _ of process.stdin);
await client.close();
