// Transfers media to a run and back: as bytes, never as base64. This code never reads a `Blob` or a file into memory.

import type { Connection } from "./connection.js";
import { valueOf } from "./wire.js";

/** Uploaded media, in the form in which an input refers to them. */
export interface UploadReference {
  type: "upload_ref";
  upload_id: string;
  media_type: string;
}

/** The content of an upload. */
export type UploadSource = Blob | ArrayBuffer | Uint8Array<ArrayBuffer>;

/** The description of an upload. */
export interface UploadOptions {
  /** The media type, such as `image/png`; by default that of the `Blob`. */
  mediaType?: string;
  filename?: string;
  /** A checksum of all bytes, which the server compares. */
  checksum?: { algorithm: "sha256" | "md5" | "crc32"; value: string };
  signal?: AbortSignal;
}

interface UploadPlace {
  upload_id: string;
  upload_url: string;
  headers: Record<string, string>;
}

/** Uploads media before a run. Throws `CognError` if the server refuses them. */
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

/** Returns the bytes of a medium whose address is in an answer (`mediaOut: "url"`). Throws `CognError` if there are none. */
export async function file(connection: Connection, url: string, signal?: AbortSignal): Promise<Response> {
  const response = await connection.ask(url, signal === undefined ? {} : { signal });
  if (!response.ok) await valueOf(response, "never");
  return response;
}
