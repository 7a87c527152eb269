// SPDX-License-Identifier: Apache-2.0
// The frame around the views, in a page without a server.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, Tab } from "./browser";
import { writeReport } from "./report";

let browser: Browser;
let folder: string;
let url: string;

beforeAll(async () => {
	browser = await launch();
	folder = await mkdtemp(join(tmpdir(), "opstrobe-frame-"));
	const entry = { run: "", worker: "", span: null, path: "", bytes: 1, events: 1, rank: 0, error: null, progress: null, diagnostics: [] };
	url = await writeReport(join(folder, "report.html"), [
		{
			path: "traces",
			reply: {
				generation: 1,
				watching: false,
				traces: [
					{ ...entry, state: "ready", id: "1", name: "first" },
					{ ...entry, state: "ready", id: "3", name: "half", diagnostics: [{ kind: "truncated", message: "the text ends early", count: 1, byte: 27734 }] },
					{ ...entry, state: "ready", id: "2", name: "<b>second</b></script>" },
				],
			},
		},
	]);
});

afterAll(async () => {
	await browser.close();
	await rm(folder, { recursive: true });
});

test("the address chooses the trace, and choosing a trace changes the address", async () => {
	const tab = await Tab.open(browser, `${url}#/nothing/2`);
	await tab.page.waitForFunction(() => document.title.includes("<b>second</b></script>"));
	await tab.page.getByLabel("Trace").selectOption("1");
	await tab.page.waitForFunction(() => document.title.includes("first"));
	expect(new URL(tab.page.url()).hash).toMatch(/\/1$/);
	await tab.page.goBack();
	await tab.page.waitForFunction(() => document.title.includes("second"));
	await tab.close();
});

test("the theme is the system's until it is chosen, and stays as chosen", async () => {
	const tab = await Tab.open(browser, url, { colorScheme: "dark" });
	const theme = () => tab.page.evaluate(() => document.documentElement.dataset.theme);
	await tab.page.getByRole("button", { name: "Switch to light" }).click();
	expect(await theme()).toBe("light");
	await tab.page.reload();
	await tab.page.getByRole("button", { name: "Switch to dark" }).waitFor();
	expect(await theme()).toBe("light");
	await tab.close();
});

test("a link to a trace that is gone opens no other one, and lists those that are served", async () => {
	const tab = await Tab.open(browser, `${url}#/overview/0123456789ab`);
	await tab.page.getByText("This trace is no longer served").waitFor();
	expect(new URL(tab.page.url()).hash).toBe("#/overview/0123456789ab");
	expect(await tab.page.getByRole("link", { name: "Operators" }).getAttribute("href")).toContain("0123456789ab");
	await tab.page.getByRole("link", { name: "first" }).click();
	await tab.page.waitForFunction(() => document.title.includes("first"));
	expect(await tab.page.getByText("This trace is no longer served").count()).toBe(0);
	await tab.close();
});

test("a banner says why the figures of a trace are incomplete", async () => {
	for (const view of ["overview", "timeline"]) {
		const tab = await Tab.open(browser, `${url}#/${view}/3`);
		await tab.page.getByText(/the text ends early \(1 ×, first at byte 27.734\)/).waitFor();
		await tab.close();
	}
	const tab = await Tab.open(browser, `${url}#/overview/1`);
	await tab.page.waitForFunction(() => document.title.includes("first"));
	expect(await tab.page.locator(".banner").count()).toBe(0);
	await tab.close();
});
