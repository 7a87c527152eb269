// SPDX-License-Identifier: Apache-2.0
// The way a reader takes: what to change, when it happens, which line it is, and back. And what the address keeps.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AdviceReply, LinesReply, TimelineReply } from "../../src/data/replies";
import { launch, Tab } from "./browser";
import { readGrid } from "./grid";
import { call, printed, recorded, Server } from "./server";

let browser: Browser;
let folder: string;
let server: Server;
let program: string;
let trace: string;

beforeAll(async () => {
	browser = await launch();
	folder = await mkdtemp(join(tmpdir(), "opstrobe-journey-"));
	// The trace has a relative path of its program. Here it gets the program's folder.
	program = join(dirname(recorded), "train.py");
	trace = join(folder, "train.pt.trace.json");
	const text = gunzipSync(await readFile(recorded)).toString().replaceAll('"train.py', `"${program}`);
	await writeFile(trace, text);
	server = await Server.start(trace);
});

afterAll(async () => {
	await browser.close();
	await server.stop();
	await rm(folder, { recursive: true });
});

const hash = (page: Page) => new URL(page.url()).hash;

test("from advice to the moment in the timeline, to the source line, and back", async () => {
	const finding = (printed("advise", trace) as AdviceReply).findings.find((each) => each.where[0]?.line && each.where[0].row !== null)!;
	const place = finding.where[0]!;
	const tab = await Tab.open(browser, server.at("overview", server.traces[0]!));
	const { page } = tab;
	await page.getByRole("link", { name: finding.title }).click();
	const card = page.locator("article", { hasText: finding.title });
	await card.getByRole("link", { name: "in the timeline" }).first().click();
	await page.waitForFunction((row) => location.hash.includes(`event=${row}`), place.row);
	await page.getByText(/train\.py:\d+/).first().waitFor();
	await page.goBack();
	await card.getByRole("link", { name: `train.py:${place.line}` }).first().click();
	await page.locator(".source-line.chosen").waitFor();
	expect(await page.locator(".source-line.chosen .number").innerText()).toBe(String(place.line));
	const lines = (await readFile(program, "utf8")).split("\n");
	expect(await page.locator(".source-line.chosen code").innerText()).toContain(lines[place.line! - 1]!.trim());
	await page.locator(".source-line .number a").last().click();
	await page.waitForFunction(() => location.hash.startsWith("#/timeline/"));
	await page.getByText(/train\.py:\d+/).first().waitFor();
	await page.goBack();
	await page.locator(".source-line.chosen").waitFor();
	await page.goBack();
	await card.waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("from the list of files to the lines of one", async () => {
	const tab = await Tab.open(browser, server.at("source", server.traces[0]!));
	await tab.page.getByRole("link", { name: "All files" }).click();
	await tab.page.getByRole("link", { name: "train.py", exact: true }).click();
	await tab.page.locator(".source-line .number a").first().waitFor();
	expect(new URLSearchParams(hash(tab.page).split("?")[1]).get("file")).toBe(program);
	await tab.close();
	tab.expectQuiet();
});

test("a table's order, filter, groups and columns are in the address, and come back with it", async () => {
	const tab = await Tab.open(browser, server.at("operators", server.traces[0]!));
	const { page } = tab;
	await page.getByRole("button", { name: /^Calls/ }).click();
	await page.getByRole("searchbox", { name: "Filter the rows" }).fill("aten:: calls>2");
	await page.waitForFunction(() => location.hash.includes("operators.q"));
	await page.getByText("Columns").click();
	await page.getByLabel("CPU total").uncheck();
	await page.reload();
	const { rows } = await readGrid(page, "Operators");
	expect(rows.length).toBeGreaterThan(3);
	expect(rows.every((row) => row.name!.includes("aten::") && Number(row.calls!.replace(/\s/g, "")) > 2)).toBe(true);
	const calls = rows.map((row) => Number(row.calls!.replace(/\s/g, "")));
	expect(calls).toEqual([...calls].sort((a, b) => b - a));
	expect(rows[0]).not.toHaveProperty("host_total");
	await page.getByLabel("Group by").selectOption("family");
	await page.locator(".grid-row.group").first().waitFor();
	expect(hash(page)).toContain("operators.group=family");
	await tab.close();
	tab.expectQuiet();
});

test("tables are saved as CSV, charts as SVG and PNG", async () => {
	const tab = await Tab.open(browser, server.at("overview", server.traces[0]!));
	const { page } = tab;
	const save = async (click: () => Promise<void>) => {
		const [download] = await Promise.all([page.waitForEvent("download"), click()]);
		return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
	};
	const svg = await save(() => page.getByRole("button", { name: "Save Steps as SVG" }).click());
	expect(svg.name).toMatch(/\.svg$/);
	expect(svg.bytes.toString()).toMatch(/^<svg [^]*<rect [^]*<\/svg>$/);
	expect(svg.bytes.toString()).not.toContain("var(--");
	const png = await save(() => page.getByRole("button", { name: "Save Steps as PNG" }).click());
	expect(png.bytes.subarray(1, 4).toString()).toBe("PNG");
	expect(png.bytes.length).toBeGreaterThan(2000);
	await page.goto(server.at("operators", server.traces[0]!));
	const { rows } = await readGrid(page, "Operators");
	const csv = await save(() => page.getByRole("button", { name: "CSV" }).click());
	const lines = csv.bytes.toString().trim().split("\r\n");
	expect(lines).toHaveLength(rows.length + 1);
	expect(lines[1]).toContain(rows[0]!.name!);
	await tab.close();
	tab.expectQuiet();
});

test("some steps alone, and they stay chosen from table to table", async () => {
	const tab = await Tab.open(browser, server.at("operators", server.traces[0]!));
	const { page } = tab;
	const cut = join(folder, "cut.pt.trace.json");
	call("cut", "--steps", "3", trace, cut);
	const all = await readGrid(page, "Operators");
	await page.getByRole("combobox", { name: /^Steps/ }).selectOption("3");
	await page.waitForFunction(() => location.hash.includes("steps=3"));
	await page.locator(".grid").waitFor();
	const one = await readGrid(page, "Operators");
	const calls = (shown: typeof all, name: string) => Number(shown.rows.find((row) => row.name === name)?.calls);
	expect(calls(all, "aten::conv2d")).toBe(3);
	expect(calls(one, "aten::conv2d")).toBe(1);
	const next = async (title: string) => {
		await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: title, exact: true }).click();
		await page.waitForFunction((id) => location.hash.startsWith(`#/${id}/`) && location.hash.includes("steps=3"), title.toLowerCase());
		await page.getByRole("combobox", { name: /^Steps/ }).waitFor();
	};
	await next("Modules");
	const modules = (await readGrid(page, "Modules")).rows;
	expect(modules.length).toBeGreaterThan(0);
	expect(modules.map((row) => row.calls)).toEqual(modules.map(() => "1"));
	await next("Source");
	await page.getByRole("link", { name: "All files" }).click();
	await page.getByRole("checkbox", { name: "My code only" }).uncheck();
	const files = (await readGrid(page, "Files of the program")).rows;
	const wanted = printed("lines", cut) as LinesReply;
	expect(files.map((row) => row.path).sort()).toEqual(wanted.files.map((file) => file.file).sort());
	await page.goto(server.at("source", server.traces[0]!, `steps=3&file=${encodeURIComponent(program)}`));
	// The timeline is that of the complete trace, and the event one of the step.
	await page.locator(".source-line .number a").first().click();
	await page.waitForFunction(() => /event=\d+/.test(location.hash));
	const [event, step] = await page.evaluate(async (id) => {
		const get = async (path: string): Promise<unknown> => (await fetch(`api/v1/traces/${id}/timeline${path}`)).json();
		const { steps } = (await get("")) as TimelineReply;
		return [(await get(`/events/${/event=(\d+)/.exec(location.hash)![1]}`)) as { start_ns: number; duration_ns: number }, steps.find((each) => each.number === 3)!];
	}, server.traces[0]!.id);
	expect(event.start_ns).toBeLessThan(step.end_ns);
	expect(event.start_ns + event.duration_ns).toBeGreaterThan(step.start_ns);
	await tab.close();
	tab.expectQuiet();
});

test("a step back in the moment in which a view opens leads back", async () => {
	const tab = await Tab.open(browser, server.at("source", server.traces[0]!, `file=${encodeURIComponent(program)}`));
	const { page } = tab;
	await page.locator(".source-line .number a").first().waitFor();
	for (let i = 0; i < 12; i++) {
		// The view is drawn, what it does behind that is not done yet.
		await page.evaluate(async () => {
			const main = document.querySelector("main")!;
			const shown = new Promise<void>((done) => {
				new MutationObserver((_, observer) => {
					if (main.getAttribute("aria-label") !== "Timeline") return;
					observer.disconnect();
					done();
				}).observe(main, { attributes: true });
			});
			document.querySelector<HTMLAnchorElement>(".source-line .number a")!.click();
			await shown;
			history.back();
			await new Promise((heard) => addEventListener("hashchange", heard, { once: true }));
		});
		await page.locator(".source-line .number a").first().waitFor();
		expect(hash(page)).toMatch(/^#\/source\//);
	}
	await tab.close();
	tab.expectQuiet();
});
