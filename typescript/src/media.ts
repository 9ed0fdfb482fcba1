// Media on their way to a run and back: the bytes go as they are, never as base64. A `Blob` or a file is not read into memory by this
// code at all.

import type { Connection } from "./connection.js";
import { valueOf } from "./wire.js";

/** Media that were uploaded, in the form in which an input names them. */
export interface UploadReference {
  type: "upload_ref";
  upload_id: string;
  media_type: string;
}

/** The content of an upload. */
export type UploadSource = Blob | ArrayBuffer | Uint8Array<ArrayBuffer>;

/** The description of an upload. */
export interface UploadOptions {
  /** Such as `image/png`; that of the `Blob` unless given. */
  mediaType?: string;
  filename?: string;
  /** Digits of the whole, for the server to compare. */
  checksum?: { algorithm: "sha256" | "md5" | "crc32"; value: string };
  signal?: AbortSignal;
}

interface UploadPlace {
  upload_id: string;
  upload_url: string;
  headers: Record<string, string>;
}

/** Sends media ahead of a run. Throws `CognError` if the server does not take them. */
export async function upload(
  connection: Connection,
  source: UploadSource,
  options: UploadOptions = {},
): Promise<UploadReference> {
  const blob = source instanceof Blob ? source : undefined;
  const mediaType = options.mediaType ?? blob?.type ?? "";
  if (mediaType === "") throw new TypeError("an upload needs a `mediaType`, such as `image/png`");
  const named = blob instanceof File ? blob.name : undefined;
  const announcement = {
    filename: options.filename ?? named ?? "upload",
    media_type: mediaType,
    size_bytes: source instanceof Blob ? source.size : source.byteLength,
    ...(options.checksum === undefined ? {} : { checksum: options.checksum }),
  };
  const signal = options.signal === undefined ? {} : { signal: options.signal };
  const announced = await connection.ask(
    "v1/media/upload-url",
    { method: "POST", body: JSON.stringify(announcement), ...signal },
    { "content-type": "application/json" },
  );
  const place = await valueOf<UploadPlace>(announced, "upload_id");
  const sent = await connection.ask(place.upload_url, { method: "PUT", body: source, ...signal }, place.headers);
  await valueOf(sent, "upload_id");
  return { type: "upload_ref", upload_id: place.upload_id, media_type: mediaType };
}

/** The bytes of a medium that an answer gives the address of (`mediaOut: "url"`). Throws `CognError` if there are none. */
export async function file(connection: Connection, url: string, signal?: AbortSignal): Promise<Response> {
  const response = await connection.ask(url, signal === undefined ? {} : { signal });
  if (!response.ok) await valueOf(response, "never");
  return response;
}
