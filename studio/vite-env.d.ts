// Types of what Vite puts in the place of imports.
/// <reference types="svelte" />
/// <reference types="vite/client" />
