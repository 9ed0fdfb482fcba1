// Reads a JSON Schema for a form: follows references, merges `allOf`, and selects the kind of each field. Validates no value; the
// server does.

import { at, isObject } from "./json";
import type { Json, JsonObject, Schema } from "./wire";

/** A schema with its references resolved. */
export type Shape = { [keyword: string]: unknown };

/** The maximum number of references in a row. */
const LONGEST_CHAIN = 32;

/** Resolves `$ref` and `allOf` at the top of a schema. */
export function resolved(schema: Schema | undefined, root: JsonObject): Shape {
  let here: Shape = isObject(schema) ? schema : {};
  for (let step = 0; step < LONGEST_CHAIN; step += 1) {
    const reference = here["$ref"];
    if (typeof reference === "string") {
      const target = at(root, reference.replace(/^[^#]*#/, ""));
      const { $ref: _, ...beside } = here;
      here = { ...(isObject(target) ? target : {}), ...beside };
    } else if (Array.isArray(here["allOf"])) {
      const { allOf, ...rest } = here;
      here = (allOf as Schema[]).map((each) => resolved(each, root)).reduce(joined, rest);
    } else {
      return here;
    }
  }
  return here;
}

function joined(one: Shape, other: Shape): Shape {
  const both = { ...one, ...other };
  for (const name of ["properties", "patternProperties"]) {
    if (isObject(one[name]) && isObject(other[name])) both[name] = { ...one[name], ...other[name] };
  }
  if (Array.isArray(one["required"]) && Array.isArray(other["required"])) {
    both["required"] = [...new Set([...one["required"], ...other["required"]])];
  }
  return both;
}

export type Kind =
  | "media" | "media-list" | "enum" | "open-enum" | "choice" | "object" | "list" | "text" | "number" | "boolean" | "const" | "json";

/** Returns the kind of field for a schema. */
export function kindOf(shape: Shape, root: JsonObject): Kind {
  if ("const" in shape) return "const";
  if (isMedia(shape, root)) return "media";
  if (Array.isArray(shape["enum"])) return "enum";
  const options = choices(shape, root);
  if (options.length > 0) {
    if (openEnum(shape, root) !== null) return "open-enum";
    // Branches that only add conditions to an object do not make it a choice.
    const adds = options.every((each) => typeOf(each) === "" && !("enum" in each) && !("const" in each));
    if (!(adds && isObject(shape["properties"]))) return "choice";
  }
  switch (typeOf(shape)) {
    case "object":
      return "object";
    case "array":
      return isMedia(resolved(shape["items"] as Schema, root), root) ? "media-list" : "list";
    case "string":
      return "text";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    default:
      return "json";
  }
}

/** The single type of a schema; `""` if it allows several. */
export function typeOf(shape: Shape): string {
  const type = shape["type"];
  if (typeof type === "string") return type;
  if (Array.isArray(type)) {
    const others = type.filter((each) => each !== "null");
    return others.length === 1 ? String(others[0]) : "";
  }
  if (isObject(shape["properties"])) return "object";
  return "items" in shape ? "array" : "";
}

/** The branches of `oneOf` or `anyOf`. */
export function choices(shape: Shape, root: JsonObject): Shape[] {
  const list = shape["oneOf"] ?? shape["anyOf"];
  if (!Array.isArray(list)) return [];
  const { oneOf: _, anyOf: __, title: ___, description: ____, ...around } = shape;
  return (list as Schema[]).map((each) => joined(around, resolved(each, root)));
}

export interface OpenEnum {
  values: Json[];
  /** The member that holds an unlisted value. */
  tag: string;
  custom: Shape;
}

/** An extensible enum: listed values, or an object with a tag and a reason. */
export function openEnum(shape: Shape, root: JsonObject): OpenEnum | null {
  const options = choices(shape, root);
  if (options.length !== 2) return null;
  const listed = options.find((each) => Array.isArray(each["enum"]));
  const custom = options.find((each) => isObject(each["properties"]) && "reason" in each["properties"]);
  if (!listed || !custom || listed === custom) return null;
  const members = Object.keys(custom["properties"] as object).filter((name) => name !== "reason");
  const tag = members[0];
  return tag !== undefined && members.length === 1 ? { values: listed["enum"] as Json[], tag, custom } : null;
}

/** Returns whether a schema describes media: an object with a `type` of `url`, `base64` or the like. */
export function isMedia(shape: Shape, root: JsonObject): boolean {
  const types = new Set<unknown>();
  const collect = (each: Shape) => {
    const properties = each["properties"];
    const type = isObject(properties) ? properties["type"] : undefined;
    if (!isObject(type)) return;
    if ("const" in type) types.add(type["const"]);
    if (Array.isArray(type["enum"])) type["enum"].forEach((value) => types.add(value));
  };
  collect(shape);
  choices(shape, root).forEach(collect);
  return types.has("base64") || (types.has("url") && types.has("file"));
}

/** The label of a field: its title, else its name as words. */
export function labelOf(shape: Shape, name: string): string {
  const title = shape["title"];
  return typeof title === "string" && title !== "" ? title : name;
}

export function textOf(shape: Shape, keyword: string): string {
  const value = shape[keyword];
  return typeof value === "string" ? value : "";
}

export function numberOf(shape: Shape, keyword: string): number | null {
  const value = shape[keyword];
  return typeof value === "number" ? value : null;
}

export function isRequired(shape: Shape, name: string): boolean {
  return Array.isArray(shape["required"]) && shape["required"].includes(name);
}

/** The initial value of a field. Only required members are filled in. */
export function beginning(schema: Schema | undefined, root: JsonObject, depth = 0): Json {
  const shape = resolved(schema, root);
  if ("default" in shape) return structuredClone(shape["default"] as Json);
  if ("const" in shape) return shape["const"] as Json;
  switch (kindOf(shape, root)) {
    case "object": {
      const made: JsonObject = {};
      const properties = isObject(shape["properties"]) ? shape["properties"] : {};
      for (const [name, each] of Object.entries(properties)) {
        if (isRequired(shape, name) && depth < 8) made[name] = beginning(each as Schema, root, depth + 1);
      }
      return made;
    }
    case "list":
    case "media-list": {
      const least = kindOf(shape, root) === "list" ? Math.min(numberOf(shape, "minItems") ?? 0, 10) : 0;
      return depth < 8 ? Array.from({ length: least }, () => beginning(shape["items"] as Schema, root, depth + 1)) : [];
    }
    case "enum":
      return (shape["enum"] as Json[])[0] ?? null;
    case "open-enum":
      return openEnum(shape, root)?.values[0] ?? null;
    case "choice":
      return depth < 8 ? beginning(choices(shape, root)[0] as Schema, root, depth + 1) : null;
    case "boolean":
      return false;
    case "number":
      return Math.max(0, numberOf(shape, "minimum") ?? 0);
    case "text":
      return "";
    default:
      return typeOf(shape) === "object" || kindOf(shape, root) === "media" ? {} : null;
  }
}

/** The first branch that a value matches, else the first of all. */
export function branchOf(options: Shape[], value: Json, root: JsonObject): number {
  const fits = options.findIndex((shape) => looksLike(shape, value, root));
  return Math.max(0, fits);
}

function looksLike(shape: Shape, value: Json, root: JsonObject): boolean {
  if ("const" in shape) return shape["const"] === value;
  if (Array.isArray(shape["enum"])) return shape["enum"].includes(value as never);
  const type = shape["type"] ?? typeOf(shape);
  const types = Array.isArray(type) ? type : [type];
  const own = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  if (!types.includes("") && !types.includes(own) && !(own === "number" && types.includes("integer"))) return false;
  if (!isObject(value)) return true;
  const properties = isObject(shape["properties"]) ? shape["properties"] : {};
  const needed = Array.isArray(shape["required"]) ? shape["required"] : [];
  if (!needed.every((name) => Object.hasOwn(value, String(name)))) return false;
  return Object.entries(properties).every(([name, each]) => {
    const inner = resolved(each as Schema, root);
    return !("const" in inner) || !Object.hasOwn(value, name) || inner["const"] === value[name];
  });
}
