// Helpers for JSON values: places, equality, differences and formatting. Values are never changed in place.

import type { Change, Json, JsonObject } from "./wire";

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The JSON pointer of a member of a place. */
export function below(path: string, member: string | number): string {
  return `${path}/${String(member).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** The member names of a JSON pointer. */
export function names(pointer: string): string[] {
  if (pointer === "") return [];
  return pointer.slice(1).split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The value at a JSON pointer. */
export function at(value: unknown, pointer: string): unknown {
  let here: unknown = value;
  for (const name of names(pointer)) {
    if (Array.isArray(here)) here = here[Number(name)];
    else if (isObject(here) && Object.hasOwn(here, name)) here = here[name];
    else return undefined;
  }
  return here;
}

/** The maximum depth that a stream may reach in its data. */
const DEEPEST = 64;

/** Appends a text to the data of a stream, at a dotted path such as `data.items.0.name`. */
export function assignAt(data: JsonObject, field: string, text: string): JsonObject {
  const path = field.split(".").slice(1);
  if (path.length === 0 || path.length > DEEPEST) return data;
  const grown = (here: Json | undefined, depth: number): Json => {
    const name = path[depth];
    if (name === undefined) return (typeof here === "string" ? here : "") + text;
    if (Array.isArray(here)) {
      const index = Number(name);
      if (!Number.isInteger(index) || index < 0 || index > here.length) return here;
      const item = grown(here[index], depth + 1);
      return index < here.length ? here.with(index, item) : [...here, item];
    }
    const object = isObject(here) ? here : {};
    return { ...object, [name]: grown(Object.hasOwn(object, name) ? object[name] : undefined, depth + 1) };
  };
  const first = path[0] as string;
  return { ...data, [first]: grown(data[first], 1) };
}

/** Returns whether two values are equal, regardless of the order of members. */
export function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((each, index) => same(each, other[index]));
  }
  if (!isObject(one) || !isObject(other)) return false;
  const members = Object.keys(one);
  if (members.length !== Object.keys(other).length) return false;
  return members.every((name) => Object.hasOwn(other, name) && same(one[name], other[name]));
}

/** The differences between two values, in the order of the first one. */
export function differences(before: Json | undefined, after: Json | undefined, path = ""): Change[] {
  if (same(before, after)) return [];
  if (isObject(before) && isObject(after)) {
    const members = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return members.flatMap((name) => differences(own(before, name), own(after, name), below(path, name)));
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const longest = Math.max(before.length, after.length);
    return Array.from({ length: longest }, (_, index) => differences(before[index], after[index], below(path, index))).flat();
  }
  const change: Change = { path };
  if (before !== undefined) change.before = before;
  if (after !== undefined) change.after = after;
  return [change];
}

function own(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** All values without members, with their places. */
export function leaves(value: Json, path = ""): [string, Json][] {
  if (isObject(value) && Object.keys(value).length > 0) {
    return Object.entries(value).flatMap(([name, each]) => leaves(each, below(path, name)));
  }
  if (Array.isArray(value) && value.length > 0) return value.flatMap((each, index) => leaves(each, below(path, index)));
  return [[path, value]];
}

/** Formats a value for people: short lists and objects on one line. */
export function pretty(value: unknown, width = 72): string {
  const written = (each: unknown, indent: string): string => {
    const short = JSON.stringify(each) ?? "null";
    if (typeof each !== "object" || each === null || short.length + indent.length <= width) return spaced(each, short);
    const inner = `${indent}  `;
    if (Array.isArray(each)) return `[\n${each.map((item) => inner + written(item, inner)).join(",\n")}\n${indent}]`;
    const members = Object.entries(each).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${written(item, inner)}`);
    return `{\n${members.join(",\n")}\n${indent}}`;
  };
  return written(value, "");
}

/** Formats a value on one line, with a space between its members. */
function spaced(value: unknown, short: string): string {
  if (typeof value !== "object" || value === null) return short;
  if (Array.isArray(value)) return `[${value.map((each) => spaced(each, JSON.stringify(each) ?? "null")).join(", ")}]`;
  const members = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${spaced(each, JSON.stringify(each) ?? "null")}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

/** Parses a text as JSON, or returns the reason why it is invalid. */
export function parsed(text: string): { value: Json } | { problem: string } {
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** A short form of a value, for cells of tables. */
export function brief(value: unknown, most = 80): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
