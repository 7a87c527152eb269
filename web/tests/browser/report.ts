// SPDX-License-Identifier: Apache-2.0
// Pages of the built viewer with replies inside, as a one-file report has them.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
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
	const page = await readFile(join(dist, "report.html"), "utf8");
	const inside = replies
		.map(({ path, query, reply }) => {
			const packed = gzipSync(JSON.stringify(reply)).toString("base64");
			return `<script type="application/gzip" data-reply="${address(path, query)}">${packed}</script>`;
		})
		.join("\n");
	await writeFile(file, page.replace("<!--replies-->", () => inside));
	return pathToFileURL(file).href;
}
