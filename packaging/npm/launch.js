#!/usr/bin/env node
// Starts the `cogn` of the package for this platform, with the same arguments, and ends as it ends. Fetches nothing: npm has
// installed the right package already, as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platform = `${process.platform}-${process.arch}`;
const suffix = process.platform === "win32" ? ".exe" : "";

function find() {
  try {
    return require.resolve(`@cognitive-runtime/${platform}/bin/cogn${suffix}`);
  } catch {
    return undefined;
  }
}

const program = find();
if (program === undefined) {
  console.error(`error: there is no cogn for ${platform} in this installation`);
  console.error(
    "hint: Install without `--omit=optional`; for other platforms build it with `cargo install --path crates/cogn-cli`",
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends Ctrl-C to both; a signal to this process alone is meant for the program.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (error) => {
  console.error(`error: cannot start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exit(signal === null ? code : 128 + constants.signals[signal]);
});
