// The scenario in Deno: deno run … deno.js WORLD.json PROXIES prints what it saw.
import { scenario } from "./scenario.js";

declare const Deno: { args: string[]; readTextFileSync(path: string): string; exit(code: number): never };

const [file = "", cut = ""] = Deno.args;
const world = JSON.parse(Deno.readTextFileSync(file));
console.log(JSON.stringify(await scenario({ ...world, cut: JSON.parse(cut) })));
Deno.exit(0);
