// SPDX-License-Identifier: Apache-2.0
// `opstrobe report`: the page that the command writes of a trace, opened from disk, shows every view without a server, and
// runs nothing that stands in the trace.
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, Tab } from "./browser";
import { call, printed, recorded } from "./server";

const VIEWS = ["overview", "advice", "timeline", "operators", "kernels", "memory", "modules", "stacks", "analyses", "info"];
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
	expect(await tab.page.getByText(NOT_HERE).count()).toBe(0);
	await tab.shot(`report-${view}`);
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

test("what is asked for beyond it is told to be missing, not shown empty", async () => {
	const tab = await Tab.open(browser, `${url}#/analyses?id=temporal_breakdown`);
	await tab.page.getByText(NOT_HERE).first().waitFor();
	await tab.close();
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
