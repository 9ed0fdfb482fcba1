// How fast the page is on a server that is running: node bench.mjs BASE [MODULE INPUT.json RUNS]. With a module it first makes so many runs. Prints the
// median of several rounds: until the page is first drawn and can be used, and until the server has answered what the page Runs asks for.

import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";

const [base, module, file, wanted] = process.argv.slice(2);
const ROUNDS = 15;
const AT_ONCE = 8;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

function median(figures) {
  const sorted = figures.toSorted((one, other) => one - other);
  return Math.round(sorted[Math.floor(sorted.length / 2)] * 10) / 10;
}

async function fill() {
  const body = await readFile(file, "utf8");
  let left = Number(wanted);
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      const answer = await fetch(`${base}/v1/modules/${module}/execute`, { method: "POST", body, headers: { "content-type": "application/json" } });
      await answer.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function answers(path) {
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const began = performance.now();
    await (await fetch(base + path)).arrayBuffer();
    times.push(performance.now() - began);
  }
  return median(times);
}

async function page(hash, ready) {
  const [drawn, usable] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    // A browser that has seen nothing of it yet.
    const context = await browser.newContext();
    const page = await context.newPage();
    const began = performance.now();
    await page.goto(`${base}/#${hash}`);
    await page.locator(ready).first().waitFor();
    usable.push(performance.now() - began);
    drawn.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN));
    await context.close();
  }
  return { "first drawn, ms": median(drawn), "usable, ms": median(usable) };
}

if (wanted) await fill();
const figures = {
  "GET /v1/runs?limit=50, ms": await answers("/v1/runs?limit=50"),
  "GET /v1/runs/stats?buckets=48, ms": await answers("/v1/runs/stats?buckets=48"),
};
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
figures.Run = await page("/run", "[data-path]");
figures.Runs = await page("/runs", "main table");
await browser.close();
console.log(JSON.stringify(figures, null, 2));
