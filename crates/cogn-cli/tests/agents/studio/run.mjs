// The page Run, driven as people do: a nested form and its JSON, a stream that is stopped, a fault at its field, a dropped picture, the
// exact prompt, a link that restores the input, a composition that lights up.

import assert from "node:assert/strict";
import { newPage, scenario, succeeded, visit, world } from "./browser.mjs";

const run = (page) => page.getByRole("button", { name: /^Run/ });
const envelope = (page) => page.getByRole("article", { name: "Envelope" });
const field = (page, path) => page.locator(`[data-path="${path}"]`);

async function nestedForm() {
  const page = await newPage({ permissions: ["clipboard-read", "clipboard-write"] });
  await visit(page, "/run/trip");
  await field(page, "/traveller/name").getByRole("textbox").fill("Ada");
  await field(page, "/traveller/age").getByRole("textbox").fill("36");
  await field(page, "/class").getByRole("combobox").selectOption({ label: "second" });
  await page.getByRole("button", { name: "+ Add to stops" }).click();
  await field(page, "/stops/0/city").getByRole("textbox").fill("Malmö");
  await field(page, "/stops/0/kind").getByRole("combobox").selectOption({ label: "something else…" });
  await page.getByLabel("The value").fill("archive");
  await page.getByLabel("Reason for a custom value").fill("she reads old letters");
  await page.getByRole("button", { name: "Add contact" }).click();
  await page.getByLabel("Form of contact").selectOption({ label: "phone" });
  await field(page, "/contact").getByLabel("number").fill("123");
  // The form is the JSON.
  await page.getByRole("button", { name: "JSON", exact: true }).first().click();
  const text = page.getByLabel("Input as JSON");
  const expected = {
    traveller: { name: "Ada", age: 36 },
    class: "second",
    stops: [{ city: "Malmö", kind: { custom: "archive", reason: "she reads old letters" } }],
    contact: { by: "phone", number: "123" },
  };
  assert.deepEqual(JSON.parse(await text.inputValue()), expected);
  // And the JSON is the form.
  expected.stops.push({ city: "Lund" });
  await text.fill(JSON.stringify(expected));
  await page.getByRole("button", { name: "Form", exact: true }).click();
  assert.equal(await field(page, "/stops/1/city").getByRole("textbox").inputValue(), "Lund");
  // Invalid JSON is reported, and changes nothing.
  await page.getByRole("button", { name: "JSON", exact: true }).first().click();
  await text.fill('{"traveller": ');
  await page.getByText("The input is not JSON yet").waitFor();
  await text.fill(JSON.stringify(expected));
  await page.getByRole("button", { name: "Form", exact: true }).click();
  await page.keyboard.press("Control+Enter");
  await succeeded(page);
  await envelope(page).getByText("A quiet week by train.").first().waitFor();
  await envelope(page).getByText("keep the letters dry").waitFor();

  // The link restores what was typed, and goes to no server.
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByText("The link is copied").first().waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(link.startsWith(`${world.base}/#/run/trip?input=`), link);
  const other = await newPage();
  await other.goto(link);
  await field(other, "/traveller/name").waitFor();
  await other.waitForFunction(() => document.querySelector('[data-path="/traveller/name"] textarea, [data-path="/traveller/name"] input')?.value === "Ada");
  await other.getByRole("button", { name: "JSON", exact: true }).first().click();
  assert.deepEqual(JSON.parse(await other.getByLabel("Input as JSON").inputValue()), expected);
}

/** The answer is shown when it comes, whatever was open before, and can be kept as a test. Own modules come first. */
async function answerIsShown() {
  const page = await newPage();
  await visit(page, "/run/words");
  await field(page, "/text").getByRole("textbox").fill("winter snow");
  await page.getByRole("button", { name: "Prompt and request" }).click();
  await page.keyboard.press("Control+Enter");
  await succeeded(page);
  await page.getByRole("button", { name: "Save as test…" }).click();
  await page.getByRole("dialog").getByLabel("Name").waitFor();
  const groups = await page.locator("select optgroup").evaluateAll((all) => all.map((each) => each.label));
  assert.deepEqual(groups.slice(0, 2), ["Your modules", "Bundled modules"]);
}

async function faultAtItsField() {
  const page = await newPage();
  await visit(page, "/run/trip");
  await field(page, "/traveller/name").getByRole("textbox").fill("Ada");
  await field(page, "/traveller/age").getByRole("textbox").fill("many");
  await run(page).click();
  await page.getByRole("alert").getByText("E1001").waitFor();
  const age = field(page, "/traveller/age").getByRole("textbox");
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-invalid") === "true");
  assert.equal(await age.getAttribute("aria-invalid"), "true");
  const told = await age.getAttribute("aria-describedby");
  const words = await page.evaluate((ids) => ids.split(" ").map((id) => document.getElementById(id)?.textContent).join(" "), told);
  assert.match(words, /integer/);
  assert.equal(await page.evaluate(() => document.activeElement?.closest("[data-path]")?.getAttribute("data-path")), "/traveller/age");
  // The fault goes with what caused it.
  await age.fill("36");
  await page.keyboard.press("Control+Enter");
  await succeeded(page);
  assert.equal(await age.getAttribute("aria-invalid"), null);
}

async function streamAndStop() {
  const page = await newPage();
  await visit(page, "/run/words");
  await field(page, "/text").getByRole("textbox").fill("HOLD");
  await page.keyboard.press("Control+Enter");
  // The model has written a part of its answer and waits: what there is grows in the page.
  await page.locator("[data-live]").getByText("It is ☕").waitFor();
  await page.keyboard.press("Escape");
  await envelope(page).getByText("E2010").waitFor();
  await run(page).waitFor();
  // Without a stream it can be stopped as well.
  await page.getByLabel("stream the answer").uncheck();
  await run(page).click();
  await page.getByRole("button", { name: /^Stop/ }).click();
  await envelope(page).getByText("stopped").first().waitFor();
  await field(page, "/text").getByRole("textbox").fill("winter snow");
  await run(page).click();
  await envelope(page).getByText("snow").waitFor();
}

async function droppedPicture() {
  const page = await newPage();
  await visit(page, "/run/image-analyzer");
  const zone = page.getByRole("group", { name: "images: drop files here" });
  const transfer = await page.evaluateHandle((base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], "square.png", { type: "image/png" }));
    return transfer;
  }, world.png);
  await zone.dispatchEvent("drop", { dataTransfer: transfer });
  const preview = page.getByAltText(/^Preview of square\.png/);
  await preview.waitFor();
  await page.waitForFunction((image) => image.complete && image.naturalWidth > 0, await preview.elementHandle());
  // Its bytes are not in the text, and are sent.
  await page.getByRole("button", { name: "JSON", exact: true }).first().click();
  assert.match(await page.getByLabel("Input as JSON").inputValue(), /«file 1: square\.png/);
  const sent = page.waitForRequest(/\/execute$/);
  await page.keyboard.press("Control+Enter");
  assert.ok((await sent).postData().includes(world.png));
  await succeeded(page);
}

async function exactPrompt() {
  const page = await newPage();
  await visit(page, "/run/words");
  await field(page, "/text").getByRole("textbox").fill("look at these words");
  await page.getByRole("button", { name: "Prompt and request" }).click();
  await page.getByText("Find the words.").first().waitFor();
  const curl = page.getByText(/curl .*chat\/completions/s).first();
  await curl.waitFor();
  const shown = await page.locator("main").textContent();
  assert.ok(shown.includes("look at these words") && shown.includes("$OPENAI_API_KEY") && !shown.includes("sk-test"), shown);
  // A draft of the prompt is what would be asked then.
  await page.getByRole("button", { name: "Prompt", exact: true }).click();
  await page.getByLabel("Draft of prompt.md").fill("Find the longest words.");
  await page.getByText("Find the longest words.").nth(1).waitFor();
  await page.getByText("A draft: runs use it, but it is not saved.").waitFor();
}

async function compositionLightsUp() {
  const page = await newPage();
  await visit(page, "/modules/code-review-pipeline?tab=graph");
  await page.locator('[data-part="code-reviewer"]').waitFor();
  await visit(page, "/run/code-review-pipeline");
  await field(page, "/code").getByRole("textbox").fill(world.code);
  await page.locator('[data-part="code-reviewer"]').waitFor();
  await page.evaluate(() => {
    window.states = [];
    const note = (records) => {
      for (const { target } of records) window.states.push(`${target.dataset.part} ${target.dataset.state}`);
    };
    new MutationObserver(note).observe(document.querySelector("main"), { subtree: true, attributeFilter: ["data-state"] });
  });
  await run(page).click();
  await page.locator('[data-part="code-simplifier"][data-state="finished"]').waitFor();
  await succeeded(page);
  const states = await page.evaluate(() => window.states);
  for (const part of ["code-reviewer", "code-simplifier"]) {
    const [began, ended] = [states.indexOf(`${part} started`), states.indexOf(`${part} finished`)];
    assert.ok(began >= 0 && ended > began, `${part}: ${states.join(", ")}`);
  }
  // The condition between parts is shown on the edge.
  assert.ok((await page.locator("svg .condition").count()) > 0);
  // Each part has the prompt that it gets. One that holds the answer of another part is not made up.
  await page.getByRole("button", { name: "Prompt and request" }).click();
  await page.getByRole("heading", { name: "code-review-pipeline/code-reviewer" }).waitFor();
  await page.getByText("Its prompt depends on the answer of code-reviewer.").waitFor();
}

await scenario(async () => {
  await nestedForm();
  await answerIsShown();
  await faultAtItsField();
  await streamAndStop();
  await droppedPicture();
  await exactPrompt();
  await compositionLightsUp();
});
