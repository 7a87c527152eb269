// SPDX-License-Identifier: Apache-2.0
// What the page shows while the server still reads a trace: one that takes seconds, for it has gigabytes of blanks when unpacked.
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { launch, Tab } from "./browser";
import { readGrid } from "./grid";
import { recorded, Server } from "./server";

const EVENT = { ph: "X", cat: "cpu_op", name: "aten::add", pid: 1, tid: 1, dur: 1 };
/** More than the reader takes at once. */
const EVENTS = 60_000;
const BLANKS = gzipSync(" ".repeat(64 << 20));
/** Of these pieces: some ten seconds of reading, since opening a page takes seconds on a busy machine. */
const PIECES = 80;

let browser: Browser;
let folder: string;
let server: Server | undefined;

beforeAll(async () => {
	browser = await launch();
});

afterAll(async () => {
	await browser.close();
});

beforeEach(async () => {
	folder = await mkdtemp(join(tmpdir(), "opstrobe-reading-"));
});

afterEach(async () => {
	await server?.stop();
	server = undefined;
	await rm(folder, { recursive: true });
});

async function writeSlow(): Promise<string> {
	const path = join(folder, "slow.pt.trace.json.gz");
	const file = await open(path, "w");
	const events = Array.from({ length: EVENTS }, (_, i) => JSON.stringify({ ...EVENT, ts: 2 * i })).join(",");
	await file.writeFile(gzipSync(`[${events}`));
	for (let i = 0; i < PIECES; i++) await file.writeFile(BLANKS);
	await file.writeFile(gzipSync("]"));
	await file.close();
	return path;
}

/** Waits until nothing is read any more, which takes minutes on a busy machine. */
async function waitUntilRead(page: Page): Promise<void> {
	await expect.poll(() => page.getByRole("progressbar").count(), { timeout: 90_000 }).toBe(0);
}

test("a page at once, then how far reading is, then the view by itself", async () => {
	server = await Server.start(await writeSlow());
	const tab = await Tab.open(browser, server.at("operators", server.trace("slow")));
	const { page } = tab;
	await page.getByRole("progressbar", { name: "Reading slow.pt.trace.json" }).waitFor();
	await page.getByText(/MiB · \d\d[\s,]\d\d\d events/).waitFor();
	await tab.shot("reading");
	await page.getByRole("link", { name: "Timeline", exact: true }).click();
	await page.getByText(/MiB · \d\d[\s,]\d\d\d events/).waitFor();
	await page.getByRole("link", { name: "Operators", exact: true }).click();
	await waitUntilRead(page);
	const { rows } = await readGrid(page, "Operators");
	expect(rows.map((row) => row.name)).toEqual(["aten::add"]);
	expect(rows[0]!.calls!.replace(/[\s,]/g, "")).toBe(String(EVENTS));
	await tab.close();
	tab.expectQuiet();
});

test("what cannot be read says at which byte, and why", async () => {
	const path = join(folder, "damaged.pt.trace.json");
	await writeFile(path, "[7 8]");
	server = await Server.start(path);
	const tab = await Tab.open(browser, server.at("overview", server.trace("damaged")));
	await tab.page.getByRole("alert").waitFor();
	expect(await tab.page.getByRole("alert").innerText()).toMatch(/damaged\.pt\.trace\.json': byte 3: expected ',' or '\]'/);
	await tab.shot("reading-failed");
	await tab.close();
	// The request that waited for the trace is answered with an error, which the browser reports.
	expect(tab.complaints.every((each) => each.includes("422"))).toBe(true);
});

test("a view of several traces shows what it waits for", async () => {
	server = await Server.start(recorded, await writeSlow());
	const tab = await Tab.open(browser, server.at("diff", server.trace("train"), `base=${server.trace("slow").id}`));
	await tab.page.getByRole("progressbar", { name: "Reading slow.pt.trace.json" }).first().waitFor(); // of the tables, and of the flame graph
	await waitUntilRead(tab.page);
	await readGrid(tab.page, "Operators of both traces");
	await tab.close();
	tab.expectQuiet();
});
