// SPDX-License-Identifier: Apache-2.0
// The page Source as a reader uses it: the hottest file, its syntax in colours, the program's own files alone, and what the line of a
// definition counts.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, Tab } from "./browser";
import { readGrid } from "./grid";
import { Server } from "./server";

const folder = mkdtempSync(join(tmpdir(), "opstrobe-source-"));
const program = join(folder, "train.py");
const library = join(folder, "site-packages/loader/fetch.py");
const TEXT = `# one <b>comment</b>
import torch

def forward(x):
    """A string
    of two lines."""
    return x @ "weights" * 12

forward(1)
`;

let browser: Browser;
let server: Server;

beforeAll(async () => {
	mkdirSync(dirname(library), { recursive: true });
	writeFileSync(program, TEXT);
	writeFileSync(library, "def fetch():\n    return None\n");
	const events: object[] = [];
	let calls = 0;
	const python = (name: string, ts: number, dur: number) =>
		events.push({ ph: "X", cat: "python_function", name, pid: 1, tid: 1, ts, dur, args: { "Python id": ++calls, "Python parent id": calls > 1 ? 1 : null } });
	const operator = (ts: number, dur: number) => events.push({ ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 1, ts, dur, args: {} });
	python(`${program}(9): <module>`, 0, 1000);
	python(`${program}(4): forward`, 10, 300);
	operator(20, 280);
	python(`${library}(1): fetch`, 400, 590);
	operator(405, 580);
	const path = join(folder, "source.pt.trace.json");
	writeFileSync(path, JSON.stringify({ traceEvents: events }));
	browser = await launch();
	server = await Server.start(path);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

async function open(query = ""): Promise<Tab> {
	const tab = await Tab.open(browser, server.at("source", server.traces[0]!, query));
	await tab.page.locator(".source-line, .grid").first().waitFor();
	return tab;
}

/** The pieces of a line: text and class. */
function piecesOf(page: Page, line: number): Promise<string[]> {
	return page.locator(".source-line code").nth(line - 1).evaluate((code) => [...code.childNodes].map((node) => `${node instanceof Element ? node.className : ""}:${node.textContent}`));
}

test("the program's hottest file opens, and libraries are one click away", async () => {
	const tab = await open();
	const { page } = tab;
	const file = page.getByRole("combobox", { name: "File" });
	const own = page.getByRole("checkbox", { name: "My code only" });
	expect(await file.inputValue()).toBe(program);
	expect(await file.locator("option").allInnerTexts()).toEqual([program]);
	expect(await own.isChecked()).toBe(true);
	await own.uncheck();
	await expect.poll(() => file.inputValue()).toBe(library);
	await own.check();
	await expect.poll(() => file.inputValue()).toBe(program);
	await page.getByRole("link", { name: "All files" }).click();
	expect((await readGrid(page, "Files of the program")).rows.map((row) => row.path)).toEqual([program]);
	await page.getByRole("checkbox", { name: "My code only" }).uncheck();
	await expect.poll(async () => (await readGrid(page, "Files of the program")).rows.map((row) => row.path)).toEqual([library, program]);
	await tab.close();
	tab.expectQuiet();
});

test("keywords, strings, numbers and comments have their colours, and nothing of the file is markup", async () => {
	const tab = await open();
	const { page } = tab;
	expect(await piecesOf(page, 1)).toEqual(["code-comment:# one <b>comment</b>"]);
	expect(await piecesOf(page, 2)).toEqual(["code-keyword:import", ": torch"]);
	expect((await piecesOf(page, 4)).slice(0, 3)).toEqual(["code-keyword:def", ": ", "code-title:forward"]);
	expect(await piecesOf(page, 5)).toContain('code-string:"""A string');
	expect(await piecesOf(page, 6)).toEqual(['code-string:    of two lines."""']);
	expect(await piecesOf(page, 7)).toEqual([":    ", "code-keyword:return", ": x @ ", 'code-string:"weights"', ": * ", "code-number:12"]);
	expect((await page.locator(".source-line code").allInnerTexts()).join("\n")).toBe(TEXT);
	const colors = await page.locator(".source-line code").nth(6).evaluate((code) => [code, ...code.children].map((each) => getComputedStyle(each).color));
	expect(new Set(colors).size).toBe(4); // plain, keyword, string, number
	await tab.shot("source-highlighted");
	await tab.close();
	tab.expectQuiet();
});

test("the line of a definition says what it counts", async () => {
	const tab = await open();
	const { page } = tab;
	await page.locator(".source-note", { hasText: "counts what no line inside explains" }).waitFor();
	const line = page.locator(".source-line").nth(3);
	expect(await line.locator("code").getAttribute("title")).toContain("before, between and after its recorded calls");
	expect(await line.locator(".figure").first().innerText()).toBe("300 µs");
	expect(await page.locator(".source-line").nth(8).locator("code").getAttribute("title")).toBeNull();
	await tab.close();
	tab.expectQuiet();
});
