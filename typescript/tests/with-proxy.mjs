// Starts a program beside proxies that cut: node with-proxy.mjs WORLD.json PROGRAM ARGUMENT…, with their addresses as the last argument.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { cutProxies } from "./proxy.mjs";

const [file, program, ...given] = process.argv.slice(2);
const world = JSON.parse(readFileSync(file, "utf8"));
const child = spawn(program, [...given, JSON.stringify(await cutProxies(world))], { stdio: "inherit" });
child.on("exit", (code) => process.exit(code ?? 1));
