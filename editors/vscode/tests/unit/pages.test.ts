// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { messagePage, viewerHash, viewerPage } from "../../src/page";
import { baseName, bestFit, mayBe, sharedNames } from "../../src/paths";

test("the page shows one origin in a frame and runs one script", () => {
	const page = viewerPage("https://host/proxy/80/t/0123/#/timeline/ab?event=3", "0a1b");
	expect(page).toContain("default-src 'none'; frame-src https://host; style-src 'nonce-0a1b'; script-src 'nonce-0a1b'");
	expect(page).toContain('src="https://host/proxy/80/t/0123/#/timeline/ab?event=3"');
	expect(viewerPage('http://h/"><script>', "0")).not.toContain('"><script>');
	expect(messagePage("</p><script>alert(1)</script>")).not.toContain("<script");
});

test("places are addresses of the viewer", () => {
	expect(viewerHash("0123", { row: 7 })).toBe("#/timeline/0123?event=7");
	expect(viewerHash("0123", { file: "a b&c.py", line: 3 })).toBe("#/source/0123?file=a+b%26c.py&line=3");
	expect(viewerHash("0123", { file: "x.py", line: null })).toBe("#/source/0123?file=x.py");
});

test("paths of a trace are those of files here", () => {
	expect(sharedNames("/a/b/c.py", "/x/b/c.py")).toBe(2);
	expect(mayBe("train.py", "/home/me/train.py")).toBe(true);
	expect(mayBe("./src/train.py", "/home/me/src/train.py")).toBe(true);
	expect(mayBe("src/train.py", "/home/me/train.py")).toBe(false);
	expect(mayBe("/cluster/job/src/train.py", "/home/me/src/train.py")).toBe(true);
	expect(mayBe("/cluster/job/train.py", "/home/me/src/train.py")).toBe(false); // another train.py
	expect(mayBe("C:\\work\\src\\train.py", "/home/me/src/train.py")).toBe(true);
	expect(bestFit("/c/a/b/m.py", ["/x/b/m.py", "/x/a/b/m.py", "/y/b/m.py"])).toBe("/x/a/b/m.py");
	expect(bestFit("/x/b/m.py", ["/w/x/b/m.py", "/x/b/m.py"])).toBe("/x/b/m.py");
	expect(bestFit("nowhere.py", ["/a.py"])).toBeUndefined();
	expect(bestFit("", ["/a.py", ""])).toBe("");
	expect(baseName("C:\\a\\b.py")).toBe("b.py");
});
