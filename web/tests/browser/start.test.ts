// SPDX-License-Identifier: Apache-2.0
// The list of traces that a directory opens with: what it shows is what the commands print; traces of a job are one line.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AdviceReply, OverviewReply } from "../../src/data/replies";
import { violations } from "./axe";
import { launch, Tab } from "./browser";
import { expectShows, readGrid } from "./grid";
import { printed, recorded, Server, shared } from "./server";

const folder = mkdtempSync(join(tmpdir(), "opstrobe-start-"));

function row(cat: string, name: string, ts: number, dur: number, args: object = {}): object {
	return { ph: "X", cat, name, pid: 1, tid: 1, ts, dur, args };
}

/** Two steps; recorded by `command`. */
function small(step: number, members: object): string {
	const start = 1.7e15;
	const events = [0, 1].flatMap((i) => [row("user_annotation", `ProfilerStep#${i}`, start + i * step, step), row("cpu_op", "aten::mm", start + i * step + 1, step / 2)]);
	return JSON.stringify({ ...members, traceEvents: events });
}

/** Two steps of a rank that mainly communicates. */
function onDevice(job: number, rank: number): string {
	const events = [0, 1].flatMap((step) => {
		const at = 1.7e15 + 1e9 * job + 1000 * step;
		const launched = { "External id": 10 + step, correlation: 10 + step };
		return [
			row("user_annotation", `ProfilerStep#${step}`, at, 900),
			row("cpu_op", "c10d::allreduce_", at + 10, 60, { "External id": 10 + step, "Input Dims": [[1000]], "Input type": ["float"] }),
			row("cuda_runtime", "cudaLaunchKernel", at + 20, 10, launched),
			{ ...row("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", at + 50, 700, { ...launched, device: 0, stream: 7 }), pid: 0, tid: 7 },
		];
	});
	const deviceProperties = [{ id: 0, name: "NVIDIA H100 80GB HBM3", totalGlobalMem: 85e9 }];
	return JSON.stringify({ deviceProperties, distributedInfo: { backend: "nccl", rank, world_size: 2, pg_config: [{ pg_name: `job ${job}` }] }, traceEvents: events });
}

let browser: Browser;
let server: Server;
beforeAll(async () => {
	mkdirSync(join(folder, "job"));
	for (const rank of [0, 1]) writeFileSync(join(folder, "job", `rank${rank}.pt.trace.json`), small(1000 + rank, { distributedInfo: { rank, world_size: 2 } }));
	writeFileSync(join(folder, "alone.pt.trace.json"), small(50, { recording: { command: "opstrobe run train.py --lr 1" } }));
	writeFileSync(join(folder, "single.pt.trace.json"), small(70, { distributedInfo: { rank: 0, world_size: 8 } }));
	writeFileSync(join(folder, "bad.pt.trace.json"), '{"traceEvents": [7 8]}');
	copyFileSync(recorded, join(folder, "train.pt.trace.json.gz"));
	browser = await launch();
	server = await Server.start(folder);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

async function open(): Promise<Tab> {
	const tab = await Tab.open(browser, `${server.url}#/traces?traces.columns=command`, { colorScheme: "light" });
	await tab.page.getByRole("treegrid", { name: "Traces" }).waitFor();
	await tab.page.getByText(/^Reading: /).waitFor({ state: "detached" });
	return tab;
}

test("each trace is a line with its steps, its command if that is shown, and its first finding, those of a job are one", async () => {
	const tab = await open();
	const { rows } = await readGrid(tab.page, "Traces");
	const line = (name: string) => rows.find((each) => each.name!.includes(name))!;
	expect(rows).toHaveLength(5);
	expect(line("job/").name).toBe("▸job/2 ranks");
	expect(line("job/").rank).toBe("2");
	expect(line("single").rank).toBe("rank 0 of 8");
	expect(line("alone").command).toBe("opstrobe run train.py --lr 1");
	expect(line("alone").date).toMatch(/^2023-11-1[45] \d\d:\d\d$/);
	expect(line("alone").devices).toBe("CPU");
	expect(line("bad").finding).toContain("Cannot be read: ");
	const path = join(folder, "train.pt.trace.json.gz");
	const views = printed("views", path, "--top-finding") as OverviewReply & { top_finding: AdviceReply["findings"][number] };
	expect(line("train").finding).toBe(views.top_finding.title);
	expectShows(line("train").gain!, views.top_finding.predicted_gain_percent!, "the gain");
	expect(line("train").steps).toBe(String(views.steps.rows.length));
	expectShows(line("train").median!, views.steps.median!, "the median step");
	await tab.shot("traces");
	await tab.close();
	tab.expectQuiet();
});

test.skipIf(!shared)("the finding of a run is that of all its ranks", async () => {
	const ranks = join(shared!, "hta/dlrm_8rank");
	const { findings } = printed("advise", ranks) as AdviceReply;
	const run = await Server.start(ranks);
	const tab = await Tab.open(browser, `${run.url}#/traces`);
	await tab.page.getByText(/^Reading: /).waitFor({ state: "detached" });
	const line = async () => (await readGrid(tab.page, "Traces")).rows[0]!;
	await expect.poll(async () => (await line()).finding).toBe(findings[0]!.title);
	expectShows((await line()).gain!, findings[0]!.predicted_gain_percent!, "the gain");
	await tab.close();
	tab.expectQuiet();
	await run.stop();
});

test("the list is sorted and filtered, and opens overviews; the overview's first finding is the same", async () => {
	const tab = await open();
	const { page } = tab;
	await page.getByRole("button", { name: /^Median step/ }).click();
	await expect.poll(async () => (await readGrid(page, "Traces")).rows[0]!.name).toContain("train");
	await page.getByRole("button", { name: "Open" }).click();
	await page.getByText("job/rank1", { exact: true }).waitFor();
	await page.getByRole("searchbox", { name: "Filter the rows" }).fill("gain>1");
	await expect.poll(async () => (await readGrid(page, "Traces")).rows.every((each) => each.gain !== "–")).toBe(true);
	const [first] = (await readGrid(page, "Traces")).rows.filter((each) => each.name!.includes("train"));
	await page.getByRole("link", { name: "train", exact: true }).click();
	await page.waitForFunction(() => location.hash.startsWith("#/overview/"));
	const finding = page.getByRole("region", { name: "What to change" }).locator("li a").first();
	expect(await finding.innerText()).toBe(first!.finding);
	await page.getByRole("link", { name: "Opstrobe" }).click();
	await page.getByRole("treegrid", { name: "Traces" }).waitFor();
	await page.goBack();
	await page.getByRole("region", { name: "What to change" }).waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("a narrow window hides the least important columns", async () => {
	const tab = await open();
	const { page } = tab;
	const titles = () => page.getByRole("columnheader").allInnerTexts();
	expect((await titles()).join()).toContain("Median step");
	await page.goto(`${server.url}#/traces`);
	await page.setViewportSize({ width: 1000, height: 700 });
	await expect.poll(async () => (await titles()).join()).not.toContain("Median step");
	const finding = page.getByRole("row").filter({ hasText: "train" }).getByRole("gridcell").last();
	expect((await finding.boundingBox())!.width).toBeGreaterThan(180);
	expect(await page.locator(".grid").evaluate((grid) => grid.scrollWidth - grid.clientWidth)).toBe(0);
	await tab.shot("traces-narrow");
	await page.locator("summary", { hasText: "Columns" }).click();
	await page.getByLabel("Median step").check();
	await expect.poll(async () => (await titles()).join()).toContain("Median step");
	await tab.close();
	tab.expectQuiet();
});

test.each([1280, 1400, 1600, 1800])("with a hundred traces, columns can be read in a window of %i pixels", async (width) => {
	const many = mkdtempSync(join(tmpdir(), "opstrobe-many-"));
	for (let i = 0; i < 50; i++) {
		const made = join(many, `experiment-${i % 7}-with-a-long-name-${i}`);
		mkdirSync(made);
		for (const rank of [0, 1]) writeFileSync(join(made, `trainer-node-17.cluster.internal_${4000 + rank}.pt.trace.json`), onDevice(i, rank));
	}
	const own = await Server.start(many);
	const tab = await Tab.open(browser, `${own.url}#/traces`, { viewport: { width, height: 800 } });
	await tab.page.getByText(/^50 rows/).waitFor();
	await tab.page.getByText(/^Reading: /).waitFor({ state: "detached" });
	await tab.page.getByText("Communication between ranks").first().waitFor();
	const titles = (await tab.page.getByRole("columnheader").allInnerTexts()).map((title) => title.replace(/ [▾▴]/, ""));
	for (const title of ["Recorded", "Duration", "Steps", "Devices", "Ranks", "Top finding"]) expect(titles).toContain(title);
	const cut = await tab.page.locator(".grid-body [data-column]").evaluateAll((cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => ({ column: cell.getAttribute("data-column"), width: cell.clientWidth, tooltip: cell.getAttribute("title") })));
	for (const { column, width: room, tooltip } of cut) {
		expect(["name", "finding"]).toContain(column);
		expect(room).toBeGreaterThan(180);
		expect(tooltip).not.toBe("");
	}
	await tab.shot(`traces-many-${width}`);
	await tab.close();
	tab.expectQuiet();
	await own.stop();
	rmSync(many, { recursive: true });
});

test("by keys: Enter opens a job and a trace", async () => {
	const tab = await open();
	const { page } = tab;
	await page.getByRole("searchbox", { name: "Filter the rows" }).fill("job");
	await page.getByText("job/rank1", { exact: true }).waitFor(); // a filter opens what holds the lines that match
	await page.getByRole("treegrid", { name: "Traces" }).focus();
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => location.hash.startsWith("#/overview/"));
	await tab.close();
	tab.expectQuiet();
});

test("only the ranks of one job have a distributed view", async () => {
	const dimmed = async (part: string) => {
		const tab = await Tab.open(browser, server.at("overview", server.trace(part)));
		await tab.page.locator("nav a.empty-view", { hasText: "Kernels" }).waitFor();
		await tab.page.waitForTimeout(1500); // the other traces of the directory are read
		const views = await tab.page.locator("nav a.empty-view").allInnerTexts();
		await tab.close();
		return views.includes("Distributed");
	};
	expect(await dimmed("job/rank0")).toBe(false);
	expect(await dimmed("alone")).toBe(true); // three files in its directory, and none is of its job
});

test("axe finds nothing in either theme", async () => {
	for (const colorScheme of ["light", "dark"] as const) {
		const tab = await Tab.open(browser, server.url, { colorScheme });
		await tab.page.getByRole("treegrid", { name: "Traces" }).waitFor();
		expect(await violations(tab.page)).toEqual([]);
		await tab.close();
	}
});

test("one trace opens at once", async () => {
	const one = await Server.start(recorded);
	const tab = await Tab.open(browser, one.url);
	await tab.page.getByRole("region", { name: "What to change" }).waitFor();
	expect(new URL(tab.page.url()).hash).toBe(`#/overview/${one.traces[0]!.id}`);
	await tab.close();
	await one.stop();
	tab.expectQuiet();
});
