// SPDX-License-Identifier: Apache-2.0
//
// Divides Python text into pieces of one kind each, line by line. The library writes HTML, which is parsed again, and
// texts become text nodes, so that no part of a file becomes markup.
import hljs from "highlight.js/lib/core";
import python from "highlight.js/lib/languages/python";

hljs.registerLanguage("python", python);

export interface Piece {
	text: string;
	/** "keyword", "string", …; empty: plain. */
	kind: string;
}

/** For longer texts the delay would be noticeable. */
const LONGEST = 1_000_000;

const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

/** Returns the pieces of each line; undefined for a text that is shown plain. */
export function pythonLines(text: string): Piece[][] | undefined {
	if (text.length > LONGEST) return undefined;
	const { value } = hljs.highlight(text, { language: "python", ignoreIllegals: true });
	const lines: Piece[][] = [[]];
	const kinds: string[] = [];
	for (const [, opened, closed, plain = ""] of value.matchAll(/<span class="hljs-([\w-]+)[^"]*">|(<\/span>)|([^<]+)/g)) {
		if (opened !== undefined) kinds.push(opened);
		else if (closed !== undefined) kinds.pop();
		else addText(lines, plain.replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity]!), kinds[kinds.length - 1] ?? "");
	}
	return lines;
}

function addText(lines: Piece[][], text: string, kind: string): void {
	text.split(/\r?\n/).forEach((part, i) => {
		if (i > 0) lines.push([]);
		if (part !== "") lines[lines.length - 1]!.push({ text: part, kind });
	});
}
