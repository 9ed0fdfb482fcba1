// Measures the speed of the page on a running server: node bench.mjs BASE [MODULE INPUT.json RUNS]. With a module it first makes
// that many runs. Prints the median and the slowest of several rounds, each in a new browser: time to the first drawing, time until
// the page is usable, waiting time for the server, and the longest time without a reaction. Ends with 1 if the page is too slow.

import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";

const [base, module, file, wanted] = process.argv.slice(2);
const ROUNDS = 15;
const AT_ONCE = 8;
/** The limits in milliseconds: for an answer of the server, and for a usable page. */
const MOST_ANSWER = 200;
const MOST_DRAWN = 1000;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const rounded = (figure) => Math.round(figure * 10) / 10;

function told(figures) {
  const sorted = figures.toSorted((one, other) => one - other);
  return { median: rounded(sorted[Math.floor(sorted.length / 2)]), slowest: rounded(sorted.at(-1)) };
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
  return told(times);
}

/** Measures a page in the browser. `ready` lists the elements that must exist. */
async function page(hash, ready, asked = []) {
  const seen = { "first drawn, ms": [], "usable, ms": [], "longest freeze, ms": [] };
  for (const path of asked) seen[`waited for ${path}, ms`] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.addInitScript(() => {
      window.freezes = [0];
      new PerformanceObserver((list) => list.getEntries().forEach((each) => window.freezes.push(each.duration))).observe({ type: "longtask", buffered: true });
    });
    const began = performance.now();
    await page.goto(`${base}/#${hash}`);
    for (const place of ready) await page.locator(place).first().waitFor();
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    seen["usable, ms"].push(performance.now() - began);
    const own = await page.evaluate(() => ({
      drawn: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
      freeze: Math.max(...window.freezes),
      asked: performance.getEntriesByType("resource").map((each) => ({ path: new URL(each.name).pathname, ms: each.responseEnd - each.startTime })),
    }));
    seen["first drawn, ms"].push(own.drawn);
    seen["longest freeze, ms"].push(own.freeze);
    for (const path of asked) seen[`waited for ${path}, ms`].push(own.asked.find((each) => each.path === path)?.ms ?? Number.NaN);
    await context.close();
  }
  return Object.fromEntries(Object.entries(seen).map(([name, figures]) => [name, told(figures)]));
}

if (wanted) await fill();
const figures = {
  "GET /v1/runs?limit=50, ms": await answers("/v1/runs?limit=50"),
  "GET /v1/runs?limit=50&ok=false, ms": await answers("/v1/runs?limit=50&ok=false"),
  "GET /v1/runs/stats?buckets=48, ms": await answers("/v1/runs/stats?buckets=48"),
};
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
figures.Run = await page("/run", ["[data-path]"]);
figures.Runs = await page("/runs", ["main table tbody tr:nth-child(50)", "main canvas"], ["/v1/runs", "/v1/runs/stats"]);
await browser.close();
console.log(JSON.stringify(figures, null, 2));
const late = [
  ...Object.entries(figures).filter(([name, each]) => name.startsWith("GET") && each.median > MOST_ANSWER).map(([name]) => name),
  ...["Run", "Runs"].filter((name) => figures[name]["usable, ms"].median > MOST_DRAWN),
];
if (late.length > 0) {
  console.error(`too slow: ${late.join(", ")}`);
  process.exitCode = 1;
}
