// SPDX-License-Identifier: Apache-2.0
// The figures of the pages are those that the commands print as JSON, over many small traces: one server, one page.
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { KernelsReply, OperatorsReply, OverviewReply, TableReply } from "../../src/data/replies";
import { launch, root, Tab } from "./browser";
import { expectShows, expectShowsWithUnit, readGrid } from "./grid";
import { printed, recorded, Server, type Served, shared } from "./server";

type Views = OverviewReply & OperatorsReply & KernelsReply;

const OWN = ["analyze/host.json", "analyze/training.json", "analyze/other_devices.json", "read/kineto.json", "read/forward_unseen.json"];
/** Of the shared traces of so many bytes at most, one in three. */
const SMALL = 60_000;
const EVERY = 3;

function smallTraces(folder: string): string[] {
	const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".json.gz") && !name.endsWith("et.json.gz"));
	const small = files.map((name) => join(folder, name)).filter((path) => statSync(path).size < SMALL);
	return small.sort();
}

const all = shared ? smallTraces(shared) : [];
const PATHS = [recorded, ...OWN.map((name) => join(root, "tests/fuzz", name)), ...all.filter((_, i) => i % EVERY === 0)];

const folder = mkdtempSync(join(tmpdir(), "opstrobe-agreement-"));
const EMPTY_STEP = join(folder, "empty_step.json");
PATHS.push(EMPTY_STEP);

let browser: Browser;
let server: Server;
let tab: Tab;
beforeAll(async () => {
	writeFileSync(EMPTY_STEP, JSON.stringify({ traceEvents: [{ ph: "X", cat: "user_annotation", name: "ProfilerStep#1", pid: 1, tid: 1, ts: 5, dur: 0, args: {} }] }));
	browser = await launch();
	server = await Server.start(...PATHS);
	tab = await Tab.open(browser, server.url);
});
afterAll(async () => {
	tab.expectQuiet();
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

/** Without loading the page again. Neighbouring calls name different views, so that nothing of the one before is on the screen. */
async function go(view: string, trace: Served): Promise<void> {
	await tab.page.evaluate((hash) => location.assign(hash), `#/${view}/${trace.id}`);
}

async function checkOverview(trace: Served, views: Views, peaks: number[]): Promise<void> {
	const { steps } = views;
	await go("overview", trace);
	const card = (title: string) => tab.page.locator(".card").filter({ has: tab.page.getByRole("heading", { name: title, exact: true }) });
	await tab.page.locator(".top-list, .empty, .panel").first().waitFor();
	const title = steps.from === "none" ? "Whole recording" : steps.rows.length > 1 ? "Median step" : "Step";
	expectShowsWithUnit(await card(title).locator(".card-figure").innerText(), steps.rows.length > 1 ? steps.median! : steps.average.total, title);
	if (title === "Median step") {
		const [, count = "", mean = "", p95 = ""] = /of (\d+) steps: mean (.*?), p95 (.*?),/.exec(await card(title).locator("p.soft").innerText()) ?? [];
		expect(Number(count)).toBe(steps.rows.length);
		expectShowsWithUnit(mean, steps.average.total, "mean");
		expectShowsWithUnit(p95, steps.p95!, "p95");
	}
	if (peaks.length > 0) expectShowsWithUnit(await card("Memory at the peak").locator(".card-figure").innerText(), Math.max(...peaks), "the peak");
	const tables = [
		["part", steps.breakdown],
		["phase", steps.phases],
	] as const;
	for (const [kind, table] of tables) {
		const rows = await tab.page.locator(`tr[data-${kind}]`).evaluateAll((rows, kind) => rows.map((row) => [row.getAttribute(`data-${kind}`) ?? "", ...[...row.querySelectorAll("td")].map((cell) => cell.textContent)]), kind);
		const average = (table?.average ?? {}) as Record<string, number>;
		const percent = (table?.average_pct ?? {}) as Record<string, number | null>;
		expect(rows.length > 0, `${kind}s of ${trace.name}`).toBe(kind === "part" || average.total! > 0);
		for (const [name = "", time = "", share = ""] of rows) {
			expectShowsWithUnit(time, average[name]!, name);
			if (percent[name] === null) expect(share).toBe("–");
			else if (percent[name] !== undefined) expectShowsWithUnit(share, percent[name], name);
		}
	}
	const device = views.flags.has_kernel || views.flags.has_memcpy_or_memset;
	const top = tab.page.locator(".top-list li");
	const wanted = views.operators.rows.slice(0, 8);
	if (wanted.length > 0) await top.first().waitFor();
	expect(await top.locator(".name").allInnerTexts()).toEqual(wanted.map((row) => row.name));
	for (const [i, text] of (await top.locator(".figure").allInnerTexts()).entries()) {
		expectShowsWithUnit(text, device ? wanted[i]!.device_self : wanted[i]!.host_self, wanted[i]!.name);
	}
}

async function checkOperators(trace: Served, views: Views): Promise<void> {
	await go("operators", trace);
	if (views.operators.rows.length === 0) return tab.page.locator(".empty").first().waitFor();
	const { units, rows } = await readGrid(tab.page, "Operators", 20);
	const by = new Map(views.operators.rows.map((row) => [row.name, row]));
	expect(rows.length).toBeGreaterThanOrEqual(Math.min(10, by.size));
	for (const row of rows) {
		const wanted = by.get(row.name!)!;
		expectShows(row.calls!, "", wanted.calls, `calls of ${row.name}`);
		for (const figure of ["host_self", "host_total", "device_self", "device_total"] as const) {
			if (row[figure] !== undefined) expectShows(row[figure], units[figure]!, wanted[figure], `${figure} of ${row.name}`);
		}
	}
}

async function checkKernels(trace: Served, views: Views): Promise<void> {
	await go("kernels", trace);
	if (!views.kernels) return tab.page.getByText("No GPU activity.").waitFor();
	const { units, rows } = await readGrid(tab.page, "Kernels", 20);
	for (const [i, row] of rows.entries()) {
		const wanted = views.kernels.rows[i]!;
		for (const figure of ["calls", "total", "mean", "max"] as const) expectShows(row[figure]!, units[figure]!, wanted[figure], `${figure} of ${row.name}`);
	}
}

async function checkModules(trace: Served, { columns, rows: table }: TableReply["table"]): Promise<void> {
	await go("modules", trace);
	if (table.length === 0) return tab.page.getByText("No module calls.").waitFor();
	const { units, rows } = await readGrid(tab.page, "Modules", 15);
	const shallow = table.filter((row) => Number(row[columns.indexOf("depth")]) <= 3);
	const shown = { calls: "calls", forward: "host_us", forward_self: "self_host_us", backward: "backward_us", device: "device_us" };
	for (const [i, row] of rows.entries()) {
		for (const [id, column] of Object.entries(shown)) {
			if (row[id]) expectShows(row[id], units[id] ?? "", Number(shallow[i]![columns.indexOf(column)]), `${id} of ${row.name}`);
		}
	}
}

test.each(PATHS.map((path) => [path.replace(root, "."), path]))("%s", async (_, path) => {
	const trace = server.trace(path);
	const views = printed("views", path) as Views;
	const { table: memory } = printed("memory", path) as TableReply;
	await checkOverview(trace, views, memory.rows.filter((row) => row[1] === "all").map((row) => Number(row[4])));
	await checkOperators(trace, views);
	await checkKernels(trace, views);
	await checkModules(trace, (printed("modules", path) as TableReply).table);
});

if (!shared) test.skip("the shared traces, which are not here");
