// SPDX-License-Identifier: Apache-2.0
//
// The pictures of the manual: their script works with the pages as they are, and takes all that the manual has. They lie in
// build/screenshots/manual/, to be looked at; `node screenshots.mjs` takes them again for the manual.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./browser";
import { OPSTROBE } from "./server";

const manual = join(root, "docs/images");
const taken = join(root, "build/screenshots/manual");

/** Returns the sizes in pixels of the pictures of a folder, by name. */
function sizesOf(folder: string): Record<string, [number, number]> {
	const names = readdirSync(folder).filter((name) => /^view-.*\.png$/.test(name));
	return Object.fromEntries(
		names.sort().map((name) => {
			const bytes = readFileSync(join(folder, name));
			return [name, [bytes.readUInt32BE(16), bytes.readUInt32BE(20)]];
		}),
	);
}

test("each picture of the manual is taken from a page", () => {
	rmSync(taken, { recursive: true, force: true });
	mkdirSync(taken, { recursive: true });
	execFileSync("node", ["screenshots.mjs"], { cwd: join(root, "web"), env: { ...process.env, OPSTROBE, PICTURES: taken }, encoding: "utf8" });
	expect(sizesOf(taken)).toEqual(sizesOf(manual));
});
