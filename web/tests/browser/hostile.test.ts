// SPDX-License-Identifier: Apache-2.0
// A trace that attacks: names that would be markup, script, or the end of one. Nothing of it runs, in any view, and all of
// it is shown as text. And errors of a source are shown in words.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, Tab } from "./browser";
import { Server } from "./server";

const NAMES = [
	"<script>window.attacked = 1</script>",
	"</script><script>window.attacked = 2</script>",
	"<img src=x onerror='window.attacked = 3'>",
	"\"><svg onload=window.attacked=4>",
	"line\u2028separator\u2029 \u0000\u001b[31m",
	"javascript:window.attacked=5",
	"${window.attacked = 6} `'\"\\",
	"=cmd|'/c calc'!A1",
	"\u202eright to left",
	"x".repeat(20_000),
];

let browser: Browser;
let folder: string;
let server: Server;

beforeAll(async () => {
	browser = await launch();
	folder = await mkdtemp(join(tmpdir(), "opstrobe-hostile-"));
	const name = (i: number) => NAMES[i % NAMES.length]!;
	const thread = { pid: NAMES[0], tid: NAMES[1] };
	const events: object[] = [];
	for (let step = 0; step < 3; step++) {
		events.push({ ph: "X", cat: "user_annotation", name: `ProfilerStep#${step}`, ...thread, ts: step * 1000, dur: 990 });
		NAMES.forEach((_, i) => {
			const ts = step * 1000 + 10 + i * 90;
			events.push({ ph: "X", cat: "python_function", name: `${name(i)}(3): ${name(i + 1)}`, ...thread, ts, dur: 80, args: { "Python id": step * 100 + i } });
			events.push({ ph: "X", cat: "cpu_op", name: name(i), ...thread, ts: ts + 5, dur: 60, args: { "External id": i + 1, "Input Dims": [[name(i)]], [name(i)]: name(i + 2) } });
			events.push({ ph: "X", cat: "cuda_runtime", name: name(i + 3), ...thread, ts: ts + 10, dur: 20, args: { correlation: step * 100 + i, "External id": i + 1 } });
			events.push({ ph: "X", cat: "kernel", name: name(i + 4), pid: 0, tid: 7, ts: ts + 20, dur: 30, args: { device: 0, stream: 7, correlation: step * 100 + i, "External id": i + 1, grid: [1, 1, 1], block: [32, 1, 1] } });
			events.push({ ph: "i", cat: "cpu_instant_event", s: "t", name: "[memory]", ...thread, ts: ts + 12, args: { "Device Type": 0, "Device Id": -1, Addr: 4096 + i, Bytes: 1000 * (i + 1), "Total Allocated": 5000, "Total Reserved": 9000 } });
		});
	}
	const trace = { schemaVersion: 1, [NAMES[0]!]: NAMES[1], deviceProperties: [{ id: 0, name: NAMES[2], totalGlobalMem: 1e9, computeMajor: 8, computeMinor: 0 }], traceEvents: events };
	await writeFile(join(folder, "a<img src=x onerror=window.attacked=7>.pt.trace.json"), JSON.stringify(trace));
	await writeFile(join(folder, "b'\"&.pt.trace.json"), JSON.stringify(trace));
	server = await Server.start(folder);
});

afterAll(async () => {
	await browser.close();
	await server.stop();
	await rm(folder, { recursive: true });
});

const VIEWS = ["overview", "advice", "timeline", "operators", "kernels", "roofline", "memory", "modules", "model", "stacks", "source", "distributed", "analyses", "diff", "info"];

test.each(VIEWS)("%s runs nothing that is in the trace", async (view) => {
	const tab = await Tab.open(browser, server.at(view, server.traces[0]!));
	const { page } = tab;
	await page.locator("main").waitFor();
	await page.waitForFunction(() => !document.body.innerText.includes("Loading"));
	// Each row shows more when it is selected; in the timeline it would lead away.
	if (view !== "timeline") {
		await page.evaluate(() => {
			for (const row of document.querySelectorAll<HTMLElement>(".grid-body [role=row]")) row.click();
		});
	}
	expect(await page.evaluate(() => (window as { attacked?: number }).attacked)).toBeUndefined();
	expect(await page.evaluate(() => document.querySelectorAll("main script, main img, main iframe, main [onload], main [onerror]").length)).toBe(0);
	expect(await page.evaluate(() => [...document.querySelectorAll("main a[href]")].filter((link) => !/^(#|https:)/.test(link.getAttribute("href") ?? "")).length)).toBe(0);
	await tab.close();
	expect(tab.complaints.filter((each) => !each.includes("Failed to load resource"))).toEqual([]);
});

test("a view that does not exist leads to one that does, a trace that does not to those that are served", async () => {
	const odd = "?operators.sort=%ZZ&steps=<script>";
	const tab = await Tab.open(browser, `${server.url}#/nothing/ffffffffffff${odd}`);
	await tab.page.getByText("This trace is no longer served").waitFor();
	await tab.close();
	const other = await Tab.open(browser, `${server.url}#/nothing/${server.traces[0]!.id}${odd}`);
	await other.page.getByRole("heading", { name: "What to change" }).waitFor();
	await other.close();
});

test("a refusal of the server is shown in its words", async () => {
	const tab = await Tab.open(browser, server.at("operators", server.traces[0]!, "steps=77"));
	await tab.page.getByRole("alert").waitFor();
	expect(await tab.page.getByRole("alert").innerText()).toContain("the trace has no step 77");
	await tab.close();
});
