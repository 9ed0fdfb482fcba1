// The login page: sends the key once and reloads. Does not store the key, and shows messages of the server as text.
"use strict";

const form = document.getElementById("login");
const key = document.getElementById("key");
const said = document.getElementById("said");
const button = form.querySelector("button");

async function login() {
  const answer = await fetch("./v1/session", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json", "x-cogn-studio": "1" },
    body: JSON.stringify({ key: key.value }),
    credentials: "same-origin",
  });
  if (answer.ok) return location.reload();
  const envelope = await answer.json().catch(() => null);
  const message = envelope && envelope.error && envelope.error.message;
  const wait = answer.headers.get("retry-after");
  throw new Error((message || `the server answered with status ${answer.status}`) + (wait ? `; try again in ${wait} s` : ""));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  said.textContent = "";
  button.disabled = true;
  login()
    .catch((error) => {
      said.textContent = error instanceof TypeError ? "the server cannot be reached" : error.message;
      key.select();
      key.focus();
    })
    .finally(() => {
      button.disabled = false;
    });
});
