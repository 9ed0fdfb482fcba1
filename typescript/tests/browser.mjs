// The scenario in Chromium: node browser.mjs WORLD.json PROFILE_DIR PORT. Serves the page and the package at that port, starts the browser and
// prints what the page saw. The server has to allow the origin of the page.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import http from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { cutProxies } from "./proxy.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [file, profile, port] = process.argv.slice(2);
const world = JSON.parse(await readFile(file, "utf8"));
const cut = await cutProxies(world);
const types = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };

const server = http.createServer(async (request, response) => {
  if (request.method === "POST") {
    let told = "";
    for await (const piece of request) told += piece;
    response.end();
    console.log(told);
    browser.kill();
    process.exit(told.startsWith("{") ? 0 : 1);
  }
  const path = normalize(new URL(request.url, "http://page").pathname);
  try {
    const body = path === "/world.json" ? JSON.stringify({ ...world, cut }) : await readFile(join(here, path));
    response.setHeader("content-type", types[extname(path)] ?? "application/octet-stream");
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(Number(port), "127.0.0.1", resolve));
const flags = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--remote-debugging-port=0", `--user-data-dir=${profile}`,
];
const browser = spawn("chromium", [...flags, `http://127.0.0.1:${port}/page.html`], { stdio: "ignore" });
browser.on("exit", () => process.exit(1));
