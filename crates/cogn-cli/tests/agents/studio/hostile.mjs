// Text of a model or a module author is displayed as plain text: markup, scripts, hidden characters, lines of a megabyte, a hundred
// thousand lines. None of it runs, turns the page around or fills it with nodes.

import assert from "node:assert/strict";
import { newPage, scenario, succeeded, visit, world } from "./browser.mjs";

/** Far more than any page needs, far less than one node for every line. */
const MOST_NODES = 6000;

async function nodes(page) {
  return page.evaluate(() => document.querySelectorAll("*").length);
}

/** A picture with a script in it, or a page, is taken in and not shown: no foreign document gets an address of this origin. */
async function hostilePicture(page) {
  await visit(page, "/run/image-analyzer");
  const zone = page.getByRole("group", { name: "images: drop files here" });
  const transfer = await page.evaluateHandle(() => {
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="parent.hacked=5;top.hacked=5"><script>window.hacked=6;parent.hacked=6</script><image href="http://evil.example/x.png"/><foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="x" onerror="parent.hacked=7"/></body></foreignObject><rect width="9" height="9"/></svg>`;
    const transfer = new DataTransfer();
    transfer.items.add(new File([svg], "<b>evil</b>.svg", { type: "image/svg+xml" }));
    transfer.items.add(new File(["<script>parent.hacked=8</script>"], "page.html", { type: "text/html" }));
    return transfer;
  });
  await zone.dispatchEvent("drop", { dataTransfer: transfer });
  await zone.getByText("<b>evil</b>.svg").waitFor();
  await zone.getByText("page.html").waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await zone.locator("iframe, object, embed, svg, a, img").count(), 0);
  // A link that would unpack to a gigabyte is no input.
  const bomb = await page.evaluate(async () => {
    const zeros = new Blob([new Uint8Array(60_000_000)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(zeros).arrayBuffer());
    return btoa(Array.from(bytes, (each) => String.fromCharCode(each)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  });
  await visit(page, `/run/words?input=${bomb}`);
  await page.getByText("The link contains no valid input").first().waitFor();
}

await scenario(async () => {
  const page = await newPage();
  await hostilePicture(page);
  await visit(page, "/run/hostile");
  // The form of the module before it has the same fields.
  await page.locator("main").getByText("window.hacked=4").first().waitFor();
  await page.keyboard.press("Control+Enter");
  const envelope = page.getByRole("article", { name: "Envelope" });
  await succeeded(page);
  const shown = await envelope.textContent();
  for (const text of ["<script>window.hacked = 1</script>", "<img src=x onerror=\"window.hacked = 2\">", "**bold** [link](javascript:window.hacked=3)"]) {
    assert.ok(shown.includes(text), text);
  }
  // Characters that turn or hide text are named.
  assert.ok(shown.includes("U+202E") && !shown.includes("\u202e"), "hidden characters are shown as they are");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await envelope.locator("script, img, a").count(), 0);
  const rows = page.getByRole("region", { name: "lines, scrolls" });
  await rows.getByText("line 1 of many").first().waitFor();
  const before = await nodes(page);
  assert.ok(before < MOST_NODES, `${before} nodes`);
  // The end can be reached, and costs no more.
  await rows.evaluate((box) => (box.scrollTop = box.scrollHeight));
  await rows.getByText(`line ${world.lines} of many`).waitFor();
  assert.ok((await nodes(page)) < MOST_NODES);
  const long = page.getByRole("region", { name: "long, scrolls" });
  await long.waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  await envelope.getByRole("button", { name: "JSON" }).click();
  await page.getByRole("region", { name: "Envelope as JSON, scrolls" }).waitFor();
  assert.ok((await nodes(page)) < MOST_NODES);

  // The module's own words are no better.
  await visit(page, "/modules/hostile");
  await page.getByText("<b onclick=window.hacked=4>Hostile</b>").first().waitFor();
  await visit(page, "/modules/hostile?file=prompt.md");
  await page.getByLabel("prompt.md of hostile").waitFor();
  await visit(page, "/runs?module=hostile");
  await page.getByRole("region", { name: "Runs" }).getByRole("link").first().click();
  await page.getByRole("region", { name: "Answer" }).getByText("<script>window.hacked = 1</script>").first().waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.ok((await nodes(page)) < MOST_NODES);
});
