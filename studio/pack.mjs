// Packs the output of Vite into `dist`: every file compressed, with the same bytes on every machine, and `assets.rs`, which embeds
// them in the program. The test compares the contents, because another version of zlib may compress differently.

import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";

const TYPES = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};
/** The maximum compressed size of all files together. */
const MOST = 250 * 1024;

/** Compressed without time, name and system. */
function packed(bytes) {
  const gzip = gzipSync(bytes, { level: 9 });
  gzip.fill(0, 4, 8);
  gzip[9] = 255;
  return gzip;
}

const [from, to] = process.argv.slice(2);
const files = readdirSync(from, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(from.length + 1))
  .sort();
rmSync(to, { recursive: true, force: true });
const lines = [];
let total = 0;
for (const file of files) {
  const type = TYPES[file.split(".").pop()];
  if (type === undefined) throw new Error(`no type is known of: ${file}`);
  const gzip = packed(readFileSync(join(from, file)));
  total += gzip.length;
  mkdirSync(dirname(join(to, file)), { recursive: true });
  writeFileSync(join(to, `${file}.gz`), gzip);
  lines.push(`    ("${file}", "${type}", include_bytes!("${file}.gz")),\n`);
}
if (total > MOST) throw new Error(`all files together take ${total} bytes, more than ${MOST}`);
const head = "// Every file of the page: its path, its type, its bytes in gzip. Written by `studio/build`; do not edit.\n";
writeFileSync(join(to, "assets.rs"), `${head}&[\n${lines.join("")}]\n`);
console.log(`${files.length} files, ${total} bytes compressed`);
