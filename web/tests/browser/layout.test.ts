// SPDX-License-Identifier: Apache-2.0
// How pages fill a window: what must be visible is, and parts that belong together are next to each other.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, Tab } from "./browser";
import { recorded, Server } from "./server";

let browser: Browser;
let server: Server;
beforeAll(async () => {
	browser = await launch();
	server = await Server.start(recorded);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
});

async function box(of: Locator) {
	await of.waitFor();
	return (await of.boundingBox())!;
}

test("a window of 1024 pixels shows the names of all views", async () => {
	const tab = await Tab.open(browser, server.at("kernels", server.traces[0]!), { viewport: { width: 1024, height: 768 } });
	const nav = tab.page.getByRole("navigation", { name: "Views" });
	await nav.locator("a.empty-view").first().waitFor(); // these are wider
	const last = await box(nav.getByRole("link", { name: "Trace" }));
	expect(last.x + last.width).toBeLessThanOrEqual(1024 - 24); // the end of the bar fades
	await tab.close();
});

test("the phases of a step are below its parts", async () => {
	const tab = await Tab.open(browser, server.at("overview", server.traces[0]!), { viewport: { width: 1280, height: 900 } });
	const panel = (title: RegExp) => box(tab.page.locator("section.panel", { has: tab.page.getByRole("heading", { name: title }) }));
	const [parts, phases] = [await panel(/^Where a step/), await panel(/^Phases of a step/)];
	expect(phases.x).toBe(parts.x);
	expect(phases.y - (parts.y + parts.height)).toBeLessThan(20);
	await tab.close();
});

test("the notes below the roofline are close to it", async () => {
	const tab = await Tab.open(browser, server.at("roofline", server.traces[0]!, "roof=60G,20G"), { viewport: { width: 1280, height: 900 } });
	const chart = await box(tab.page.locator("svg[aria-label=Roofline]"));
	const left = await box(tab.page.getByText(/^Not in the chart/));
	expect(left.y - (chart.y + chart.height)).toBeLessThan(60);
	await tab.close();
});

test("frames without a change are not bright in the dark theme", async () => {
	const tab = await Tab.open(browser, server.at("overview", server.traces[0]!), { colorScheme: "dark" });
	const same = await tab.page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--flame-same").trim());
	const channels = [1, 3, 5].map((at) => parseInt(same.slice(at, at + 2), 16));
	expect(Math.max(...channels)).toBeLessThan(180);
	await tab.close();
});

test("modules whose paths begin alike have their names in the tree", async () => {
	const folder = mkdtempSync(join(tmpdir(), "opstrobe-names-"));
	const path = join(folder, "long.pt.trace.json");
	writeFileSync(path, gunzipSync(readFileSync(recorded)).toString().replaceAll("features", "feature_extractor"));
	const long = await Server.start(path);
	const tab = await Tab.open(browser, long.at("modules", long.traces[0]!));
	const cells = tab.page.locator(".grid-body [data-column=name]");
	await cells.filter({ hasText: "feature_extractor.1" }).waitFor();
	expect(await cells.locator(".split-end").count()).toBe(3);
	for (const cell of await cells.all()) {
		const [outer, inner] = [await box(cell), await box((await cell.locator(".split-end").count()) ? cell.locator(".split-end") : cell)];
		expect([inner.y >= outer.y, inner.y + inner.height <= outer.y + outer.height, inner.x + inner.width <= outer.x + outer.width], await cell.innerText()).toEqual([true, true, true]);
	}
	await tab.shot("modules-with-long-paths");
	await tab.close();
	await long.stop();
	rmSync(folder, { recursive: true });
	tab.expectQuiet();
});
