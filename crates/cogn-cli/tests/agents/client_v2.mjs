// Calls every module at `/mcp` of a server and prints what it saw. Usage: client_v2.mjs WORLD
import { readFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const world = JSON.parse(readFileSync(process.argv[2], "utf8"));
const client = new Client({ name: "test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(world.url)));
const { tools } = await client.listTools();
const results = {};
for (const { module, input } of world.calls) {
  const result = await client.callTool({ name: module, arguments: input });
  results[module] = { text: result.content[0].text, structured: result.structuredContent, is_error: result.isError };
}
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results }));
