// Starts `cogn mcp`, calls every module and prints what it saw. Usage: client_v1.mjs WORLD
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const world = JSON.parse(readFileSync(process.argv[2], "utf8"));
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command: world.command, args: world.args, env: world.env, stderr: "inherit" }));
const { tools } = await client.listTools();
const results = {};
for (const { module, input } of world.calls) {
  const result = await client.callTool({ name: module, arguments: input });
  results[module] = { text: result.content[0].text, structured: result.structuredContent, is_error: result.isError };
}
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results }));
