// Runs three modules with the types that openapi-typescript has generated; prints what they led to as JSON.
// Checked by tsc in strict mode before it is run: node typed.js http://127.0.0.1:PORT
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[] };
const client = createClient<paths>({ baseUrl: process.argv[2] ?? "" });
const seen: Record<string, unknown> = {};

const { data, error } = await client.POST("/api/run/text-classifier", { body: { text: "It rains." } });
if (data) {
  const label: string = data.data.label;
  const sentiment: "positive" | "negative" | "neutral" = data.data.sentiment;
  const risk: "none" | "low" | "medium" | "high" = data.meta.risk;
  Object.assign(seen, { label, sentiment, risk });
} else {
  throw new Error(error.error.message);
}

const review = await client.POST("/api/run/code-reviewer", { body: { code: "x = 1" } });
const envelope = review.data ?? review.error;
if (envelope?.ok) {
  seen.kinds = envelope.data.issues.map(({ type }): string => (typeof type === "string" ? type : type.custom));
}

// The model gives what the contract of this module does not allow.
const failed = await client.POST("/api/run/summarizer", { body: { text: "It rains." } });
if (failed.error) {
  const code: string = failed.error.error.code;
  seen.code = code;
}

const known = await client.GET("/api/modules");
const modules: components["schemas"]["ModuleSummary"][] = known.data?.modules ?? [];
seen.modules = modules.map(module => module.name);
console.log(JSON.stringify(seen));
