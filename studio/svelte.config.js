// Settings for editors and `svelte-check`: TypeScript in components.
import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

export default { preprocess: vitePreprocess() };
