// SPDX-License-Identifier: Apache-2.0
// The page of an archive of several jobs and commits: trend, changes and their causes, steps of all ranks, and a trace
// that is opened from it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { violations } from "./axe";
import { launch, Tab } from "./browser";
import { readGrid } from "./grid";
import { call, printed, Server } from "./server";

const folder = mkdtempSync(join(tmpdir(), "opstrobe-page-"));
const archive = join(folder, "archive");
const STEPS = 12;

function trace(rank: number, run: number, slow: number): string {
	const traceEvents: object[] = [];
	const start = 1.79e15 + run * 8.64e10;
	for (let step = 0; step < STEPS; step++) {
		const ts = start + step * 2000;
		const here = { ph: "X", pid: 1, tid: 1 };
		traceEvents.push(
			{ ...here, cat: "user_annotation", name: `ProfilerStep#${step}`, ts, dur: 1000 + slow + rank * 20 + (run % 3) + (rank === 1 && step === 7 ? 500 : 0) },
			{ ...here, cat: "cpu_op", name: "aten::mm", ts: ts + 10, dur: 100 },
		);
		if (slow > 0) traceEvents.push({ ...here, cat: "cpu_op", name: "aten::sort", ts: ts + 300, dur: slow });
	}
	const path = join(folder, `run${run}.rank${rank}.slow${slow}.json`);
	writeFileSync(path, JSON.stringify({ distributedInfo: { rank, world_size: 2 }, traceEvents }));
	return path;
}

let browser: Browser;
let server: Server;
beforeAll(async () => {
	for (const job of ["llama-70b", "vision"]) {
		for (let run = 0; run < (job === "vision" ? 2 : 7); run++) {
			const paths = [0, 1].map((rank) => trace(rank, run, job === "llama-70b" && run >= 4 ? 400 : job === "vision" ? 1 : 0));
			call("archive", "add", archive, ...paths, "--job", job, "--run", `run ${run}`, "--commit", `commit${run}`);
		}
	}
	call("archive", "add", archive, trace(0, 0, 2), "--job", "scratch", "--run", "first");
	browser = await launch();
	server = await Server.start(archive);
}, 120_000);
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

test("the page of an archive shows where a metric changed, and why", async () => {
	const tab = await Tab.open(browser, server.url);
	const { page } = tab;
	await page.getByRole("combobox", { name: /^Job/ }).selectOption("llama-70b");
	const { rows: changes } = await readGrid(page, "Changes");
	expect(changes.map((row) => row.key)).toEqual(["commit4"]);
	const trend = printed("archive", "trend", archive, "--job", "llama-70b") as { points: { key: string }[] };
	const points = page.getByRole("group", { name: "Median step" }).locator("[data-point]");
	expect(await points.count()).toBe(trend.points.length);
	expect(await points.nth(3).getAttribute("aria-label")).toMatch(/^commit commit3: 1\.0\d+ ms$/);
	expect(await points.nth(4).getAttribute("aria-label")).toMatch(/^commit commit4: 1\.4\d+ ms, level changes: \+39\.\d %$/);
	await points.nth(0).focus();
	await page.keyboard.press("ArrowRight");
	expect(await points.nth(1).evaluate((point) => point === document.activeElement)).toBe(true);
	const { rows: causes } = await readGrid(page, "What changed most");
	expect(causes[0]).toMatchObject({ key: "commit4", kind: "operator", name: "aten::sort" });
	await tab.shot("archive");
	await page.getByRole("combobox", { name: /^Job/ }).selectOption("vision");
	await page.getByText("The level does not change.").waitFor();
	await page.getByRole("combobox", { name: /^Metric/ }).selectOption({ index: 1 });
	await page.getByRole("region", { name: "Trend" }).locator("[data-point]").first().waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("the trend of a job without commits is that of its runs", async () => {
	const tab = await Tab.open(browser, `${server.url}#/archive/?job=scratch`);
	const trend = tab.page.getByRole("region", { name: "Trend" });
	await trend.locator("[data-point]").first().waitFor();
	await trend.getByText("Commit", { exact: true }).click();
	await trend.getByText("No trace of this job has a commit.").waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("a cell of the heat map opens its step in the timeline", async () => {
	const tab = await Tab.open(browser, `${server.url}#/archive/?job=llama-70b&run=run%206`);
	const { page } = tab;
	const cells = page.getByRole("group", { name: /^Steps of each rank/ }).getByRole("link");
	await cells.first().waitFor();
	expect(await cells.count()).toBe(2 * STEPS);
	await page.getByRole("link", { name: /^rank 1, step 7: / }).click();
	await page.locator(".tl-canvas[aria-busy=false]").waitFor();
	expect(page.url()).toContain("#/timeline/");
	await tab.shot("archive-timeline");
	await page.getByRole("link", { name: "Opstrobe" }).click();
	await page.getByRole("heading", { name: "Archive" }).waitFor({ state: "attached" });
	await tab.close();
	tab.expectQuiet();
});

test("jobs and runs are listed, and a run opens", async () => {
	const tab = await Tab.open(browser, server.url);
	const { rows } = await readGrid(tab.page, "Archive");
	expect(rows.length).toBe(10);
	await tab.page.locator('.grid[aria-label="Archive"]').getByRole("link", { name: "run 6" }).first().click();
	await tab.page.getByRole("heading", { name: "Overview" }).waitFor({ state: "attached" });
	await tab.page.waitForFunction(() => location.hash.startsWith("#/overview/"));
	await tab.close();
	tab.expectQuiet();
});

test("an id that the archive does not have", async () => {
	const tab = await Tab.open(browser, `${server.url}#/archive/0123`);
	await tab.page.getByRole("alert").getByText("trace '0123' does not exist").waitFor();
	await tab.close();
	expect(tab.complaints.filter((each) => !each.includes("404"))).toEqual([]);
});

test("axe finds nothing in either theme", async () => {
	for (const colorScheme of ["light", "dark"] as const) {
		const tab = await Tab.open(browser, server.url, { colorScheme });
		await tab.page.getByRole("group", { name: /^Steps of each rank/ }).waitFor();
		expect(await violations(tab.page)).toEqual([]);
		await tab.close();
	}
});
