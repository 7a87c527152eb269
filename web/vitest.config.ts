// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

export default defineConfig({
	esbuild: { jsx: "automatic", jsxImportSource: "preact" },
	// A browser on a busy machine may lose a beat: CI tries again, and says so next to the test's name.
	test: { retry: process.env.CI ? 2 : 0, testTimeout: 120_000, hookTimeout: 120_000, fileParallelism: false, expect: { poll: { timeout: 30_000 } } },
});
