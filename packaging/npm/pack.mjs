// Makes the npm packages out of built programs: node packaging/npm/pack.mjs OUT_DIR PLATFORM=BINARY...
// PLATFORM is Node's name for one, such as `linux-x64`. There is one package per platform, which carries the program, and
// `cognitive-runtime`, which has the launcher and names the others as optional dependencies: npm installs the one that fits.
// A static program runs on every Linux; for one that needs glibc set COGN_NPM_LIBC=glibc.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const [out, ...given] = process.argv.slice(2);
if (out === undefined || given.length === 0 || given.some((pair) => !pair.includes("="))) {
  console.error("usage: node packaging/npm/pack.mjs OUT_DIR PLATFORM=BINARY...");
  process.exit(2);
}

const version = /^version = "([^"]+)"/m.exec(readFileSync(join(root, "Cargo.toml"), "utf8"))[1];
const common = {
  version,
  description: "The runtime for Cognitive Modules: AI tasks with a contract.",
  license: "MIT OR Apache-2.0",
};

/** Writes the files of one package and packs them; prints where the archive is. */
function pack(manifest, files) {
  const folder = mkdtempSync(join(tmpdir(), "cogn-npm-"));
  try {
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest, null, 2) + "\n");
    const licences = ["LICENSE-MIT", "LICENSE-APACHE"].map((name) => [name, join(root, name)]);
    for (const [path, source, mode] of [...licences, ...files]) {
      const target = join(folder, path);
      mkdirSync(dirname(target), { recursive: true });
      copyFileSync(source, target);
      chmodSync(target, mode ?? 0o644);
    }
    mkdirSync(out, { recursive: true });
    const words = ["pack", "--json", "--ignore-scripts", "--pack-destination", resolve(out)];
    // On Windows npm is a script, which only a shell can start.
    const how = { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], shell: process.platform === "win32" };
    const said = execFileSync("npm", words, how);
    console.log(join(resolve(out), JSON.parse(said)[0].filename));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const optionalDependencies = {};
for (const pair of given) {
  const [platform, binary] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
  const [os, cpu] = platform.split("-");
  const name = `@cognitive-runtime/${platform}`;
  optionalDependencies[name] = version;
  const program = os === "win32" ? "bin/cogn.exe" : "bin/cogn";
  const libc = os === "linux" && process.env.COGN_NPM_LIBC ? { libc: [process.env.COGN_NPM_LIBC] } : {};
  pack({ name, ...common, os: [os], cpu: [cpu], ...libc, files: ["bin"] }, [[program, binary, 0o755]]);
}
pack(
  {
    name: "cognitive-runtime",
    ...common,
    bin: { cogn: "launch.js", cog: "launch.js", "cognitive-runtime": "launch.js" },
    engines: { node: ">=18" },
    files: ["launch.js"],
    optionalDependencies,
  },
  [
    ["launch.js", join(here, "launch.js"), 0o755],
    ["README.md", join(here, "README.md")],
  ],
);
