// The scenario in Node: node node.mjs WORLD.json prints what it saw.
import { readFileSync } from "node:fs";
import { cutProxies } from "./proxy.mjs";
import { scenario } from "./scenario.js";

const world = JSON.parse(readFileSync(process.argv[2], "utf8"));
const seen = await scenario({ ...world, cut: await cutProxies(world) });
process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0));
