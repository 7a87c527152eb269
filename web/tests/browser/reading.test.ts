// SPDX-License-Identifier: Apache-2.0
// What the page shows while the server still reads a trace. The trace is a pipe, so that the test says how far that is.
import { execFileSync } from "node:child_process";
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { launch, Tab } from "./browser";
import { readGrid } from "./grid";
import { recorded, Server } from "./server";

const EVENT = { ph: "X", cat: "cpu_op", name: "aten::add", pid: 1, tid: 1, dur: 1 };
/** More than the reader takes at once. */
const EVENTS = 30_000;

let browser: Browser;
let folder: string;
let pipe: string;
let server: Server | undefined;
let end: FileHandle | undefined;

beforeAll(async () => {
	browser = await launch();
});

afterAll(async () => {
	await browser.close();
});

beforeEach(async () => {
	folder = await mkdtemp(join(tmpdir(), "opstrobe-reading-"));
	pipe = join(folder, "slow.pt.trace.json");
	execFileSync("mkfifo", [pipe]);
});

afterEach(async () => {
	// Whatever happened, the server is not to wait for more.
	end ??= await open(pipe, "r+");
	await end.close();
	await server?.stop();
	end = server = undefined;
	await rm(folder, { recursive: true });
});

function events(from: number): string {
	return Array.from({ length: EVENTS }, (_, i) => JSON.stringify({ ...EVENT, ts: 2 * (from + i) })).join(",");
}

test("a page at once, then how far reading is, then the view by itself", async () => {
	server = await Server.start(pipe);
	end = await open(pipe, "w");
	const tab = await Tab.open(browser, server.at("operators", server.trace("slow")));
	const { page } = tab;
	await page.getByRole("progressbar", { name: "Reading slow.pt.trace.json" }).waitFor();
	await page.getByText("0 events").waitFor();
	await end.writeFile(`[${events(0)},${events(EVENTS)}`);
	await page.getByText(/MiB · \d\d\s\d\d\d events/).waitFor();
	await tab.shot("reading");
	await page.getByRole("link", { name: "Timeline", exact: true }).click();
	await page.getByText(/MiB · \d\d\s\d\d\d events/).waitFor();
	await page.getByRole("link", { name: "Operators", exact: true }).click();
	await end.writeFile("]");
	await end.close();
	end = undefined;
	const { rows } = await readGrid(page, "Operators");
	expect(rows.map((row) => row.name)).toEqual(["aten::add"]);
	expect(rows[0]!.calls!.replace(/\s/g, "")).toBe(String(2 * EVENTS));
	expect(await page.getByRole("progressbar").count()).toBe(0);
	await tab.close();
	tab.expectQuiet();
});

test("what cannot be read says at which byte, and why", async () => {
	server = await Server.start(pipe);
	end = await open(pipe, "w");
	const tab = await Tab.open(browser, server.at("overview", server.trace("slow")));
	await tab.page.getByRole("progressbar").waitFor();
	await end.writeFile("[7 8]");
	await end.close();
	end = undefined;
	await tab.page.getByRole("alert").waitFor();
	expect(await tab.page.getByRole("alert").innerText()).toMatch(/slow\.pt\.trace\.json': byte 3: ',' or ']' is expected/);
	await tab.shot("reading-failed");
	await tab.close();
	// The request that waited for the trace is answered with an error, of which the browser itself tells.
	expect(tab.complaints.every((each) => each.includes("422"))).toBe(true);
});

test("a view of several traces tells what it waits for", async () => {
	server = await Server.start(recorded, pipe);
	const tab = await Tab.open(browser, server.at("diff", server.trace("train"), `base=${server.trace("slow").id}`));
	await tab.page.getByRole("progressbar", { name: "Reading slow.pt.trace.json" }).waitFor();
	end = await open(pipe, "w");
	await end.writeFile(`[${events(0)}]`);
	await end.close();
	end = undefined;
	await readGrid(tab.page, "Operators of both traces");
	await tab.close();
	tab.expectQuiet();
});
