// A run of the embedded model from the page: no service, no key, and the exact prompt without a request.

import { newPage, scenario, succeeded, visit } from "./browser.mjs";

await scenario(async () => {
  const page = await newPage();
  await visit(page, "/run/text-classifier");
  await page.locator('[data-path="/text"]').getByRole("textbox").fill("The delivery came two weeks late and the box was broken.");
  await page.keyboard.press("Control+Enter");
  await succeeded(page);
  await page.getByRole("article", { name: "Envelope" }).getByText("negative").first().waitFor();
  const model = (await page.getByText(/^embedded\//).first().textContent()).trim();
  await page.getByRole("button", { name: "Prompt and request" }).click();
  await page.getByText("runs in the server").waitFor();
  return { model };
});
