// SPDX-License-Identifier: Apache-2.0
// Bundles the extension into dist/extension.cjs; `vscode` is the editor's.
import { copyFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));

await build({
	entryPoints: [join(here, "src/extension.ts")],
	absWorkingDir: here,
	outfile: join(here, "dist/extension.cjs"),
	bundle: true,
	minify: true,
	platform: "node",
	format: "cjs",
	target: ["node18"],
	external: ["vscode"],
	charset: "utf8",
	logLevel: "warning",
});
await copyFile(join(here, "../../LICENSE"), join(here, "LICENSE.txt"));
