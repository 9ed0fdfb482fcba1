// The setup of every scenario of the page: Chromium, and a page that tells what it must never do: break its policy, fail, or send requests
// to another server. Waits for conditions, never for time.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync",
];
/** The longest that a condition may take; nothing is judged by how long it took. */
const PATIENCE = 120_000;

export const world = JSON.parse(await readFile(process.argv[2], "utf8"));
const browser = await chromium.launch({ executablePath: world.chromium ?? "/usr/bin/chromium", args: FLAGS });

/** The violations of the pages. */
const problems = [];

/** A separate page with separate cookies. */
export async function newPage({ theme = "light", width = 1280, height = 900, permissions = [], base = world.base } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, permissions });
  context.setDefaultTimeout(PATIENCE);
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // A status of 4xx is an answer, which the page shows.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) problems.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!["data:", "blob:"].includes(url.protocol) && url.origin !== new URL(base).origin) problems.push(`asked another host: ${url.origin}`);
  });
  return page;
}

/** Goes to a place of the page and waits until it is shown. */
export async function visit(page, hash, base = world.base) {
  await page.goto(`${base}/#${hash}`);
  await page.locator("main").getByText("Loading…").first().waitFor({ state: "detached" });
}

/** Waits for the envelope of a run that went well. */
export async function succeeded(page) {
  await page.locator('article[data-outcome="ok"]').first().waitFor();
}

/** Runs a scenario, and afterwards asks whether anything happened that must not. */
export async function scenario(act) {
  try {
    const seen = await act();
    assert.deepEqual(problems, []);
    console.log(JSON.stringify(seen ?? {}));
  } finally {
    await browser.close();
  }
}

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Findings of axe that keep people out: serious and critical ones. */
export async function barriers(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.nodes.map((node) => `${node.target.join(" ")} ${node.failureSummary}`).slice(0, 3).join("; ")}`);
}

/** Asks the server the way programs do. */
export async function ask(page, method, path, data) {
  const headers = { "x-cogn-studio": "1", origin: world.base };
  const answer = await page.request.fetch(`${world.base}${path}`, { method, data, headers });
  return { status: answer.status(), body: await answer.json().catch(() => null) };
}
