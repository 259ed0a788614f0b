// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app.tsx";

const root = document.getElementById("app");
if (root) render(<App />, root);
