// Every page in both themes, accessible to all users: no serious finding of axe, nothing wider than the screen, everything by keyboard.
// Takes pictures where `world.pictures` names a folder.

import assert from "node:assert/strict";
import { ask, barriers, newPage, scenario, succeeded, visit, world } from "./browser.mjs";

const PLACES = {
  run: "/run/trip",
  "run-composition": "/run/code-review-pipeline",
  compare: "/compare/words",
  modules: "/modules",
  module: "/modules/trip",
  files: "/modules/words?file=prompt.md",
  graph: "/modules/code-review-pipeline?tab=graph",
  tests: "/modules/summarizer?tab=tests",
  runs: "/runs",
  review: "/review",
  calibration: "/review?view=calibration",
};

/** Waits until nothing is asked any more and every picture of figures is drawn. */
async function settled(page) {
  await page.waitForLoadState("networkidle");
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

async function look(theme, width, height) {
  const found = [];
  const page = await newPage({ theme, width, height });
  const name = width < 500 ? "phone" : width > 3000 ? "wide" : "desktop";
  const check = async (place) => {
    await settled(page);
    const tall = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (tall > 0) found.push(`${place} ${theme} ${width}: ${tall} pixels too wide`);
    found.push(...(await barriers(page)).map((each) => `${place} ${theme} ${width}: ${each}`));
    if (world.pictures) await page.screenshot({ path: `${world.pictures}/${place}-${theme}-${name}.png` });
  };
  for (const [place, hash] of Object.entries(PLACES)) {
    await visit(page, hash);
    await check(place);
  }
  // With something to show: an answer, a failure, a dialog, a run.
  await visit(page, "/run/words");
  await page.locator('[data-path="/text"]').getByRole("textbox").fill("winter snow");
  await page.keyboard.press("Control+Enter");
  await succeeded(page);
  await check("answer");
  await page.locator('[data-path="/text"]').getByRole("textbox").fill("");
  await page.getByRole("button", { name: "JSON", exact: true }).first().click();
  await page.getByLabel("Input as JSON").fill('{"text": 1}');
  await page.keyboard.press("Control+Enter");
  await page.getByRole("alert").getByText("E1001").first().waitFor();
  await check("failure");
  await visit(page, "/runs");
  await page.getByRole("region", { name: "Runs" }).getByRole("link").first().click();
  await page.getByRole("heading", { name: "Time of each step" }).waitFor();
  await check("one-run");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await check("help");
  await page.keyboard.press("Escape");
  return found;
}

/** The pages by keys alone, and the switch of the looks. */
async function byKeyboard() {
  const page = await newPage();
  await visit(page, "/run/words");
  for (const [letter, heading] of [["c", "Compare"], ["m", "Modules"], ["u", "Runs"], ["v", "Review"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(letter);
    await page.getByRole("heading", { name: heading, exact: true }).first().waitFor();
  }
  await page.keyboard.press("t");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.reload();
  await page.getByRole("heading", { name: "Review", exact: true }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
}

await scenario(async () => {
  const first = await newPage();
  for (const text of ["one", "two", "three"]) await ask(first, "POST", "/v1/modules/words/execute", { text });
  await ask(first, "POST", "/v1/modules/unsure/execute", { text: "look at me" });
  const found = [];
  for (const theme of ["light", "dark"]) {
    for (const [width, height] of [[1280, 800], [360, 740]]) found.push(...(await look(theme, width, height)));
  }
  if (world.pictures) await look("light", 3840, 2160);
  assert.deepEqual(found, []);
  await byKeyboard();
});
