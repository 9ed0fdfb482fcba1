// The state of a trial: a module, its input, drafts of its files, and the current run. Pages share it: a draft of one page can be
// run on another, and every graph shows the progress.

import * as api from "./api";
import { announce, app } from "./app.svelte";
import { duration, riskWord, share } from "./format";
import { InputText } from "./input.svelte";
import { isObject, parsed } from "./json";
import { beginning } from "./schema";
import { stream } from "./stream";
import type { Draft, Envelope, Failure, Json, JsonObject, ModuleDescription, Plan, RunOptions, Schema } from "./wire";

export type PartState = "waiting" | "started" | "finished" | "failed" | "skipped" | "cancelled";

class Workbench {
  module = $state("");
  description = $state.raw<ModuleDescription | null>(null);
  plan = $state.raw<Plan | null>(null);
  failure = $state.raw<Failure | null>(null);
  input = new InputText();
  model = $state("");
  streaming = $state(true);
  /** Changed and unsaved files, by module. */
  drafts = $state<Record<string, Draft>>({});

  running = $state(false);
  percent = $state(0);
  stage = $state("");
  live = $state.raw<JsonObject | null>(null);
  envelope = $state.raw<Envelope | null>(null);
  /** The progress of each part of a composition. */
  parts = $state<Record<string, PartState>>({});
  private stopper = new AbortController();
  private inputs: Record<string, string> = {};
  /** The input of the envelope, as it was sent. */
  asked = $state.raw<{ id: string; text: string; value: Json } | null>(null);
  /** Counts the requests; only the result of the last one is used. */
  private choices = 0;

  /** The input contract. It includes the context of the manifest if the schema does not describe it. */
  get schema(): Schema {
    const section = this.description?.schema["input"];
    return isObject(section) ? withContext(section, this.description?.manifest ?? {}) : {};
  }

  get root(): JsonObject {
    return this.description?.schema ?? {};
  }

  /** The changed files that a run uses: those that belong to the module. */
  get draft(): Draft | null {
    return runnable(this.drafts[this.module]);
  }

  /** The file types of a file chooser. */
  get accept(): string {
    const modalities = this.description?.manifest["modalities"];
    const kinds = isObject(modalities) && Array.isArray(modalities["input"]) ? modalities["input"] : [];
    return kinds.filter((each) => each !== "text").map((each) => (each === "document" ? "application/pdf" : `${String(each)}/*`)).join(",");
  }

  /** Selects another module. The input of the previous one is restored when it is selected again. */
  async choose(name: string, input?: string): Promise<void> {
    // A module that is loaded or loading is not requested again, because new input would be lost.
    if (this.module === name && this.failure === null && input === undefined) return;
    if (this.description !== null) this.inputs[this.module] = this.input.text;
    this.stop();
    this.choices += 1;
    const mine = this.choices;
    this.module = name;
    this.description = null;
    this.plan = null;
    this.failure = null;
    this.envelope = null;
    this.live = null;
    this.parts = {};
    try {
      const [description, plan] = await Promise.all([api.module(name), app.may("author") ? api.plan(name).catch(() => null) : null]);
      if (this.choices !== mine) return;
      this.description = description;
      this.plan = plan !== null && plan.pattern !== "none" ? plan : null;
      this.input.setText(input ?? this.inputs[name] ?? "");
      if (this.input.text.trim() === "") this.input.setValue(beginning(this.schema, this.root));
    } catch (thrown) {
      if (this.choices !== mine) return;
      this.failure = api.failureOf(thrown);
      // A broken module can still be run as the draft that repairs it.
      const mended = this.draft === null ? null : await described(name, this.draft);
      if (this.choices !== mine || mended === null) return;
      this.description = mended;
      this.input.setText(input ?? this.inputs[name] ?? "");
      if (this.input.text.trim() === "") this.input.setValue(beginning(this.schema, this.root));
    }
  }

  /** Changes a file for later runs; `null` reverts the change. */
  setDraft(file: string, text: string | null, module = this.module): void {
    const { [file]: _, ...rest } = this.drafts[module] ?? {};
    this.drafts[module] = text === null ? rest : { ...rest, [file]: text };
  }

  options(): RunOptions {
    const options: RunOptions = { receipt: true };
    if (this.model !== "") options.model = this.model;
    if (this.draft !== null) options.draft = this.draft;
    return options;
  }

  async run(): Promise<void> {
    if (this.running || this.description === null) return;
    this.stopper = new AbortController();
    const signal = this.stopper.signal;
    this.running = true;
    this.envelope = null;
    this.asked = { id: "input", text: this.input.text, value: this.input.value ?? null };
    this.live = null;
    this.percent = 0;
    this.stage = "asking";
    this.parts = Object.fromEntries(this.plan?.modules.slice(1).map((each) => [each.name, "waiting" as PartState]) ?? []);
    announce("Running");
    let frame = 0;
    let grown: JsonObject | null = null;
    const heard = {
      data: (data: JsonObject) => {
        grown = data;
        // At most once per frame.
        frame ||= requestAnimationFrame(() => {
          frame = 0;
          if (this.running) this.live = grown;
        });
      },
      progress: (percent: number, stage: string, message: string) => {
        this.percent = percent;
        this.stage = message === "" ? stage : message;
        if (stage === "part") this.heardPart(message);
      },
    };
    try {
      const text = this.input.whole;
      this.envelope = this.streaming
        ? await stream(this.module, text, this.options(), heard, signal)
        : await api.execute(this.module, text, this.options(), signal);
    } catch (thrown) {
      this.envelope = api.failureOf(thrown);
    } finally {
      this.running = false;
      cancelAnimationFrame(frame);
    }
    announce(spoken(this.envelope));
  }

  stop(): void {
    if (this.running) this.stopper.abort();
  }

  private heardPart(message: string): void {
    const space = message.lastIndexOf(" ");
    const path = message.slice(0, space).split(/[/>.]/);
    const name = path.at(-1)?.trim() ?? "";
    if (name !== "") this.parts[name] = message.slice(space + 1) as PartState;
  }
}

/** Describes a module from its draft if the server cannot; `null` if the contract of the draft is unreadable, too. */
async function described(name: string, draft: Draft): Promise<ModuleDescription | null> {
  const saved = await api.files(name).catch(() => null);
  const text = draft["schema.json"] ?? saved?.files.find((each) => each.path === "schema.json")?.text ?? "";
  const schema = parsed(text);
  return "value" in schema && isObject(schema.value) ? { name, format: "", manifest: {}, schema: schema.value, warnings: [] } : null;
}

/** Files that can replace those on disk for a run. */
const DRAFTED = ["prompt.md", "schema.json", "module.yaml"];

/** The changed files that a run can use; `null` if there are none. */
export function runnable(changed: Draft | undefined): Draft | null {
  const usable = Object.entries(changed ?? {}).filter(([file]) => DRAFTED.includes(file));
  return usable.length > 0 ? Object.fromEntries(usable) : null;
}

/** The text for a screen reader at the end of a run. */
export function spoken(envelope: Envelope): string {
  const took = envelope.meta.latency_ms === undefined ? "" : `, after ${duration(envelope.meta.latency_ms)}`;
  if (!envelope.ok) return `Failed: ${envelope.error.message}${took}`;
  return `Done: ${riskWord(envelope.meta.risk)} risk, confidence ${share(envelope.meta.confidence)}${took}. ${envelope.meta.explain}`;
}

function withContext(section: JsonObject, manifest: JsonObject): JsonObject {
  const context = manifest["context"];
  const accepts = isObject(context) && Array.isArray(context["accepts"]) ? context["accepts"] : [];
  const properties = isObject(section["properties"]) ? section["properties"] : {};
  if (accepts.length === 0 || "_context" in properties) return section;
  const types: JsonObject = {};
  for (const each of accepts as Json[]) {
    if (isObject(each) && typeof each["type"] === "string") types[each["type"]] = { description: `Context of the type ${each["type"]}` };
  }
  const described = { type: "object", description: "Context of earlier turns", properties: types };
  return { ...section, properties: { ...properties, _context: described } };
}

export const bench = new Workbench();
