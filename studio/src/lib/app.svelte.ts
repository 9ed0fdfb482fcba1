// The state that all pages share: the login, the modules, the models, and the notices, also for screen readers. Loaded once; a page
// that changes something loads it again.

import * as api from "./api";
import type { Failure, Model, ModuleSummary, Role, Session } from "./wire";

class App {
  session = $state<Session | null>(null);
  modules = $state<ModuleSummary[]>([]);
  models = $state<Model[]>([]);
  /** The number of waiting reviews, if there is a queue. */
  open = $state<number | null>(null);
  failure = $state<Failure | null>(null);
  /** The text for a screen reader. */
  said = $state("");
  notices = $state<Notice[]>([]);

  may(role: Role): boolean {
    return this.session !== null && (this.session.roles.includes(role) || this.session.roles.includes("admin"));
  }
}

export interface Notice {
  id: number;
  kind: "good" | "bad";
  text: string;
}

export const app = new App();

/** Tells a screen reader, without a visible notice. */
export function announce(text: string): void {
  // The same text twice must be announced twice.
  app.said = app.said === text ? `${text}\u00a0` : text;
}

let last = 0;
/** The time that a notice of success stays visible. */
const STAYS = 6000;

/** Shows that something was done or failed. A failure stays until it is closed. */
export function notify(kind: Notice["kind"], text: string): void {
  last += 1;
  const id = last;
  app.notices.push({ id, kind, text });
  announce(text);
  if (kind === "good") setTimeout(() => closeNotice(id), STAYS);
}

export function closeNotice(id: number): void {
  app.notices = app.notices.filter((each) => each.id !== id);
}

/** Own modules come before those of the program, each group by name. */
export async function loadModules(): Promise<void> {
  const found = await api.modules();
  app.modules = found.toSorted((one, other) => Number(one.bundled ?? false) - Number(other.bundled ?? false));
}

export async function countOpen(): Promise<void> {
  if (!app.may("review") || !app.session?.has.review) return;
  const page = await api.reviews({ state: "open", limit: 1 }).catch(() => null);
  app.open = page?.open ?? null;
}

/** Loads the state that every page needs. */
export async function load(): Promise<void> {
  try {
    app.failure = null;
    app.session = await api.session();
    const models = app.may("author") ? api.models().catch(() => []) : Promise.resolve([]);
    await loadModules();
    app.models = await models;
    void countOpen();
  } catch (thrown) {
    app.failure = api.failureOf(thrown);
  }
}
