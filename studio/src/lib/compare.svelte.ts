// A comparison: some inputs on some variants of a module, with a number of repeats. Runs two requests at a time, and waits if the
// server asks for it. After a stop, the answers so far stay.

import * as api from "./api";
import { announce, app } from "./app.svelte";
import { plural } from "./format";
import { withFiles } from "./input.svelte";
import { leaves, pretty } from "./json";
import type { Case, CaseVerdict, Draft, Envelope, Json, RunOptions } from "./wire";

export interface Variant {
  id: number;
  name: string;
  module: string;
  /** `""` is the server's own model. */
  model: string;
  /** `""` is the installed version. */
  version: string;
  draft: Draft | null;
}

export interface CompareInput {
  id: string;
  /** The text that is sent. */
  text: string;
  value: Json;
  expect?: Json;
  /** The case of the module, if the input is one. */
  case?: { set: string; id: string };
}

export interface Cell {
  envelopes: Envelope[];
  /** The verdict for each envelope; `null` without an expectation, or if the server could not judge it. */
  verdicts: (CaseVerdict | null)[];
}

/** The number of runs at the same time. */
const AT_ONCE = 2;

class Comparison {
  module = $state("");
  variants = $state<Variant[]>([]);
  repeats = $state(1);
  running = $state(false);
  done = $state(0);
  total = $state(0);
  /** The seconds that the server asked to wait. */
  waits = $state(0);
  /** The reason why an answer could not be judged. */
  unjudged = $state("");
  /** The inputs and variants as they were at the start. */
  inputs = $state.raw<CompareInput[]>([]);
  asked = $state.raw<Variant[]>([]);
  cells = $state.raw<Map<string, Cell>>(new Map());
  private stopper = new AbortController();
  private last = 0;

  /** Starts again for a module: its saved version and, if there is one, its draft. */
  begin(module: string, draft: Draft | null): void {
    if (this.module === module) return;
    this.stop();
    this.module = module;
    this.cells = new Map();
    this.inputs = [];
    this.asked = [];
    this.done = this.total = 0;
    this.variants = [];
    this.add({ name: "saved", module, model: "", version: "", draft: null });
    if (draft !== null) this.add({ name: "draft", module, model: "", version: "", draft: { ...draft } });
  }

  add(variant: Omit<Variant, "id">): void {
    this.last += 1;
    this.variants.push({ id: this.last, ...variant });
  }

  remove(id: number): void {
    this.variants = this.variants.filter((each) => each.id !== id);
  }

  cell(input: CompareInput, variant: Variant): Cell | undefined {
    return this.cells.get(`${input.id} ${variant.id}`);
  }

  async start(inputs: CompareInput[]): Promise<void> {
    if (this.running) return;
    this.stopper = new AbortController();
    const signal = this.stopper.signal;
    this.inputs = inputs;
    this.asked = this.variants.map((each) => ({ ...each }));
    this.cells = new Map();
    this.unjudged = "";
    const repeats = Math.max(1, Math.floor(this.repeats));
    // One round after the other, so that after an early stop all variants have the same number of answers.
    const wanted = Array.from({ length: repeats }, () => inputs.flatMap((input) => this.asked.map((variant) => ({ input, variant })))).flat();
    this.done = 0;
    this.total = wanted.length;
    this.running = true;
    announce(`Comparing: ${plural(this.total, "run")}`);
    let next = 0;
    const worker = async () => {
      while (next < wanted.length && !signal.aborted) {
        const one = wanted[next] as (typeof wanted)[number];
        next += 1;
        const envelope = await this.ask(one.input, one.variant, signal);
        const verdict = signal.aborted ? null : await this.judge(one.input, envelope, signal);
        if (signal.aborted) return;
        const key = `${one.input.id} ${one.variant.id}`;
        const before = this.cells.get(key) ?? { envelopes: [], verdicts: [] };
        this.cells = new Map(this.cells).set(key, { envelopes: [...before.envelopes, envelope], verdicts: [...before.verdicts, verdict] });
        this.done += 1;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    this.running = false;
    announce(signal.aborted ? `Stopped after ${this.done} of ${this.total} runs` : `All ${plural(this.total, "run")} done`);
  }

  private async ask(input: CompareInput, variant: Variant, signal: AbortSignal): Promise<Envelope> {
    const options: RunOptions = { no_cache: true };
    if (app.may("author")) options.record = true;
    if (variant.model !== "") options.model = variant.model;
    if (variant.version !== "") options.version = variant.version;
    if (variant.draft !== null) options.draft = variant.draft;
    for (;;) {
      try {
        return await api.execute(variant.module, withFiles(input.text), options, signal);
      } catch (thrown) {
        const wait = thrown instanceof api.Refused ? thrown.retryAfter : null;
        if (wait === null || signal.aborted) return api.failureOf(thrown);
        this.waits = wait;
        await pause(wait * 1000, signal);
        this.waits = 0;
      }
    }
  }

  /** Asks the server for the verdict on an answer. The page does not interpret expectations. */
  private async judge(input: CompareInput, envelope: Envelope, signal: AbortSignal): Promise<CaseVerdict | null> {
    if (input.case === undefined || input.expect === undefined) return null;
    try {
      const [verdict] = await api.judge(this.module, input.case.set, input.case.id, [envelope], signal);
      return verdict ?? null;
    } catch (thrown) {
      if (!signal.aborted) this.unjudged = api.failureOf(thrown).error.message;
      return null;
    }
  }

  stop(): void {
    this.stopper.abort();
    this.running = false;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

export const comparison = new Comparison();

export interface FieldSpread {
  path: string;
  /** The values with their counts, the most frequent first. */
  values: { value: Json | undefined; times: number }[];
}

/** The differences between the answers of one cell, field by field; fields without differences come last. */
export function spread(envelopes: Envelope[]): FieldSpread[] {
  const good = envelopes.filter((each) => each.ok);
  const seen = good.map((each) => new Map<string, Json>([["/meta/risk", each.meta.risk], ["/meta/confidence", each.meta.confidence], ...leaves(each.data, "/data")]));
  const paths = [...new Set(seen.flatMap((each) => [...each.keys()]))];
  const fields = paths.map((path): FieldSpread => {
    const counts = new Map<string, { value: Json | undefined; times: number }>();
    for (const each of seen) {
      const value = each.get(path);
      const key = each.has(path) ? JSON.stringify(value) : "";
      counts.set(key, { value, times: (counts.get(key)?.times ?? 0) + 1 });
    }
    return { path, values: [...counts.values()].sort((one, other) => other.times - one.times) };
  });
  return fields.sort((one, other) => Number(other.values.length > 1) - Number(one.values.length > 1));
}

/** The median of some figures. */
export function median(figures: number[]): number | null {
  if (figures.length === 0) return null;
  const sorted = figures.toSorted((one, other) => one - other);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[half] as number) : ((sorted[half - 1] as number) + (sorted[half] as number)) / 2;
}

export interface Summary {
  runs: number;
  good: number;
  confidence: number | null;
  ms: number | null;
  cost: number | null;
  tokens: number;
}

/** The cost, duration and verdicts of some envelopes together. */
export function summary(envelopes: Envelope[]): Summary {
  const good = envelopes.filter((each) => each.ok);
  const known = envelopes.map((each) => each.meta.usage?.cost).filter((each) => each !== undefined);
  const sum = good.reduce((all, each) => all + (each.meta.confidence ?? 0), 0);
  return {
    runs: envelopes.length,
    good: good.length,
    confidence: good.length === 0 ? null : sum / good.length,
    ms: median(envelopes.map((each) => each.meta.latency_ms).filter((each) => each !== undefined)),
    cost: known.length === 0 ? null : known.reduce((all: number, each) => all + Number(each), 0),
    tokens: envelopes.reduce((all, each) => all + (each.meta.usage?.input_tokens ?? 0) + (each.meta.usage?.output_tokens ?? 0), 0),
  };
}

/** The part of an envelope that is compared. */
export function comparable(envelope: Envelope): Json {
  if (!envelope.ok) return { ok: false, error: { code: envelope.error.code } };
  return { ok: true, meta: { risk: envelope.meta.risk, confidence: envelope.meta.confidence }, data: envelope.data };
}

/** The number of right answers among some verdicts; `null` if none was judged. */
export function rightness(verdicts: (CaseVerdict | null)[]): { right: number; judged: number } | null {
  const given = verdicts.filter((each) => each !== null);
  return given.length === 0 ? null : { right: given.filter((each) => each.right).length, judged: given.length };
}

/** Converts a case to an input of a comparison. */
export function inputOf({ set, id, input: value, expect }: Case): CompareInput {
  const input: CompareInput = { id: `${set}/${id}`, value, text: pretty(value), case: { set, id } };
  return expect === undefined ? input : { ...input, expect };
}
