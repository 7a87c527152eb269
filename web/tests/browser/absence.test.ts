// SPDX-License-Identifier: Apache-2.0
// What is absent is said to be, and what has two names has the one that the program uses.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LinesReply, ModulesReply, StacksReply } from "../../src/data/replies";
import { launch, Tab } from "./browser";
import { readGrid } from "./grid";
import { printed, recorded, Server } from "./server";

let browser: Browser;
beforeAll(async () => {
	browser = await launch();
});
afterAll(() => browser.close());

test("the loss of a server and its return are reported", async () => {
	const server = await Server.start(recorded);
	const tab = await Tab.open(browser, server.at("operators", server.traces[0]!));
	await tab.page.getByRole("grid", { name: "Operators" }).waitFor();
	await server.stop();
	await tab.page.getByRole("alert").getByText("The server does not answer.").waitFor();
	expect(await tab.page.getByRole("grid", { name: "Operators" }).count()).toBe(1); // the last table stays
	await tab.shot("server-gone");
	await tab.close();
});

test("a profile of samples says that no rule of advice applies to it", async () => {
	const folder = mkdtempSync(join(tmpdir(), "opstrobe-samples-"));
	writeFileSync(join(folder, "profile.folded"), "main;work;inner 30\nmain;other 10\n");
	const server = await Server.start(join(folder, "profile.folded"), recorded);
	const trace = server.trace("profile.folded");
	const tab = await Tab.open(browser, server.at("overview", trace));
	const why = tab.page.getByText("This profile has samples, so no rule of advice applies.", { exact: true });
	await why.waitFor();
	await tab.page.getByRole("row", { name: "Whole recording" }).waitFor();
	expect(await tab.page.getByText("Step", { exact: true }).count()).toBe(0);
	expect(await tab.page.getByRole("heading", { name: "Steps" }).count()).toBe(0);
	await tab.page.goto(server.at("advice", trace));
	await tab.page.locator(".empty", { has: why }).or(why).first().waitFor();
	expect(await tab.page.getByText("Rules applied").count()).toBe(0);
	await tab.page.goto(server.url);
	await tab.page.getByText("Samples, to which no rule of advice applies").waitFor();
	expect(await tab.page.getByText("No problems found").count()).toBe(0);
	await tab.close();
	await server.stop();
	rmSync(folder, { recursive: true });
	tab.expectQuiet();
});

test("views without data name the options of both interfaces that record it", async () => {
	const folder = mkdtempSync(join(tmpdir(), "opstrobe-bare-"));
	const mm = { ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 1, ts: 10, dur: 900 };
	writeFileSync(join(folder, "bare.json"), JSON.stringify({ traceEvents: [mm] }));
	const main = { ...mm, cat: "python_function", name: "train.py(3): main", ts: 0, dur: 1000, args: { "Python id": 1, "Python parent id": null } };
	writeFileSync(join(folder, "lines.json"), JSON.stringify({ traceEvents: [main, mm] }));
	const server = await Server.start(join(folder, "bare.json"), join(folder, "lines.json"));
	const trace = server.trace("bare");
	const tab = await Tab.open(browser, server.at("overview", server.trace("lines")));
	const advice = tab.page.getByRole("region", { name: "What to change" });
	await advice.getByText("rules applied").first().waitFor();
	expect(await advice.getByText("Percentages").count()).toBe(1); // that of the line with most time
	for (const [view, need] of [["modules", "opstrobe run or with_modules=True"], ["model", "opstrobe run or with_modules=True"], ["source", "opstrobe run or with_stack=True"], ["memory", "profile_memory=True or opstrobe run --memory"]] as const) {
		await tab.page.goto(server.at(view, trace));
		await tab.page.locator(".empty", { hasText: need }).waitFor();
	}
	await tab.close();
	await server.stop();
	rmSync(folder, { recursive: true });
	tab.expectQuiet();
});

test("modules have their paths in every view, time per call and their share of the steps", async () => {
	const server = await Server.start(recorded);
	const trace = server.traces[0]!;
	const tab = await Tab.open(browser, server.at("modules", trace));
	const { modules } = await tab.page.evaluate(async (id) => (await (await fetch(`api/v1/traces/${id}/modules`)).json()) as ModulesReply, trace.id);
	const { rows } = await readGrid(tab.page, "Modules");
	for (const row of rows) expect(modules.map((each) => each.path)).toContain(row.name!.replace(/^[▾▸]/, ""));
	expect(parseFloat(rows[0]!.share!)).toBeGreaterThan(0);
	expect(parseFloat(rows[0]!.share!)).toBeLessThanOrEqual(100);
	const { width } = (await tab.page.locator(".table-box").boundingBox())!;
	expect(width).toBeLessThan(1440);
	const inner = modules.find((each) => each.path.includes(".") || each.parent !== null)!;
	await tab.page.goto(server.at("timeline", trace, `q=${encodeURIComponent(inner.name)}`));
	await tab.page.locator(".tl-event h2", { hasText: inner.path }).waitFor();
	await tab.page.goto(server.at("stacks", trace));
	await tab.page.locator(".flame-texts text", { hasText: modules[0]!.path }).first().waitFor();
	await tab.close();
	await server.stop();
	tab.expectQuiet();
});

test("an empty analysis says why, as the command does, and which step it leaves out", async () => {
	const server = await Server.start(recorded);
	const trace = server.traces[0]!;
	for (const id of ["potential_stragglers", "queue_length_summary", "memory_bw_time_series"]) {
		const { empty } = printed("analyze", id, recorded) as { empty: string };
		const tab = await Tab.open(browser, server.at("analyses", trace, `id=${id}`));
		const shown = tab.page.getByRole("main").locator(".empty");
		await shown.waitFor();
		expect((await shown.innerText()).toLowerCase()).toBe(`${empty.toLowerCase()}.`);
		await tab.page.getByText(/^Without step \d+, the last one/).waitFor();
		await tab.close();
		tab.expectQuiet();
	}
	await server.stop();
});

test("an analysis hides times and sizes that are all zero, and its menu shows them", async () => {
	const server = await Server.start(recorded);
	const tab = await Tab.open(browser, server.at("analyses", server.traces[0]!, "id=key_averages"));
	const { table } = printed("analyze", "key_averages", recorded) as { table: { rows: unknown[] } };
	await tab.page.getByRole("columnheader", { name: "Self CPU", exact: true }).waitFor();
	expect(await tab.page.getByRole("columnheader", { name: "Self device", exact: true }).count()).toBe(0);
	await tab.page.getByText(`${table.rows.length.toLocaleString("en")} rows`, { exact: true }).waitFor();
	await tab.page.getByText("Columns").click();
	await tab.page.getByRole("checkbox", { name: "Self device", exact: true }).check();
	await tab.page.getByRole("columnheader", { name: "Self device", exact: true }).waitFor();
	await tab.close();
	await server.stop();
	tab.expectQuiet();
});

test("the source opens on the file that takes most time", async () => {
	const server = await Server.start(recorded);
	const trace = server.traces[0]!;
	const tab = await Tab.open(browser, server.at("source", trace));
	const { files } = await tab.page.evaluate(async (id) => (await (await fetch(`api/v1/traces/${id}/lines`)).json()) as LinesReply, trace.id);
	const own = files.filter((file) => !file.is_library);
	const most = own.reduce((a, b) => (b.self_us > a.self_us ? b : a));
	await tab.page.locator(".source-line").first().waitFor();
	expect(await tab.page.getByRole("combobox", { name: "File" }).inputValue()).toBe(most.file);
	await tab.page.getByRole("link", { name: "All files" }).click();
	expect((await readGrid(tab.page, "Files of the program")).rows).toHaveLength(own.length);
	await tab.page.getByRole("checkbox", { name: "My code only" }).uncheck();
	await expect.poll(async () => (await readGrid(tab.page, "Files of the program")).rows.length).toBe(files.length);
	await tab.page.getByRole("checkbox", { name: "My code only" }).check();
	expect(own.length).toBeGreaterThan(0);
	expect(own.length).toBeLessThan(files.length);
	await expect.poll(async () => (await readGrid(tab.page, "Files of the program")).rows.length).toBe(own.length);
	await tab.close();
	await server.stop();
	tab.expectQuiet();
});

test("stacks show the backward pass under its forward operators, or as it ran", async () => {
	const server = await Server.start(recorded);
	const trace = server.traces[0]!;
	const tab = await Tab.open(browser, server.at("stacks", trace, "find=AddmmBackward0"));
	const { page } = tab;
	/** Paths from the root to the frames of that name. */
	const paths = async (query: string) => {
		const stacks = await page.evaluate(async (path) => (await (await fetch(path)).json()) as StacksReply, `api/v1/traces/${trace.id}/stacks${query}`);
		const above = (i: number): string => (i < 0 ? "" : `${above(stacks.parent[i]!)}/${stacks.names[stacks.name[i]!]!.name}`);
		return stacks.name.flatMap((name, i) => (stacks.names[name]!.name === "AddmmBackward0" ? [above(i)] : []));
	};
	const under = await paths("");
	const run = await paths("?backward=as_run");
	expect(under.length).toBeGreaterThan(0);
	expect(under.every((path) => path.includes("forward"))).toBe(true);
	expect(run.length).toBeGreaterThan(0);
	expect(run.some((path) => path.includes("forward("))).toBe(false);
	const choice = page.getByRole("group", { name: "Backward pass" });
	expect(await choice.getByRole("button", { name: "Backward under its forward" }).getAttribute("aria-pressed")).toBe("true");
	await page.locator(".flame-box.found").first().waitFor();
	await choice.getByRole("button", { name: "As it ran" }).click();
	await page.waitForFunction(() => location.hash.includes("backward=as_run"));
	await page.locator(".flame-box.found").first().waitFor();
	await tab.shot("stacks-as-run");
	await tab.close();
	await server.stop();
	tab.expectQuiet();
});

test("every view of a trace that ends early says so, and none predicts a gain", async () => {
	const folder = mkdtempSync(join(tmpdir(), "opstrobe-early-"));
	const steps = [0, 1, 2].flatMap((i) => [
		{ ph: "X", cat: "user_annotation", name: `ProfilerStep#${i}`, pid: 1, tid: 1, ts: 1000 * i, dur: 1000 },
		{ ph: "X", cat: "user_annotation", name: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", pid: 1, tid: 1, ts: 1000 * i + 10, dur: 800 },
		{ ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 1, ts: 1000 * i + 850, dur: 100 },
	]);
	const whole = JSON.stringify({ traceEvents: steps });
	writeFileSync(join(folder, "whole.json"), whole);
	writeFileSync(join(folder, "early.json"), whole.slice(0, -40));
	const server = await Server.start(join(folder, "early.json"), join(folder, "whole.json"));
	const tab = await Tab.open(browser, server.at("overview", server.trace("early")));
	const { page } = tab;
	await page.getByText("No findings: the trace ends early, so gains are unknown.").waitFor();
	const views = await page.locator("nav a").evaluateAll((all) => all.map((each) => each.getAttribute("href")!));
	expect(views.length).toBeGreaterThan(10);
	for (const href of views) {
		await page.goto(new URL(href, server.url).href);
		await page.getByRole("alert").getByText("Figures of this trace are incomplete or inexact.").waitFor();
	}
	// Also if it is the other one of two that are compared.
	await page.goto(server.at("diff", server.trace("whole"), `base=${server.trace("early").id}`));
	await page.getByRole("alert").getByText("Figures of early.json are incomplete or inexact.").waitFor();
	expect(await page.getByRole("alert").count()).toBe(1);
	await page.goto(server.at("overview", server.trace("whole")));
	await page.getByRole("link", { name: "The program waits for the data loader" }).waitFor(); // as the complete trace has it
	await tab.close();
	await server.stop();
	rmSync(folder, { recursive: true });
	tab.expectQuiet();
});

test("a search and a filter without results say so", async () => {
	const server = await Server.start(recorded);
	const trace = server.traces[0]!;
	const tab = await Tab.open(browser, server.at("stacks", trace, "find=nothing-of-this-name"));
	const { page } = tab;
	await page.getByText("nothing found").waitFor();
	await page.goto(server.at("operators", trace, "operators.q=nothing-of-this-name"));
	await page.getByRole("status").getByText("No row matches 'nothing-of-this-name'.").waitFor();
	await page.getByRole("button", { name: "Clear the filter" }).click();
	await page.locator(".grid-row", { hasText: "aten::" }).first().waitFor();
	await page.goto(server.at("timeline", trace, "q=nothing-of-this-name"));
	await page.getByText("0 hits").waitFor();
	await tab.close();
	await server.stop();
	tab.expectQuiet();
});
