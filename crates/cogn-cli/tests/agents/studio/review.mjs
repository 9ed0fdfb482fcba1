// The page Review: ten answers that need a person, decided with nothing but a keyboard, and what the decisions leave behind.

import assert from "node:assert/strict";
import { ask, newPage, scenario, visit } from "./browser.mjs";

const COUNT = 10;

await scenario(async () => {
  const page = await newPage();
  for (let each = 0; each < COUNT; each += 1) {
    const { body } = await ask(page, "POST", "/v1/modules/unsure/execute", { text: `number ${each}` });
    assert.equal(body.ok, true, JSON.stringify(body));
    assert.ok(body.meta.warnings.some((warning) => warning.code === "REVIEW"), JSON.stringify(body.meta));
  }
  await visit(page, "/review");
  await page.getByRole("button", { name: `Open (${COUNT})` }).waitFor();
  const item = page.locator("article[data-review]");
  const decided = [];
  for (let each = 0; each < COUNT; each += 1) {
    await item.getByText(`number ${COUNT - 1 - each}`).or(item.getByText(`number ${each}`)).first().waitFor();
    const id = await item.getAttribute("data-review");
    assert.ok(!decided.includes(id), "an item came twice");
    decided.push(id);
    if (each % 3 === 0) {
      await page.keyboard.press("a");
    } else if (each % 3 === 1) {
      await page.keyboard.press("x");
      await page.locator("[data-reason]:focus").waitFor();
      await page.keyboard.type("the wrong word");
    } else {
      await page.keyboard.press("e");
      await page.locator("[data-reason]:focus").waitFor();
      // From the reason back through the form to the field, as the Tab key goes.
      const field = page.getByRole("group", { name: "Decision" }).locator('[data-path="/word"]').getByRole("textbox");
      for (let step = 0; step < 20 && !(await field.evaluate((area) => area === document.activeElement)); step += 1) {
        await page.keyboard.press("Shift+Tab");
      }
      await page.keyboard.press("Control+a");
      await page.keyboard.type(`right ${each}`);
      for (let step = 0; step < 20 && !(await page.locator("[data-reason]").evaluate((area) => area === document.activeElement)); step += 1) {
        await page.keyboard.press("Tab");
      }
      await page.keyboard.type("another word is right");
    }
    await page.locator("[data-reason]:focus").waitFor();
    await page.keyboard.press("Enter");
    await page.locator(`article[data-review="${id}"]`).waitFor({ state: "detached" });
    await page.getByRole("button", { name: `Open (${COUNT - 1 - each})` }).waitFor();
  }
  await page.getByText("No pending reviews").waitFor();
  await page.getByRole("button", { name: "Decided" }).click();
  await page.getByRole("region", { name: "Queue" }).getByText("correct").first().waitFor();
  const { body } = await ask(page, "GET", "/v1/reviews?state=decided&limit=50");
  const verdicts = body.reviews.map((each) => each.decision.verdict).sort();
  assert.deepEqual(verdicts, ["approve", "approve", "approve", "approve", "correct", "correct", "correct", "reject", "reject", "reject"]);
  await page.getByRole("button", { name: "Calibration" }).click();
  await page.getByRole("heading", { name: /10 decisions/ }).waitFor();
  return { verdicts };
});
