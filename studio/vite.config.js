// The build of the page: relative addresses, hashed names and no inline code. The page therefore works below any path and under the
// strictest policy.

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

/** A server for development: `COGN_STUDIO_SERVER=http://127.0.0.1:8000 npm run dev`. */
const server = process.env["COGN_STUDIO_SERVER"] ?? "http://127.0.0.1:8000";

export default defineConfig({
  base: "./",
  plugins: [
    svelte({
      // Class names derived from content are the same in every checkout.
      compilerOptions: { cssHash: ({ hash, css }) => `s${hash(css)}` },
    }),
  ],
  build: {
    target: "es2022",
    cssTarget: ["chrome125", "firefox125", "safari17.5"],
    outDir: process.env["COGN_STUDIO_OUT"] ?? "out",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { checks: { bundlerTimings: false, pluginTimings: false } },
  },
  server: { proxy: { "/v1": server, "/api": server } },
});
