// Formats figures and times for people, in the language of the browser where that matters.

import type { Json, Usage } from "./wire";

const whole = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

export const count = (value: number) => whole.format(value);
export const short = (value: number) => compact.format(value);

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms < 1) return "< 1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Formats a confidence with two digits, as in the contract. */
export function share(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toFixed(2);
}

export function percent(value: number): string {
  return `${Math.round(value * 100)} %`;
}

/** Formats an amount of money; small amounts keep two significant digits. */
export function money(amount: string | number | null | undefined, currency = "USD"): string {
  if (amount === null || amount === undefined || amount === "") return "–";
  const value = Number(amount);
  if (!Number.isFinite(value)) return String(amount);
  const digits = value === 0 || value >= 1 ? 2 : Math.min(8, Math.max(2, 1 - Math.floor(Math.log10(value))));
  return `${value.toFixed(digits)} ${currency}`;
}

export function tokens(usage: Usage | null | undefined): string {
  if (!usage || (usage.input_tokens === undefined && usage.output_tokens === undefined)) return "–";
  return `${count(usage.input_tokens ?? 0)} in, ${count(usage.output_tokens ?? 0)} out`;
}

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${(size / 1024).toFixed(1)} KiB`;
  return `${(size / 1024 / 1024).toFixed(1)} MiB`;
}

const today = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const earlier = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

/** Formats a time: for today the time only, else with the day. */
export function moment(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  return date.toDateString() === new Date().toDateString() ? today.format(date) : earlier.format(date);
}

export function exactMoment(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? at : full.format(date);
}

/** The word for a risk, which may be a custom one of the module. */
export function riskWord(risk: Json | undefined): string {
  if (typeof risk === "string") return risk;
  if (typeof risk === "object" && risk !== null && !Array.isArray(risk)) return String(Object.values(risk)[0] ?? "custom");
  return "–";
}

/** `1 run`, `2 runs`. */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Rewords a suggestion for programs for users of the page. */
export function forThePage(suggestion: string): string {
  return suggestion
    .replace(/`GET \/api\/modules\/[^`]+` shows the module's input/g, "*Modules* shows the module's input")
    .replace(/`GET \/api\/modules` lists (all|the) modules/g, "*Modules* lists them")
    .replace(/`GET \/v1\/models` lists [a-z ]+/g, "The list of models shows them");
}
