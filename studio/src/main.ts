// The entry point of the page: styles, then the app.

import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/pieces.css";
import { mount } from "svelte";
import App from "./App.svelte";
import "./lib/theme.svelte";

mount(App, { target: document.body });
