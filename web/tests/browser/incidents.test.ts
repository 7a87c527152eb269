// SPDX-License-Identifier: Apache-2.0
// The incidents of a directory: the list, a report with what the command prints, and its trace in the views.
import { gzipSync } from "node:zlib";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { IncidentReply } from "../../src/data/replies";
import { violations } from "./axe";
import { launch, Tab } from "./browser";
import { readGrid } from "./grid";
import { call, Server } from "./server";

const folder = mkdtempSync(join(tmpdir(), "opstrobe-incidents-"));
const SLOW = "20261123-140711-6434";
const KILLED = "20261123-140718-6645";
const CAUSE = "Sleeping at /home/me/train.py:4 in prepare, 100 % of the time that the step took too long.";
const here = { file: "/home/me/train.py", line: 4, function: "prepare" };
const thread = { tid: 6434, name: "python3", is_main: true, has_gil: false, state: "S", system_call: 230, python: [here, { file: "/home/me/train.py", line: 9, function: "<module>" }, { file: "/usr/lib/opstrobe/launcher/program.py", line: 71, function: "run_program" }] };

const common = { version: 1, pid: 6434, process: "train", host: "vm", command: "train.py --width 8", rank: null, world_size: 0, open_events: [], suppressed: {} };
const slow: IncidentReply & Record<string, unknown> = {
	...common,
	title: "step 150 took 1.51 s, usually 13.1 ms",
	cause: CAUSE,
	cause_kind: "sleep",
	where: here,
	has_trace: true,
	trigger: "slow_step",
	difference: { causes: [{ what: "other", title: "Python and other", is_count: false, value: 1505640, typical: 217 }], events: [] },
	open_events: [{ tid: 6434, name: "aten::mm", open_ns: 100 }],
	thread_doings: ["sleeping"],
	thread_launchers: [1],
	thread_native: [[{ file: "/src/spin.c", line: 9, function: "spin_inner" }, { file: "libffi.so.8", line: 0, function: "ffi_call" }]],
	meanwhile: [{ count: 43, doing: "sleeping", where: here }],
	sampled: { samples: 75, usual_samples: 90, usual_steps: 149, period_ns: 20000000, places: [{ doing: "sleeping", where: here, share: 0.95, usual_share: 0 }] },
	black_box: { overhead: { share: 0.0041, low: 0.001, high: 0.0062, shadow_steps: 212 }, budget: 0.01, detail: "allocations", exceeded: 0.21 },
	memory: {
		growth_per_step_bytes: 2048,
		held: {
			table: {
				columns: ["device", "held_by", "name", "line", "bytes", "percent", "blocks"],
				rows: [
					["cpu", "all", "", null, 4096, 100, 2],
					["cpu", "category", "PARAMETER", null, 3072, 75, null],
					["cpu", "module", "blocks.0", null, 3072, 75, 1],
				],
			},
		},
	},
	time_ns: Date.UTC(2026, 10, 23, 14, 7, 11) * 1e6,
	step: { number: 150, duration_ns: 1506495660, usual_ns: 13119757, goes_on: false },
	over: { duration_ns: 878796013, ran_ns: 4004467, waited_ns: 4979835, collecting_ns: 0, minor_faults: 0, major_faults: 0 },
	sample_count: 43,
	samples: [{ ...thread, count: 43 }],
	threads: [thread],
};
const killed: IncidentReply & Record<string, unknown> = {
	...common,
	title: "killed by SIGSEGV",
	cause: "SIGSEGV at /home/me/<b>train</b>.py:4 in prepare, at address 0x0.",
	cause_kind: "signal",
	where: here,
	has_trace: false,
	trigger: "signal",
	difference: null,
	memory: null,
	time_ns: Date.UTC(2026, 10, 23, 14, 7, 18) * 1e6,
	step: null,
	signal: { python: [here] },
};
const traceEvents = [
	{ ph: "X", cat: "user_annotation", name: "ProfilerStep#150", pid: 1, tid: 1, ts: 0, dur: 1000 },
	{ ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 1, ts: 10, dur: 500 },
];

let browser: Browser;
let server: Server;
beforeAll(async () => {
	for (const [id, report] of [[SLOW, slow], [KILLED, killed]] as const) {
		mkdirSync(join(folder, id));
		writeFileSync(join(folder, id, "report.json"), JSON.stringify(report));
	}
	writeFileSync(join(folder, SLOW, "trace.json.gz"), gzipSync(JSON.stringify({ traceEvents })));
	browser = await launch();
	server = await Server.start(folder);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

const page = (id = "") => `${server.url}#/incidents/${id}`;
const plain = (text: string) => text.replace(/\s+/g, " ");

test("a server of incidents opens with their list, the newest first, as the command prints it", async () => {
	const tab = await Tab.open(browser, server.url);
	const { rows } = await readGrid(tab.page, "Incidents");
	expect(rows.map((row) => row.what)).toEqual([killed.title, slow.title]);
	const { table } = JSON.parse(call("incidents", "--directory", folder, "--box", join(folder, "none"), "--format", "json")) as { table: { columns: string[]; rows: unknown[][] } };
	for (const name of ["when", "process", "cause", "where"]) {
		expect(rows.map((row) => row[name])).toEqual(table.rows.map((row) => row[table.columns.indexOf(name)]));
	}
	await tab.shot("incidents");
	await tab.page.getByRole("link", { name: slow.title }).click();
	await tab.page.getByRole("heading", { name: slow.title }).waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("a report names the cause first, then what differed, threads and memory", async () => {
	const tab = await Tab.open(browser, page(SLOW));
	const { page: shown } = tab;
	const panel = (name: string) => shown.getByRole("region", { name, exact: true });
	await panel("Cause").waitFor();
	const sections = await shown.locator("main section.panel").evaluateAll((all) => all.map((each) => each.getAttribute("aria-label")));
	expect(sections).toEqual(["Cause", "More than in other steps", "While it was too long", "Sampled stacks of its thread", "Threads", "Memory"]);
	const head = plain(await panel("Cause").innerText());
	const costs = ["0.41 % of a step (0.10 % to 0.62 %, 212 shadow steps)", "operators are not recorded: recording took 21.0 % of a step, and the budget is 1.00 %"];
	for (const text of [CAUSE, ...costs, "2026-11-23 14:07:11 UTC", "train (6434) on vm", "train.py --width 8", "150, took 1.51 s, usually 13.1 ms"]) expect(head).toContain(text);
	expect(plain(await panel("More than in other steps").innerText())).toContain("Python and other +1.51 s");
	expect(plain(await panel("While it was too long").innerText())).toContain("100 % sleeping at train.py:4 in prepare");
	const sampled = plain(await panel("Sampled stacks of its thread").innerText());
	expect(sampled).toContain("75 samples of the step and 90 of 149 other steps");
	expect(sampled).toContain("95.0 % (0 % in other steps) sleeping at train.py:4 in prepare");
	const threads = plain(await panel("Threads").innerText());
	expect(threads).toContain("6434 python3, main: sleeping");
	expect(threads).toContain("In aten::mm");
	expect(threads).toContain("C functions spin.c:9 in spin_inner libffi.so.8 in ffi_call Python functions train.py:4 in prepare");
	expect(threads).toContain("train.py:9 in <module>");
	expect(threads).toContain("1 frame starts the program or the thread");
	expect(threads).not.toContain("program.py:71");
	await panel("Threads").getByText("1 frame starts").click();
	expect(plain(await panel("Threads").innerText())).toContain("program.py:71 in run_program");
	const memory = plain(await panel("Memory").innerText());
	expect(memory).toContain("A step adds 2.00 KiB (median).");
	expect(memory).toContain("blocks.0 3.00 KiB 75.0 %");
	// The text has the same figures.
	const said = plain(call("incidents", "--directory", folder, "--box", join(folder, "none"), "show", SLOW));
	for (const text of [CAUSE, ...costs, "95.0 % (0 % in other steps) sleeping at /home/me/train.py:4 in prepare", "150, took 1.51 s", "a step adds 2.00 KiB", "Python and other: +1.51 s"]) expect(said).toContain(text);
	await tab.shot("incident");
	await panel("Cause").getByRole("link", { name: "Step 150 in the timeline" }).click();
	await shown.locator(".tl-canvas[aria-busy=false]").waitFor();
	await shown.waitForFunction(() => location.hash.includes("range=0-1000000"));
	await tab.shot("incident-timeline");
	await shown.getByRole("link", { name: slow.title }).click();
	await panel("Cause").waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("a report without a trace says so, and nothing in it is markup", async () => {
	const tab = await Tab.open(browser, page(KILLED));
	await tab.page.getByText("No trace was kept.").waitFor();
	expect(await tab.page.locator(".incident-cause").innerText()).toContain("<b>train</b>.py:4");
	expect(plain(await tab.page.getByRole("region", { name: "Where it ended" }).innerText())).toContain("train.py:4 in prepare");
	await tab.close();
	tab.expectQuiet();
});

test("an incident that is gone", async () => {
	const tab = await Tab.open(browser, page("20261123-000000-1"));
	await tab.page.getByRole("alert").getByText("incident '20261123-000000-1' does not exist").waitFor();
	await tab.close();
	expect(tab.complaints.filter((each) => !each.includes("404"))).toEqual([]);
});

test("axe finds nothing in either theme", async () => {
	for (const colorScheme of ["light", "dark"] as const) {
		const pages = [["", slow.title], [SLOW, CAUSE], [KILLED, "No trace was kept."], ["20261123-000000-1", "does not exist"]] as const;
		for (const [id, text] of pages) {
			const tab = await Tab.open(browser, page(id), { colorScheme });
			await tab.page.getByText(text).first().waitFor();
			expect(await violations(tab.page)).toEqual([]);
			await tab.close();
		}
	}
});
