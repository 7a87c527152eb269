// SPDX-License-Identifier: Apache-2.0
//
// One thing has one name: what the glossary lists under "not" is not in the texts of the page. The test of commands and tables is
// tests/cli/test_words.py.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";

const web = join(import.meta.dirname, "../..");

/** Returns the second column of the glossary's table of words. */
function retired(): string[] {
	const glossary = readFileSync(join(web, "../docs/reference/glossary.md"), "utf8");
	const table = glossary.split("| use | not |\n|---|---|\n")[1] ?? "";
	const rows = table.split("\n").filter((line) => line.startsWith("|"));
	return rows.flatMap((row) => (row.split(" | ")[1] ?? "").replace(/ *\|$/, "").split(", "));
}

/** Returns the texts of a source file, without those that are names in the program: lower case and no space. */
function textsOf(path: string): string[] {
	const source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
	const texts: string[] = [];
	const visit = (node: ts.Node): void => {
		if (ts.isJsxText(node)) texts.push(node.text.replace(/\s+/g, " "));
		else if (ts.isStringLiteral(node) && /[A-Z ]/.test(node.text) && !ts.isLiteralTypeNode(node.parent)) texts.push(node.text);
		else if (ts.isTemplateLiteralToken(node)) texts.push(node.text);
		ts.forEachChild(node, visit);
	};
	visit(source);
	return texts;
}

test("the page uses the words of the glossary", () => {
	const words = retired();
	expect(words).toContain("CPU self");
	const pattern = new RegExp(`(?<![\\w-])(${words.map((word) => `[${word[0]}${word[0]!.toUpperCase()}]${word.slice(1)}s?`).join("|")})(?![\\w-])`);
	const files = readdirSync(join(web, "src"), { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
	expect(files.length).toBeGreaterThan(50);
	const found = files.flatMap((file) => textsOf(join(web, "src", file)).filter((text) => pattern.test(text.replace(/multiprocessors?/g, ""))).map((text) => `${file}: ${text}`));
	expect(found).toEqual([]);
});
