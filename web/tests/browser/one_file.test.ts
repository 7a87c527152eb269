// SPDX-License-Identifier: Apache-2.0
// `opstrobe report`: the page that the command writes of a trace, opened from disk, shows every view without a server, and
// runs nothing that is in the trace.
import { copyFile, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Distributed } from "../../src/data/replies";
import { violations } from "./axe";
import { launch, Tab } from "./browser";
import { expectShows, readGrid } from "./grid";
import { call, printed, recorded, shared } from "./server";

const VIEWS = ["overview", "advice", "timeline", "operators", "kernels", "roofline", "memory", "modules", "model", "stacks", "source", "analyses", "info"];
const NOT_HERE = "This is not in the report";
const HOSTILE = `</script><script>window.ran=1</script>\u2028<img src=x onerror="window.ran=1">`;

let browser: Browser;
let folder: string;
let url: string;

beforeAll(async () => {
	browser = await launch();
	folder = await mkdtemp(join(tmpdir(), "opstrobe-report-"));
	const file = join(folder, "report.html");
	call("report", "-o", file, recorded);
	expect((await stat(file)).size).toBeLessThan(5e6);
	url = pathToFileURL(file).href;
});

afterAll(async () => {
	await browser.close();
	await rm(folder, { recursive: true });
});

test.each(VIEWS)("%s is in the report", async (view) => {
	const tab = await Tab.open(browser, `${url}#/${view}`);
	await tab.page.locator(".view, canvas").first().waitFor();
	await tab.page.waitForFunction(() => document.querySelector("p.note[role=status]") === null);
	// Of the program only the figures of its lines are in a report, not its text.
	if (view === "source") await tab.page.getByText(`Only lines that took time are shown: ${NOT_HERE}`).waitFor();
	else expect(await tab.page.getByText(NOT_HERE).count()).toBe(0);
	await tab.shot(`report-${view}`);
	for (const colorScheme of ["light", "dark"] as const) {
		await tab.page.emulateMedia({ colorScheme });
		expect(await violations(tab.page), `what axe finds in the ${colorScheme} theme`).toEqual([]);
	}
	tab.expectQuiet();
	await tab.close();
});

test("its figures are those that the command prints", async () => {
	const { operators } = printed("views", recorded) as { operators: { rows: { name: string; calls: number }[] } };
	const tab = await Tab.open(browser, `${url}#/operators`);
	await tab.page.getByRole("row").nth(1).waitFor();
	const shown = await tab.page.getByRole("row").nth(1).innerText();
	const operator = operators.rows.find((row) => shown.startsWith(row.name));
	expect(shown.split(/\s+/)).toContain(String(operator?.calls));
	await tab.close();
});

test("only the analyses that are in the report are offered", async () => {
	const tab = await Tab.open(browser, `${url}#/analyses`);
	const offered = tab.page.getByRole("navigation", { name: "Analyses" }).getByRole("button");
	await offered.first().waitFor();
	for (const each of await offered.all()) {
		await each.click();
		await tab.page.locator("section.panel .answer, section.panel .grid, section.panel .empty, section.panel .soft").first().waitFor();
		expect(await tab.page.getByText(NOT_HERE).count()).toBe(0);
	}
	expect(await offered.count()).toBe(2);
	await tab.close();
	tab.expectQuiet();
});

test("data that the file does not contain is marked as missing, not shown empty", async () => {
	const tab = await Tab.open(browser, `${url}#/analyses?id=temporal_breakdown`);
	await tab.page.getByText(NOT_HERE).first().waitFor();
	await tab.close();
});

test("a run with a broken rank is none: the rank and what is wrong are named", async () => {
	const run = await mkdtemp(join(folder, "broken-"));
	await copyFile(recorded, join(run, "rank0.pt.trace.json.gz"));
	await writeFile(join(run, "rank1.pt.trace.json"), "[}");
	expect(() => call("report", "-o", join(run, "report.html"), run)).toThrow(/cannot read trace '[^']*rank1\.pt\.trace\.json': byte 1: /);
	await expect(stat(join(run, "report.html"))).rejects.toThrow("ENOENT");
});

describe.runIf(shared)("a run of two ranks", () => {
	const run = join(shared ?? "", "kineto-tb/recorded/ddp"); // also without the traces, this function runs
	let ranks: string;
	beforeAll(async () => {
		const file = join(folder, "run.html");
		call("report", "-o", file, run);
		expect((await stat(file)).size).toBeLessThan(5e6);
		ranks = pathToFileURL(file).href;
	});

	test.each([...VIEWS, "distributed"])("%s of both is in the report", async (view) => {
		const tab = await Tab.open(browser, `${ranks}#/${view}`);
		const settled = async () => {
			await tab.page.locator(".view, canvas").first().waitFor();
			await tab.page.waitForFunction(() => document.querySelector("p.note[role=status]") === null);
			expect(await tab.page.getByText(NOT_HERE).count()).toBe(0);
		};
		await settled();
		const choice = tab.page.getByRole("combobox", { name: "Trace", exact: true });
		const [first, second] = await choice.locator("option").evaluateAll((options) => options.map((option) => (option as HTMLOptionElement).value));
		expect(await choice.inputValue()).toBe(first);
		await choice.selectOption(second!);
		await tab.page.waitForFunction((id) => location.hash.includes(id), second!);
		await settled();
		await tab.shot(`report-run-${view}`);
		await tab.close();
		tab.expectQuiet();
	});

	test("what the ranks say together is what the command prints", async () => {
		const wanted = (printed("views", run) as { distributed: Distributed }).distributed;
		const tab = await Tab.open(browser, `${ranks}#/distributed`);
		const { rows } = await readGrid(tab.page, "Collective operations");
		expect(rows).toHaveLength(wanted.workers.reduce((sum, worker) => sum + wanted.ops[worker]!.length, 0));
		for (const row of rows) {
			const operation = wanted.ops[wanted.workers.find((worker) => row.worker!.includes(worker))!]!.find((each) => each.name === row.name)!;
			expectShows(row.data_transfer!, operation.data_transfer, `${row.name} of ${row.worker}`);
		}
		for (const view of ["advice", "analyses"]) {
			await tab.page.goto(`${ranks}#/${view}?of=run`);
			await tab.page.getByRole("button", { name: "All 2 of the run", pressed: true }).waitFor();
			await tab.page.locator(".finding, .empty, .answer, .grid").first().waitFor();
			expect(await tab.page.getByText(NOT_HERE).count()).toBe(0);
		}
		await tab.close();
		tab.expectQuiet();
	});
});

test("nothing of a trace runs", async () => {
	const trace = join(folder, "hostile.pt.trace.json");
	const event = { ph: "X", cat: "cpu_op", name: HOSTILE, pid: 1, tid: 1, ts: 0, dur: 5, args: { [HOSTILE]: HOSTILE } };
	await writeFile(trace, JSON.stringify({ [HOSTILE]: HOSTILE, traceEvents: [event] }));
	const file = join(folder, "hostile.html");
	call("report", "-o", file, trace);
	for (const view of VIEWS) {
		const tab = await Tab.open(browser, `${pathToFileURL(file).href}#/${view}`);
		await tab.page.locator(".view, canvas").first().waitFor();
		expect(await tab.page.evaluate(() => "ran" in window)).toBe(false);
		await tab.close();
	}
});
