// The current place in the page: `#/page/part?name=value`. The address is the state, so every view can be linked and the browser's
// buttons work. Typed text is only in the address if the user requests a share link.

export const PAGES = ["run", "compare", "modules", "runs", "review"] as const;
export type Page = (typeof PAGES)[number];

class Route {
  page = $state<Page>("run");
  part = $state("");
  query = $state<Record<string, string>>({});
}

export const route = new Route();
/** The last address that was read, because the browser reports one step with two events. */
let seen: string | null = null;

function read(): void {
  if (location.hash === seen) return;
  seen = location.hash;
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...part] = path.split("/");
  const decoded = part.map((each) => decode(each)).join("/");
  const known = PAGES.find((each) => each === page);
  // The part comes first, because a new page reads it at once.
  route.part = known === undefined ? "" : decoded;
  route.query = Object.fromEntries(new URLSearchParams(query));
  route.page = known ?? "run";
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the address of a place in the page. */
export function linkTo(page: Page, part = "", query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  const place = part === "" ? page : `${page}/${encodeURIComponent(part)}`;
  return `#/${place}${search === "" ? "" : `?${search}`}`;
}

/** Goes to a place; `replace` adds no entry to the history. */
export function go(page: Page, part = "", query: Record<string, string> = {}, replace = false): void {
  const address = linkTo(page, part, query);
  if (location.hash === address) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  read();
}

addEventListener("hashchange", read);
addEventListener("popstate", read);
read();
