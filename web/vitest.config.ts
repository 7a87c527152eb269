// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

export default defineConfig({
	esbuild: { jsx: "automatic", jsxImportSource: "preact" },
	test: { testTimeout: 120_000, hookTimeout: 120_000, fileParallelism: false, expect: { poll: { timeout: 30_000 } } },
});
