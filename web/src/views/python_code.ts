// SPDX-License-Identifier: Apache-2.0
// Python text divided into pieces of one kind each, line by line. The library writes HTML; it is taken apart again, and texts become
// text nodes, so that no byte of a file is markup.
import hljs from "highlight.js/lib/core";
import python from "highlight.js/lib/languages/python";

hljs.registerLanguage("python", python);

export interface Piece {
	text: string;
	/** "keyword", "string", …; empty: plain. */
	kind: string;
}

/** Of a longer text it would be felt. */
const LONGEST = 1_000_000;

const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

/** The pieces of each line; undefined for a text that stays plain. */
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
