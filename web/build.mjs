// SPDX-License-Identifier: Apache-2.0
// Builds the viewer: `node build.mjs [FOLDER]` leaves index.html, app.js, app.css and report.html there (dist/ without FOLDER).
// index.html names the two with the hash of what is in them, so a server may let browsers keep them for ever.
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "dist"));

const result = await build({
	entryPoints: { app: join(here, "src/main.tsx") },
	absWorkingDir: here,
	outdir: out,
	bundle: true,
	minify: true,
	write: false,
	format: "iife",
	target: ["es2022"],
	jsx: "automatic",
	jsxImportSource: "preact",
	charset: "utf8",
	legalComments: "none",
	logLevel: "warning",
	metafile: true,
});

// The licences of the packages in it require their notices.
const packages = [...new Set(Object.keys(result.metafile.inputs).map((path) => /(?:^|.*\/)node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]))];
const notices = await Promise.all(
	packages.filter(Boolean).sort().map(async (name) => `${name}\n\n${await readFile(join(here, "node_modules", name, "LICENSE"), "utf8")}`),
);
const banner = `/*! This file has parts of the following packages.\n\n${notices.join("\n\n").replaceAll("*/", "* /")}*/\n`;
const files = result.outputFiles.map(({ path, text }) => ({ path, text: banner + text }));

await mkdir(out, { recursive: true });
let page = await readFile(join(here, "src/index.html"), "utf8");
for (const file of files) {
	const name = file.path.endsWith(".css") ? "app.css" : "app.js";
	const id = createHash("sha256").update(file.text).digest("hex").slice(0, 16);
	page = page.replaceAll(`"${name}"`, `"${name}?v=${id}"`);
	await writeFile(join(out, name), file.text);
}
await writeFile(join(out, "index.html"), page);

// report.html has both inside, and a mark where `opstrobe report` puts the replies. Nothing else may run in it.
const text = (suffix) => files.find((file) => file.path.endsWith(suffix)).text;
const script = text(".js").replaceAll("</script", "<\\/script");
const allowed = createHash("sha256").update(script).digest("base64");
const policy = `default-src 'none'; script-src 'sha256-${allowed}'; style-src 'unsafe-inline'; img-src data: blob:`;
const report = (await readFile(join(here, "src/index.html"), "utf8"))
	.replace('<meta charset="utf-8">', () => `<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${policy}">`)
	.replace('<link rel="stylesheet" href="app.css">', () => `<style>${text(".css")}</style>`)
	.replace('<script defer src="app.js"></script>\n', "")
	.replace("</body>", () => `<!--replies-->\n<script>${script}</script>\n</body>`);
await writeFile(join(out, "report.html"), report);
