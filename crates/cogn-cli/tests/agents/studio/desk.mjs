// Compare, Modules and Runs, driven as an author does: two prompts side by side, an answer kept as a golden test, two versions judged by
// that test, a file edited with its faults at their line and saved after a look at the difference, a broken module mended by a draft,
// a past run replayed with a changed prompt and with another version.

import assert from "node:assert/strict";
import { ask, newPage, scenario, succeeded, visit, world } from "./browser.mjs";

const field = (page, path) => page.locator(`[data-path="${path}"]`);

/** Replaces the text of an editor. */
async function type(editor, text) {
  await editor.fill(text);
}

async function comparePrompts(page) {
  await visit(page, "/run/words");
  await field(page, "/text").getByRole("textbox").fill("winter snow");
  await page.getByRole("link", { name: "Compare" }).first().click();
  await page.getByRole("button", { name: "+ Add a variant" }).click();
  const variant = page.getByRole("group", { name: "Variant variant 2" });
  await variant.getByRole("button", { name: "Edit the prompt" }).click();
  const dialog = page.getByRole("dialog");
  await type(dialog.getByLabel("Prompt of variant 2"), world.changedPrompt);
  await dialog.getByRole("button", { name: "Use it" }).click();
  await variant.getByText("draft of prompt.md").waitFor();
  await page.getByLabel(/^each/).fill("3");
  await page.getByRole("button", { name: "Start 6 runs" }).click();
  await page.getByText("6 of 6 runs").waitFor();
  await page.getByRole("button", { name: "Look at variant 2 on input" }).click();
  const cell = page.getByRole("region", { name: "variant 2 on input" });
  await cell.getByRole("heading", { name: "Differences from saved" }).waitFor();
  const differences = cell.getByRole("region", { name: "Differences" });
  await differences.getByText("/data/words/1").waitFor();
  await differences.getByText("hail").waitFor();
  await cell.getByRole("heading", { name: "Spread over 3 repeats" }).waitFor();
  await cell.getByText("All repeats agree on every field.").waitFor();
  return cell;
}

async function keepAsTest(page, cell) {
  await cell.getByRole("button", { name: "Save as test…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("two-words");
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved two-words for words, with what the model wrote").first().waitFor();
}

/** A module is created from the template, listed before the bundled ones, and opened. */
async function createModule(page) {
  await visit(page, "/modules");
  await page.getByRole("button", { name: "New module…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("words");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByText("a module of this name exists").waitFor();
  await dialog.getByLabel("Name").fill("fresh-one");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByLabel("prompt.md of fresh-one").waitFor();
  const names = await page.getByRole("region", { name: "All modules" }).getByRole("link").allTextContents();
  const place = (name) => names.findIndex((each) => each.includes(name));
  assert.ok(place("fresh-one") >= 0 && place("fresh-one") < place("summarizer"), names.join());
}

/** The installed prompt gives another answer than the test expects: the page says so at the test, with the place. */
async function runTests(page) {
  await visit(page, "/modules/words?tab=tests");
  await page.getByRole("button", { name: "Run 1 test" }).click();
  await page.getByText("0 of 1 test right").first().waitFor();
  await page.getByText("two-words").first().click();
  const wrong = page.getByRole("table", { name: /^What is wrong/ });
  assert.match(await wrong.textContent(), /hail[^]*snow/);
}

/** The test that was kept expects what the changed prompt gives; the older version has that prompt, the installed one has not. */
async function judgeVersions(page) {
  await page.reload();
  await visit(page, "/compare/words");
  await page.getByRole("button", { name: "1 saved case" }).click();
  await page.getByRole("button", { name: "+ Add a variant" }).click();
  const variant = page.getByRole("group", { name: "Variant variant 2" });
  const chosen = variant.getByLabel("Version");
  const older = await chosen.locator("option", { hasText: "0.9.0" }).getAttribute("value");
  await chosen.selectOption(older);
  assert.equal(await variant.getByRole("button", { name: "Edit the prompt" }).isDisabled(), true);
  await page.getByRole("button", { name: "Start 2 runs" }).click();
  await page.getByText("2 of 2 runs").waitFor();
  const head = page.getByRole("region", { name: "Results" }).locator("thead");
  await head.getByText("0/1 right").waitFor();
  await head.getByText("1/1 right").waitFor();
  await page.getByRole("button", { name: "Look at saved on tests/two-words" }).click();
  const wrong = page.getByRole("list", { name: "What is wrong" });
  await wrong.getByText(/words/).first().waitFor();
  assert.match(await wrong.textContent(), /hail[^]*snow/);
  // If there is only one, the page says so.
  await visit(page, "/compare/trip");
  await page.getByText("1.0.0, the only one that this server finds").waitFor();
}

/** A module that is broken on disk runs as the draft that mends it, before anything is saved. */
async function mendBroken(page) {
  const shown = await ask(page, "GET", "/v1/modules/unsure/files");
  const schema = shown.body.files.find((each) => each.path === "schema.json").text;
  const broken = await ask(page, "PUT", "/v1/modules/unsure/files", { hash: shown.body.hash, files: { "schema.json": "{" } });
  assert.equal(broken.status, 200);
  await visit(page, "/modules/unsure?file=schema.json");
  await type(page.getByLabel("schema.json of unsure"), schema);
  await page.getByRole("link", { name: "Try the draft" }).click();
  await field(page, "/text").getByRole("textbox").fill("guess it");
  await page.keyboard.press("Control+Enter");
  await succeeded(page);
  const mended = await ask(page, "PUT", "/v1/modules/unsure/files", { hash: broken.body.hash, files: { "schema.json": schema } });
  assert.equal(mended.status, 200);
}

async function stopComparison(page) {
  await visit(page, "/run/words");
  await field(page, "/text").getByRole("textbox").fill("HOLD");
  await visit(page, "/compare/words");
  await page.getByRole("button", { name: /^Start/ }).click();
  await page.getByRole("button", { name: /^Stop/ }).click();
  await page.getByText(/· stopped/).waitFor();
}

async function editAndSave(page) {
  await visit(page, "/modules/words?file=module.yaml");
  const editor = page.getByLabel("module.yaml of words");
  const saved = await editor.inputValue();
  await type(editor, saved.replace("tier: decision", "tier: fast"));
  const finding = page.getByRole("list", { name: "Findings" }).getByRole("button", { name: /module\.yaml:4/ });
  await finding.waitFor();
  await finding.click();
  await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA" && document.activeElement.selectionStart > 0);
  const line = await editor.evaluate((area) => area.value.slice(0, area.selectionStart).split("\n").length);
  assert.equal(line, 4);
  await type(editor, saved);
  await finding.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "prompt.md" }).click();
  await type(page.getByLabel("prompt.md of words"), world.savedPrompt);
  await page.getByRole("button", { name: "Save…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.locator("tr.in").getByText(world.savedPrompt).waitFor();
  await dialog.locator("tr.out").first().waitFor();
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("1 file of words saved").first().waitFor();
  // A folder without permission stays unchanged.
  await visit(page, "/modules/summarizer?file=prompt.md");
  await page.getByText("The operator has not allowed changes in this folder").waitFor();
  await type(page.getByLabel("prompt.md of summarizer"), "Another prompt");
  assert.equal(await page.getByRole("button", { name: "Save…" }).isDisabled(), true);
  await page.getByRole("button", { name: "Discard the changes" }).click();
}

async function replayPastRun(page) {
  const made = await ask(page, "POST", "/v1/modules/words/execute", { text: "winter snow" });
  assert.equal(made.status, 200);
  await visit(page, "/runs?module=words");
  const table = page.getByRole("region", { name: "Runs" });
  await table.getByRole("row").nth(1).waitFor();
  assert.ok((await table.getByRole("row").allTextContents()).slice(1).every((row) => row.includes("words")));
  await table.getByRole("link").first().click();
  await page.getByRole("heading", { name: "Time of each step" }).waitFor();
  await page.getByRole("list", { name: "Steps in order" }).getByText("words").first().waitFor();
  await page.getByRole("button", { name: "Change the prompt" }).click();
  const editor = page.getByLabel("Prompt for this run");
  await type(editor, world.changedPrompt);
  await page.getByRole("button", { name: "Run again" }).click();
  const changed = page.getByRole("region", { name: "What changed" });
  await changed.getByText("hail").first().waitFor();
  await changed.getByText("/data/words/1").waitFor();
  // The older version answers like the changed prompt, without a draft.
  await page.reload();
  const versions = page.getByLabel("Version");
  await versions.selectOption(await versions.locator("option", { hasText: "0.9.0" }).getAttribute("value"));
  assert.equal(await page.getByRole("button", { name: "Change the prompt" }).count(), 0);
  await page.getByRole("button", { name: "Run again" }).click();
  await changed.getByText("hail").first().waitFor();
}

/** However many runs there are, the page shows some of them, and more when it is asked to. */
async function manyRuns(page) {
  await Promise.all(Array.from({ length: 60 }, (_, each) => ask(page, "POST", "/v1/modules/trip/execute", { traveller: { name: `number ${each}` } })));
  await visit(page, "/runs?module=trip");
  const links = page.getByRole("region", { name: "Runs" }).getByRole("link");
  await links.nth(49).waitFor();
  assert.equal(await links.count(), 50);
  await page.getByRole("button", { name: "Show older runs" }).click();
  await page.getByText("No older runs.").waitFor();
  assert.equal(await links.count(), 60);
}

await scenario(async () => {
  const page = await newPage();
  const cell = await comparePrompts(page);
  await keepAsTest(page, cell);
  await runTests(page);
  await createModule(page);
  await judgeVersions(page);
  await replayPastRun(page);
  await manyRuns(page);
  await editAndSave(page);
  await mendBroken(page);
  await stopComparison(page);
});
