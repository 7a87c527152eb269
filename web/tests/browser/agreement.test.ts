// SPDX-License-Identifier: Apache-2.0
// The figures of the pages are those that the commands print as JSON, over every trace of the repository and those next to it: one
// server, two pages.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { KernelsReply, OperatorsReply, OverviewReply, TableReply, TimelineReply } from "../../src/data/replies";
import { parseRoute } from "../../src/app/route";
import { launch, root, Tab } from "./browser";
import { expectShows, readGrid } from "./grid";
import { callMeanwhile, printedMeanwhile, recorded, Server, type Served, shared } from "./server";

type Views = OverviewReply & OperatorsReply & KernelsReply;

const TABS = 2;

function tracesIn(folder: string, suffix = /\.json(\.gz)?$/): string[] {
	// Execution traces have no times, so that views refuse them.
	const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => suffix.test(name) && !/et\.json\.gz$|(^|\/)execution\.json$/.test(name));
	return files.map((name) => join(folder, name)).sort();
}

const folder = mkdtempSync(join(tmpdir(), "opstrobe-agreement-"));
const row = (cat: string, name: string, ts: number, dur: number) => ({ ph: "X", cat, name, pid: 1, tid: 1, ts, dur, args: {} });
const MADE = {
	"empty_step.json": [row("user_annotation", "ProfilerStep#1", 5, 0)],
	// Ranges of Lightning's profiler are its modules.
	"lightning.json": [0, 1].flatMap((step) => [
		row("user_annotation", `ProfilerStep#${step}`, 1000 * step, 900),
		row("cpu_op", "[pl][profile][Strategy]SingleDeviceStrategy.training_step", 1000 * step + 5, 500),
		row("cpu_op", "[pl][module]torch.nn.modules.container.Sequential: layers", 1000 * step + 10, 400),
		row("cpu_op", "[pl][module]torch.nn.modules.linear.Linear: layers.0", 1000 * step + 20, 250),
		row("cpu_op", "aten::addmm", 1000 * step + 30, 200),
	]),
};
for (const [name, traceEvents] of Object.entries(MADE)) writeFileSync(join(folder, name), JSON.stringify({ traceEvents }));
const others = shared ? tracesIn(shared, /\.json\.gz$/) : [];
const PATHS = [recorded, ...["analyze", "read"].flatMap((name) => tracesIn(join(root, "tests/fuzz", name))), ...tracesIn(folder), ...others];

let browser: Browser;
let server: Server;
let tabs: Tab[];
const waiting: ((tab: Tab) => void)[] = [];
beforeAll(async () => {
	browser = await launch();
	server = await Server.start(...PATHS);
	tabs = await Promise.all(Array.from({ length: TABS }, () => Tab.open(browser, server.url)));
});
afterAll(async () => {
	for (const tab of tabs) tab.expectQuiet();
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

async function withTab(use: (tab: Tab) => Promise<void>): Promise<void> {
	const tab = tabs.pop() ?? (await new Promise<Tab>((free) => waiting.push(free)));
	try {
		await use(tab);
	} finally {
		const next = waiting.shift();
		if (next) next(tab);
		else tabs.push(tab);
	}
}

/** Without loading the page again. Neighbouring calls name different views, so that nothing of the one before is on the screen. */
async function go(tab: Tab, view: string, trace: Served, query = ""): Promise<void> {
	await tab.page.evaluate((hash) => location.assign(hash), `#/${view}/${trace.id}${query}`);
}

/** Commands print sums over the complete trace. */
const WHOLE = "?steps=all";

/** What the commands print of the steps on which views open; undefined if they open on the complete trace. */
async function printedOfSteps(tab: Tab, path: string, trace: Served): Promise<{ views: Views; modules: TableReply["table"] } | undefined> {
	const { opening } = await tab.page.evaluate(async (path) => (await (await fetch(path)).json()) as TimelineReply, `api/v1/traces/${trace.id}/timeline`);
	if (!opening) return undefined;
	const part = join(folder, `${trace.id}.steps.json`);
	await callMeanwhile("cut", "--steps", opening.steps, path, part);
	const [views, modules] = await Promise.all(["views", "modules"].map((command) => printedMeanwhile(command, part)));
	rmSync(part);
	return { views: views as Views, modules: (modules as TableReply).table };
}

/** The shares that the command prints of the parts of the average step, or of its phases. */
function sharesIn(text: string, title: string): string[] {
	const [, block = ""] = new RegExp(`^(?:${title}) .*share.*\\n((?:.+\\n)*)`, "m").exec(text) ?? [];
	return [...block.matchAll(/ (<?[\d.,]+ %)/g)].map(([, share = ""]) => share);
}

async function checkOverview(tab: Tab, path: string, trace: Served, views: Views, ofSteps: Views | undefined, peaks: number[]): Promise<void> {
	const { steps } = views;
	await go(tab, "overview", trace);
	const card = (title: string) => tab.page.locator(".card").filter({ has: tab.page.getByRole("heading", { name: title, exact: true }) });
	await tab.page.locator(".top-list, .empty, .panel").first().waitFor();
	const step = steps.from === "iterations" ? "iteration" : "step";
	const single = steps.from === "iterations" ? "Iteration" : "Step";
	const title = steps.from === "none" ? "Whole recording" : steps.rows.length < 2 ? single : `Median ${step}`;
	expectShows(await card(title).locator(".card-figure").innerText(), steps.rows.length > 1 ? steps.median! : steps.breakdown.average.total, title);
	if (title.startsWith("Median ")) {
		const [, count = "", mean = "", p95 = ""] = /of (\d+) (?:steps|iterations): mean (.*?), p95 (.*?),/.exec(await card(title).locator("p.soft").innerText()) ?? [];
		expect(Number(count)).toBe(steps.rows.length);
		expectShows(mean, steps.breakdown.average.total, "mean");
		expectShows(p95, steps.p95!, "p95");
	}
	if (peaks.length > 0) expectShows(await card("Memory at the peak").locator(".card-figure").innerText(), Math.max(...peaks), "the peak");
	const text = await callMeanwhile("views", path);
	const tables = [
		["part", steps.breakdown, "average step|parts"],
		["phase", steps.phases, "phases of a step, on the host|phases, on the host"],
	] as const;
	for (const [kind, table, title] of tables) {
		const rows = await tab.page.locator(`tr[data-${kind}]`).evaluateAll((rows, kind) => rows.map((row) => [row.getAttribute(`data-${kind}`) ?? "", ...[...row.querySelectorAll("td")].map((cell) => cell.textContent)]), kind);
		const average = (table?.average ?? {}) as Record<string, number>;
		const percent = (table?.average_pct ?? {}) as Record<string, number | null>;
		expect(rows.length > 0, `${kind}s of ${trace.name}`).toBe(kind === "part" || average.total! > 0);
		const isSome = (share: string | null | undefined) => share !== "0 %" && share !== "–";
		expect(rows.flatMap(([name, , share = ""]) => (name !== "total" && isSome(share) ? share : [])), `shares of ${kind}s`).toEqual(sharesIn(text, title).filter(isSome));
		for (const [name = "", time = "", share = ""] of rows) {
			expectShows(time, average[name]!, name);
			if (percent[name] === null) expect(share).toBe("–");
			else if (percent[name] !== undefined) expectShows(share, percent[name], name);
		}
	}
	const device = views.flags.has_kernel || views.flags.has_memcpy_or_memset;
	const top = tab.page.locator(".top-list li");
	const all = tab.page.getByRole("link", { name: /^All \d+ operators$/ });
	await all.waitFor();
	const chosen = parseRoute((await all.getAttribute("href"))!).params.get("steps");
	expect(chosen !== undefined, "opens on the steps").toBe(ofSteps !== undefined);
	const { operators } = ofSteps ?? views;
	const wanted = operators.rows.slice(0, 8);
	if (wanted.length > 0) await top.first().waitFor();
	expect(await top.locator(".name").allInnerTexts()).toEqual(wanted.map((row) => row.name));
	for (const [i, text] of (await top.locator(".figure").allInnerTexts()).entries()) {
		expectShows(text, device ? wanted[i]!.device_self : wanted[i]!.host_self, wanted[i]!.name);
	}
}

async function checkOperators(tab: Tab, trace: Served, views: Views, query: string): Promise<void> {
	await go(tab, "operators", trace, query);
	if (views.operators.rows.length === 0) return tab.page.locator(".empty").first().waitFor();
	const { rows } = await readGrid(tab.page, "Operators", 20);
	const by = new Map(views.operators.rows.map((row) => [row.name, row]));
	expect(rows.length).toBeGreaterThanOrEqual(Math.min(10, by.size));
	for (const row of rows) {
		const wanted = by.get(row.name!)!;
		expectShows(row.calls!, wanted.calls, `calls of ${row.name}`);
		for (const figure of ["host_self", "host_total", "device_self", "device_total"] as const) {
			if (row[figure] !== undefined) expectShows(row[figure], wanted[figure], `${figure} of ${row.name}`);
		}
		if (row.host_mean !== undefined) expectShows(row.host_mean, wanted.host_total / wanted.calls, `mean of ${row.name}`);
	}
}

async function checkKernels(tab: Tab, trace: Served, views: Views, query: string): Promise<void> {
	await go(tab, "kernels", trace, query);
	if (!views.kernels) return tab.page.getByText("No GPU activity.").waitFor();
	const { rows } = await readGrid(tab.page, "Kernels", 20);
	for (const [i, row] of rows.entries()) {
		const wanted = views.kernels.rows[i]!;
		for (const figure of ["calls", "total", "mean", "max"] as const) expectShows(row[figure]!, wanted[figure], `${figure} of ${row.name}`);
	}
}

async function checkModules(tab: Tab, trace: Served, { columns, rows: table }: TableReply["table"], query: string): Promise<void> {
	await go(tab, "modules", trace, query);
	if (table.length === 0) return tab.page.getByText("No module calls.").waitFor();
	const { rows } = await readGrid(tab.page, "Modules", 15);
	const shallow = table.filter((row) => Number(row[columns.indexOf("depth")]) <= 3);
	const shown = { calls: "calls", forward: "host_us", forward_self: "self_host_us", backward: "backward_us", device: "device_us" };
	for (const [i, row] of rows.entries()) {
		for (const [id, column] of Object.entries(shown)) {
			if (row[id]) expectShows(row[id], Number(shallow[i]![columns.indexOf(column)]), `${id} of ${row.name}`);
		}
		if (row.per_call) expectShows(row.per_call, Number(shallow[i]![columns.indexOf("host_us")]) / Number(shallow[i]![columns.indexOf("calls")]), `mean of ${row.name}`);
	}
}

interface Advice {
	summary: string;
	findings: { title: string; predicted_gain_percent: number | null }[];
}

async function checkAdvice(tab: Tab, trace: Served, { findings, summary }: Advice): Promise<void> {
	await go(tab, "advice", trace);
	await tab.page.locator(".advice, .empty, .panel").first().waitFor();
	if (findings.length === 0) return tab.page.getByText(summary).or(tab.page.getByText("No findings: the trace ends early")).first().waitFor();
	const shown = tab.page.getByRole("navigation", { name: "Findings" }).locator("ol button");
	await shown.first().waitFor();
	for (const [i, text] of (await shown.allInnerTexts()).entries()) {
		expect(text.endsWith(findings[i]!.title), `finding ${i}: ${text}`).toBe(true);
		const gain = /-([\d.,]+) %/.exec(text)?.[1];
		if (gain !== undefined) expectShows(gain, findings[i]!.predicted_gain_percent!, text);
	}
	expect(await shown.count()).toBe(findings.length);
}

async function checkMemory(tab: Tab, trace: Served, peaks: number[]): Promise<void> {
	await go(tab, "memory", trace);
	if (peaks.length === 0) return tab.page.locator(".empty").first().waitFor();
	const peak = (await tab.page.locator("h2", { hasText: /^Peak: / }).innerText()).replace(/^Peak: (\S+ \w+).*$/s, "$1");
	if (peaks.length === 1) expectShows(peak, peaks[0]!, "the peak");
}

test.concurrent.each(PATHS.map((path) => [path.replace(root, "."), path]))("%s", (_, path) =>
	withTab(async (tab) => {
		const trace = server.trace(path);
		const [views, memory, modules, advice] = await Promise.all(["views", "memory", "modules", "advise"].map((command) => printedMeanwhile(command, path)));
		const peaks = (memory as TableReply).table.rows.filter((row) => row[1] === "all").map((row) => Number(row[4]));
		const ofSteps = await printedOfSteps(tab, path, trace);
		await checkOverview(tab, path, trace, views as Views, ofSteps?.views, peaks);
		await checkOperators(tab, trace, views as Views, WHOLE);
		await checkKernels(tab, trace, views as Views, WHOLE);
		await checkModules(tab, trace, (modules as TableReply).table, WHOLE);
		if (ofSteps) {
			await checkOperators(tab, trace, ofSteps.views, "");
			await checkKernels(tab, trace, ofSteps.views, "");
			await checkModules(tab, trace, ofSteps.modules, "");
		}
		await checkMemory(tab, trace, peaks);
		await checkAdvice(tab, trace, advice as Advice);
	}),
);

test(`${PATHS.length} traces are compared, of which ${others.length} are not in the repository`, () => {
	expect(PATHS.length).toBeGreaterThan(12);
});
