// SPDX-License-Identifier: Apache-2.0
// The overview of a trace with a slow step on a busy machine, and which views the navigation dims.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AdviceReply, OverviewReply } from "../../src/data/replies";
import { launch, Tab } from "./browser";
import { expectShows } from "./grid";
import { printed, Server } from "./server";

const row = (cat: string, name: string, ts: number, dur: number) => ({ ph: "X", cat, name, pid: 1, tid: 1, ts, dur, args: {} });

/** Eight steps of 100 µs; step 5 takes 400 µs, 300 µs of them in aten::nonzero. */
function busy(): object {
	const events = [];
	for (let i = 0, at = 0; i < 8; i++) {
		const length = i === 5 ? 400 : 100;
		events.push(row("user_annotation", `ProfilerStep#${i}`, at, length), row("cpu_op", "aten::mm", at + 5, 40));
		events.push(row("cpu_op", "autograd::engine::evaluate_function: MmBackward0", at + 50, 20), row("user_annotation", "Optimizer.step#SGD.step", at + 80, 10));
		if (i === 5) events.push(row("cpu_op", "aten::nonzero", at + 95, 300));
		at += length;
	}
	const steps = Array.from({ length: 8 }, (_, i) => [i, 70000, 20000, 0, 0]);
	return { machine: { processors: 2, steps }, traceEvents: events };
}

/** Six steps that wait for their data for most of their time, and for a CPU for 230 of 1,000 µs. */
function loading(): object {
	const events = Array.from({ length: 6 }, (_, i) => [
		row("user_annotation", `ProfilerStep#${i}`, 1000 * i, 1000),
		row("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1000 * i, 600),
		row("cpu_op", "aten::mm", 1000 * i + 650, 300),
	]).flat();
	return { machine: { processors: 2, steps: Array.from({ length: 6 }, (_, i) => [i, 800_000, 230_000, 0, 0]) }, traceEvents: events };
}

let browser: Browser;
let server: Server;
let folder: string;
let views: OverviewReply;
beforeAll(async () => {
	folder = mkdtempSync(join(tmpdir(), "opstrobe-overview-"));
	writeFileSync(join(folder, "busy.json"), JSON.stringify(busy()));
	browser = await launch();
	server = await Server.start(join(folder, "busy.json"));
	views = printed("views", join(folder, "busy.json")) as OverviewReply;
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

test("a slow step is explained, and a busy machine is mentioned", async () => {
	const tab = await Tab.open(browser, server.at("overview", server.traces[0]!));
	const card = (title: string) => tab.page.locator(".card", { hasText: title }).locator(".card-figure");
	await tab.page.locator(".slow-steps").waitFor();
	expectShows(await card("Median step").innerText(), views.steps.median!, "the median step");
	const waited = views.steps.waited_for_cpu!;
	expect(waited.ratio).toBeCloseTo(160 / 1100);
	expectShows(await card("Waited for a CPU").innerText(), 100 * waited.ratio, "the share of waiting");
	expect(await tab.page.getByRole("alert").innerText()).toContain("Steps waited for a CPU for 14.5 % of their time");
	const slow = await tab.page.locator(".slow-steps > li").allInnerTexts().then((texts) => texts.map((text) => text.replace(/\s/g, " ")));
	expect(slow).toHaveLength(1);
	expect(slow[0]).toContain("Step 5: 400 µs, 300 µs more than the median");
	expect(slow[0]).toContain("operators +300 µs");
	expect(slow[0]).toContain("aten::nonzero +300 µs (1 call, usually 0)");
	expect(await tab.page.locator("tr[data-phase]").count()).toBe(4);
	await tab.page.locator(".slow-steps a").first().click();
	await tab.page.waitForURL(/#\/timeline\//);
	await tab.close();
	tab.expectQuiet();
});

test("each gain has the share of waits for a CPU next to it", async () => {
	writeFileSync(join(folder, "loading.json"), JSON.stringify(loading()));
	const both = await Server.start(join(folder, "busy.json"), join(folder, "loading.json"));
	const tab = await Tab.open(browser, both.at("overview", both.traces.find((each) => each.name.startsWith("loading"))!));
	const { page } = tab;
	const { findings } = printed("advise", join(folder, "loading.json")) as AdviceReply;
	const gains = findings.filter((finding) => finding.predicted_gain_percent! > 0);
	expect(gains.map((finding) => finding.predicted_gain_warning)).toContain("waited for a CPU: 23.0 %");
	const expectWarnings = async (place: string) => expect((await page.locator(`${place} .warning`).allInnerTexts()).map((text) => text.trim())).toEqual(gains.map((finding) => finding.predicted_gain_warning));
	await page.locator(".finding-line").first().waitFor();
	await expectWarnings(".finding-line");
	await tab.shot("overview-gains");
	await page.locator(".finding-line a").first().click();
	await page.locator(".finding .gain-bar").first().waitFor();
	await expectWarnings(".finding");
	await expectWarnings("nav.summary");
	await page.goto(`${both.url}#/traces`);
	await page.getByText(`${findings[0]!.title}; waited for a CPU: 23.0 %`).waitFor();
	await tab.close();
	await both.stop();
	tab.expectQuiet();
});

test("views without data are dimmed", async () => {
	const tab = await Tab.open(browser, server.at("overview", server.traces[0]!));
	await tab.page.locator("nav a.empty-view").first().waitFor();
	expect(await tab.page.locator("nav a.empty-view").allInnerTexts()).toEqual(["Kernels", "Roofline", "Memory", "Modules", "Model", "Source", "Distributed", "Diff"]);
	const kernels = tab.page.locator("nav a.empty-view", { hasText: "Kernels" });
	expect(await kernels.getAttribute("title")).toBe("Device work, and the operators that launched it. No data in this trace: record a program that uses a GPU, with the activity CUDA.");
	await kernels.click();
	await tab.page.getByText("No GPU activity.").waitFor();
	await tab.close();
	tab.expectQuiet();
});

/** Eight equal steps of 100 µs, nearly all of them in one operator, about which no rule has anything to say. */
function uneventful(): object {
	const call = { "Call stack": "train.py(12): <module>" };
	const events = Array.from({ length: 8 }, (_, i) => [
		row("user_annotation", `ProfilerStep#${i}`, 100 * i, 100),
		{ ...row("cpu_op", "aten::cdist", 100 * i + 2, 95), args: call },
	]).flat();
	return { traceEvents: events };
}

test("without a finding, the line with the most time is shown, as in text", async () => {
	const path = join(folder, "uneventful.json");
	writeFileSync(path, JSON.stringify(uneventful()));
	const { findings, not_explained: rest } = printed("advise", path) as AdviceReply;
	expect(findings).toEqual([]);
	const one = await Server.start(path);
	const tab = await Tab.open(browser, one.at("overview", one.traces[0]!));
	const card = tab.page.getByRole("region", { name: "What to change" });
	await card.getByText("Most time").waitFor();
	expect(await card.getByRole("link", { name: "train.py:12" }).count()).toBe(1);
	expect(await card.innerText()).toContain(rest!.lines[0]!.text);
	await tab.close();
	tab.expectQuiet();
	await one.stop();
});
