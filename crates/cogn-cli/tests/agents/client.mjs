// Calls every module and prints what it saw: over the standard streams of `cogn mcp` with the older package, or at `/mcp` of a
// server with the newer one, where the world has a `url`. Usage: client.mjs WORLD
import { readFileSync } from "node:fs";

const world = JSON.parse(readFileSync(process.argv[2], "utf8"));
let client;
if (world.url) {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(world.url)));
} else {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  client = new Client({ name: "test", version: "1" });
  await client.connect(new StdioClientTransport({ command: world.command, args: world.args, env: world.env, stderr: "inherit" }));
}
const { tools } = await client.listTools();
const results = {};
for (const { module, input } of world.calls) {
  const result = await client.callTool({ name: module, arguments: input });
  results[module] = { text: result.content[0].text, structured: result.structuredContent, is_error: result.isError };
}
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results }));
