// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vite";

export default defineConfig({
	base: "./",
	oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
	build: { target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0, emptyOutDir: true, chunkSizeWarningLimit: 1000 },
	server: { proxy: { "/v1": "http://127.0.0.1:7777" } },
});
