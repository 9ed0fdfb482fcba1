// What the fields of one form share: the whole schema, where references lead, and what is wrong at which place.

import { getContext, setContext } from "svelte";
import type { Json, JsonObject } from "../lib/wire";

export interface Form {
  /** The document that references are relative to. */
  readonly root: JsonObject;
  /** What is wrong, by JSON pointer. */
  readonly errors: ReadonlyMap<string, string[]>;
  /** Begins the ids of all fields. */
  readonly prefix: string;
  /** What a media field takes, such as `image/*`. */
  readonly accept: string;
}

const NAME = Symbol("form");
export const provideForm = (form: Form) => setContext(NAME, form);
export const useForm = () => getContext<Form>(NAME);

/** What every field is given. */
export interface FieldProps {
  shape: { [keyword: string]: unknown };
  value: Json | undefined;
  path: string;
  id: string;
  /** Ids of what describes the field. */
  about: string | undefined;
  label: string;
  required: boolean;
  change: (value: Json | undefined) => void;
}

/** The id of the field at a place. */
export function idOf(prefix: string, path: string): string {
  return `${prefix}${path.replace(/[^\w/-]/g, (character) => `.${character.codePointAt(0)?.toString(16)}.`)}`;
}
