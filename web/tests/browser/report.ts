// SPDX-License-Identifier: Apache-2.0
// Pages of the built viewer with replies inside, as a one-file report has them.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { address, type Query } from "../../src/data/source";
import { root } from "./browser";

export interface Recorded {
	path: string;
	query?: Query;
	reply: unknown;
}

/** Writes the page to FILE and returns its address. */
export async function writeReport(file: string, replies: Recorded[]): Promise<string> {
	const dist = join(root, "web/dist");
	const [page, script, style] = await Promise.all(
		["index.html", "app.js", "app.css"].map((name) => readFile(join(dist, name), "utf8")),
	);
	const inside = replies
		.map(({ path, query, reply }) => {
			const text = JSON.stringify(reply).replaceAll("<", "\\u003c");
			return `<script type="application/json" data-reply="${address(path, query)}">${text}</script>`;
		})
		.join("\n");
	const html = page!
		.replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${style!}</style>`)
		.replace(/<script defer[^>]*><\/script>/, "")
		.replace("</body>", () => `${inside}<script>${script!.replaceAll("</script", "<\\/script")}</script></body>`);
	await writeFile(file, html);
	return pathToFileURL(file).href;
}
