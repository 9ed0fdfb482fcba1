// The access of each role: nothing but the login without a key, no word of the key anywhere in the browser, and each role its own pages.

import assert from "node:assert/strict";
import { barriers, newPage, scenario, world } from "./browser.mjs";

async function login(page, key) {
  await page.goto(world.base);
  await page.getByLabel("Key").fill(key);
  await page.getByRole("button", { name: "Log in" }).click();
}

await scenario(async () => {
  const stranger = await newPage();
  const answer = await stranger.goto(world.base);
  assert.match(await answer.text(), /Log in/);
  for (const path of ["/index.html", "/icon.svg", ...world.assets, "/api/modules", "/v1/runs", "/v1/session"]) {
    const refused = await stranger.request.get(world.base + path);
    assert.equal(refused.status(), 401, path);
  }
  for (const theme of ["light", "dark"]) {
    await stranger.emulateMedia({ colorScheme: theme });
    assert.deepEqual(await barriers(stranger), [], theme);
  }
  await login(stranger, "a-key-that-nobody-has-0000000");
  await stranger.getByRole("alert").filter({ hasText: /\S/ }).waitFor();
  assert.equal(await stranger.evaluate(() => document.cookie), "");

  const runner = await newPage();
  await login(runner, world.keys.runner);
  await runner.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Run", exact: true }).waitFor();
  assert.equal(await runner.getByRole("link", { name: /^Review/ }).count(), 0);
  assert.equal(await runner.getByRole("button", { name: "Prompt and request" }).count(), 0);
  const kept = await runner.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]));
  assert.ok(!kept.includes(world.keys.runner), kept);
  await runner.goto(`${world.base}/#/review`);
  await runner.getByText("does not have the role").waitFor();

  const reviewer = await newPage();
  await login(reviewer, world.keys.reviewer);
  await reviewer.getByRole("link", { name: /^Review/ }).click();
  await reviewer.getByRole("heading", { name: "Review", exact: true }).waitFor();
  await reviewer.getByRole("button", { name: "Log out" }).click();
  await reviewer.getByLabel("Key").waitFor();
  assert.equal((await reviewer.request.get(`${world.base}/v1/session`)).status(), 401);
});
