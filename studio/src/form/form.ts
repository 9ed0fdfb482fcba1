// The context that the fields of one form share: the whole schema, the target of references, and the errors by place.

import { getContext, setContext } from "svelte";
import type { Json, JsonObject } from "../lib/wire";

export interface Form {
  /** The document that references point into. */
  readonly root: JsonObject;
  /** The errors, by JSON pointer. */
  readonly errors: ReadonlyMap<string, string[]>;
  /** The prefix of the ids of all fields. */
  readonly prefix: string;
  /** The media types that a field accepts, such as `image/*`. */
  readonly accept: string;
}

const NAME = Symbol("form");
export const provideForm = (form: Form) => setContext(NAME, form);
export const useForm = () => getContext<Form>(NAME);

/** The properties of every field. */
export interface FieldProps {
  shape: { [keyword: string]: unknown };
  value: Json | undefined;
  path: string;
  id: string;
  /** The ids of the elements that describe the field. */
  about: string | undefined;
  label: string;
  required: boolean;
  change: (value: Json | undefined) => void;
}

/** The id of the field at a place. */
export function idOf(prefix: string, path: string): string {
  return `${prefix}${path.replace(/[^\w/-]/g, (character) => `.${character.codePointAt(0)?.toString(16)}.`)}`;
}
