// SPDX-License-Identifier: Apache-2.0
// Ten questions of whoever profiles a program. Each trace has a planted answer, which one command prints, and which the page
// shows after three clicks at most, counted from the overview.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, Tab } from "./browser";
import { readGrid } from "./grid";
import { call, Server } from "./server";

const CLICKS = 3;
const STEPS = 8;
const ODD_STEP = 5;
const folder = mkdtempSync(join(tmpdir(), "opstrobe-questions-"));
const program = join(folder, "train.py");
const base = join(folder, "base.json");
const slower = join(folder, "slower.json");
const job = join(folder, "job");

type Event = Record<string, unknown>;

/** Steps of 900 µs on one thread: 100 of loading, a forward pass with `linear` µs in its Linear, 200 backward, 100 of the
 * optimizer. Step 5 also looks for something for 700 µs, at line 42. */
function training(linear: number): object {
	const events: Event[] = [];
	let calls = 0;
	const row = (cat: string, name: string, ts: number, dur: number, args: object = {}) => events.push({ ph: "X", cat, name, pid: 1, tid: 1, ts, dur, args });
	const python = (name: string, ts: number, dur: number, parent: number | null, args: object = {}) => {
		row("python_function", name, ts, dur, { "Python id": ++calls, "Python parent id": parent, ...args });
		return calls;
	};
	const line = (number: number, name: string) => `${program}(${number}): ${name}`;
	const matrices = { "Input Dims": [[64], [128, 256], [256, 64], [], []], "Input type": ["float", "float", "float", "Scalar", "Scalar"], "Input Strides": [[1], [256, 1], [64, 1], [], []], "Concrete Inputs": ["", "", "", "1", "1"] };
	for (let step = 0, at = 0; step < STEPS; step++) {
		const odd = step === ODD_STEP ? 700 : 0;
		const length = 600 + linear + odd;
		row("user_annotation", `ProfilerStep#${step}`, at, length);
		const main = python(line(8, "main"), at, length, null);
		row("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 100);
		const net = python("nn.Module: Net_0", at + 100, linear + 120, main, { "Python module id": 0 });
		const forward = python(line(20, "forward"), at + 101, linear + 118, net);
		python("nn.Module: Linear_0", at + 110, linear, forward, { "Python module id": 1 });
		row("cpu_op", "aten::addmm", at + 112, linear - 4, matrices);
		python("nn.Module: ReLU_0", at + 120 + linear, 50, forward, { "Python module id": 2 });
		row("cpu_op", "aten::relu", at + 122 + linear, 46);
		const after = at + 220 + linear;
		python(line(30, "_engine_run_backward"), after, 200, main);
		row("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", after + 1, 198);
		row("user_annotation", "Optimizer.step#SGD.step", after + 200, 100);
		row("cpu_op", "aten::add_", after + 205, 90);
		if (odd) {
			python(line(42, "count"), after + 300, odd, main);
			row("cpu_op", "aten::nonzero", after + 302, odd - 4);
		}
		at += length;
	}
	// 4 KiB and 1 KiB are allocated in the Linear of step 0; 64 KiB in step 1.
	const memory = [[150, 1, 4096, 4096], [200, 2, 1024, 5120], [6000, 3, 65536, 70656], [7000, 3, -65536, 5120]] as const;
	for (const [ts, Addr, Bytes, total] of memory) {
		events.push({ ph: "i", s: "t", name: "[memory]", pid: 1, tid: 1, ts, args: { "Device Type": 0, "Device Id": -1, Addr, Bytes, "Total Allocated": total } });
	}
	const waits = Array.from({ length: STEPS }, (_, i) => [i, 600000, 225000, 0, 0]);
	const recording = { command: "train.py --width 256", git_revision: "0123abcd", torch: "2.13.0" };
	return { machine: { processors: 2, steps: waits }, recording, traceEvents: events };
}

/** Rank 1 sorts for 250 µs before the collective, and the other rank waits for it. */
function rank(number: number): object {
	const host = { ph: "X", pid: 9, tid: 1 };
	const events: Event[] = [];
	for (let step = 0; step < 3; step++) {
		const at = 1000 + 1000 * step;
		const start = at + 200 + number * 250;
		events.push({ ...host, cat: "user_annotation", name: `ProfilerStep#${step}`, ts: at, dur: 900 });
		if (number === 1) {
			events.push({ ...host, cat: "python_function", name: `${program}(7): collate`, ts: at + 5, dur: 260, args: { "Python id": step + 1, "Python parent id": null } });
			events.push({ ...host, cat: "cpu_op", name: "aten::sort", ts: at + 10, dur: 250 });
		}
		const call = at + 20 + number * 250;
		events.push(
			{ ...host, cat: "cpu_op", name: "c10d::allreduce_", ts: call, dur: 60, args: { "External id": 10 + step, "Input Dims": [[[1000]]], "Input type": ["TensorList"] } },
			{ ...host, cat: "user_annotation", name: "nccl:all_reduce", ts: call + 10, dur: 40, args: { "External id": 20 + step, "Input Dims": [[1000]], "Input type": ["float"] } },
			{ ...host, cat: "cuda_runtime", name: "cudaLaunchKernel", ts: call + 20, dur: 10, args: { "External id": 20 + step, correlation: 5 + step } },
			{ ph: "X", pid: 0, tid: 7, cat: "kernel", name: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", ts: start, dur: at + 800 - start, args: { "External id": 20 + step, correlation: 5 + step, device: 0, stream: 7 } },
		);
	}
	return { traceEvents: events, distributedInfo: { backend: "nccl", rank: number, world_size: 2 } };
}

let browser: Browser;
let server: Server;
beforeAll(async () => {
	mkdirSync(job);
	writeFileSync(program, Array.from({ length: 50 }, (_, i) => `line_${i + 1} = ${i + 1}\n`).join(""));
	writeFileSync(base, JSON.stringify(training(300)));
	writeFileSync(slower, JSON.stringify(training(450)));
	for (const number of [0, 1]) writeFileSync(join(job, `worker${number}.pt.trace.json`), JSON.stringify(rank(number)));
	browser = await launch();
	server = await Server.start(base, slower, job);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

/** Opens the overview of a trace, and asks there. */
async function ask(part: string, follow: (tab: Tab, click: (what: Locator, options?: Parameters<Locator["click"]>[0]) => Promise<void>, view: (title: string) => Locator) => Promise<void>): Promise<void> {
	const tab = await Tab.open(browser, server.at("overview", server.trace(part)));
	let clicks = 0;
	await follow(
		tab,
		async (what, options) => {
			clicks++;
			await what.click(options);
		},
		(title) => tab.page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: title, exact: true }),
	);
	expect(clicks).toBeLessThanOrEqual(CLICKS);
	await tab.close();
	tab.expectQuiet();
}

const plain = (text: string) => text.replace(/\s+/g, " ");
/** What a command prints for a reader. */
const said = (...words: string[]) => plain(call(...words));
const cells = (rows: Record<string, string>[], name: string) => rows.find((row) => plain(row.name ?? "") === name)!;

test("the median step, the odd one, and why", async () => {
	const text = said("views", base);
	expect(text).toContain("8 steps: median 900 µs");
	expect(text).toContain("slow step 5 more here usually time 700 µs 1.60 ms 900 µs");
	expect(text).toContain("aten::nonzero 696 µs 1 call 0");
	await ask("base", async ({ page }) => {
		expect(plain(await page.locator(".card", { hasText: "Median step" }).locator(".card-figure").innerText())).toBe("900 µs");
		const slow = plain(await page.locator(".slow-steps > li").innerText());
		expect(slow).toContain("Step 5: 1.60 ms, 700 µs more than the median");
		expect(slow).toContain("aten::nonzero +696 µs");
	});
});

test("where a step goes", async () => {
	const wanted = [["data loading", "100"], ["forward", "420"], ["backward", "200"], ["optimizer", "100"]] as const;
	const text = said("views", base);
	for (const [phase, time] of wanted) expect(text).toContain(`${phase} ${time} µs`);
	await ask("base", async ({ page }) => {
		await page.locator("tr[data-phase]").first().waitFor();
		const rows = (await page.locator("tr[data-phase]").allInnerTexts()).map((row) => plain(row).toLowerCase());
		for (const [i, [phase, time]] of wanted.entries()) expect(rows[i]).toContain(`${phase} ${time} µs`);
	});
});

test("which line", async () => {
	const { files } = JSON.parse(call("lines", "--format", "json", base)) as { files: { lines: { line: number; self_us: number }[] }[] };
	const most = files.flatMap((file) => file.lines).sort((a, b) => b.self_us - a.self_us)[0]!;
	expect(most.line).toBe(20);
	expect(said("lines", base)).toMatch(/3\.34 ms 3\.34 ms .* 8 20 forward \S*train\.py/);
	await ask("base", async ({ page }, click, view) => {
		await click(view("Source"));
		const line = page.locator(".source-line", { hasText: "line_20 = 20" });
		await line.waitFor();
		const widths = await page.locator(".source-line .cell-bar").evaluateAll((bars) => bars.map((bar) => parseFloat((bar as HTMLElement).style.width)));
		expect(await line.locator(".cell-bar").evaluate((bar) => parseFloat(bar.style.width))).toBe(Math.max(...widths));
	});
});

test("which module", async () => {
	expect(said("modules", base)).toContain("Linear_0 Linear 8 30.4 % 300 µs 2.40 ms 300 µs 2.40 ms");
	await ask("base", async ({ page }, click, view) => {
		await click(view("Modules"));
		const { rows } = await readGrid(page, "Modules");
		expect(plain(cells(rows, "Linear_0").forward!)).toBe("2.40 ms");
	});
});

test("who holds memory at a moment", async () => {
	expect(said("memory", "--at", "2ms", base)).toMatch(/^Memory of CPU: 5\.00 KiB, 2\.000 ms .*5\.00 KiB 100 % 2 Linear_0 /);
	await ask("base", async ({ page }, click, view) => {
		await click(view("Memory"));
		const curve = page.locator(".line-chart .u-over");
		const box = (await curve.boundingBox())!;
		await click(curve, { position: { x: box.width * 0.4, y: box.height / 2 } });
		const panel = page.getByRole("region", { name: "Memory", exact: true });
		expect(plain(await panel.getByRole("heading", { level: 2 }).innerText())).toMatch(/^Memory: 5\.00 KiB at/);
		expect(plain(await panel.getByRole("region", { name: "By module" }).locator("li").first().innerText())).toMatch(/^Linear_0 5\.00 KiB 100 %/);
	});
});

test("was the machine busy", async () => {
	expect(said("views", base)).toContain("warning: waited for a CPU: 22.8 % of the steps' time");
	await ask("base", async ({ page }) => {
		expect(plain(await page.locator(".card", { hasText: "Waited for a CPU" }).locator(".card-figure").innerText())).toBe("22.8 %");
		expect(await page.getByRole("alert").innerText()).toContain("other threads had it");
	});
});

test("which rank is late, and why", async () => {
	const text = said("advise", job);
	expect(text).toContain("Ranks wait for a late rank");
	expect(text).toContain("Rank 1 is the last of 2 in 3 of 3 steps");
	expect(text).toMatch(/train\.py:7 in collate/);
	await ask("worker0", async ({ page }, click, view) => {
		await click(view("Distributed"));
		await page.getByText(/^worker1 is late: the others wait 250\sµs longer/).waitFor();
		await click(view("Advice"));
		await click(page.getByRole("button", { name: "All 2 of the run" }));
		const finding = page.locator(".finding", { hasText: "Ranks wait for a late rank" });
		expect(await finding.innerText()).toContain("train.py:7");
	});
});

test("what changed between two runs, module by module", async () => {
	expect(said("diff", base, slower)).toContain("Linear_0 300 µs 450 µs +50.0 %");
	await ask("slower", async ({ page }, click, view) => {
		await click(view("Diff"));
		const { rows } = await readGrid(page, "Modules of both traces");
		const linear = Object.values(cells(rows, "Linear_0")).map(plain);
		expect(linear).toContain("300 µs");
		expect(linear).toContain("450 µs");
		expect(Object.values(cells(rows, "ReLU_0")).filter((text) => plain(text) === "50.0 µs").length).toBeGreaterThanOrEqual(2);
	});
});

test("how far from the roof", async () => {
	// 2 · 128 · 256 · 64 FLOPs in 296 µs are 14.17 GFLOP/s.
	expect(said("roofline", "--roof", "100G,1T", base)).toMatch(/aten::addmm float32 CPU 8 2\.37 ms .* compute .* 14\.2 %/);
	await ask("base", async ({ page }, click, view) => {
		await click(view("Roofline"));
		await click(page.getByLabel("Roof", { exact: true }));
		await page.keyboard.type("100G,1T");
		await page.keyboard.press("Enter");
		await page.waitForFunction(() => document.querySelector(".grid-body [data-column=percent]")?.textContent === "14.2 %");
		expect(cells((await readGrid(page, "Roofline")).rows, "aten::addmm").bound).toBe("compute");
	});
});

test("what made this trace", async () => {
	const text = said("info", base);
	expect(text).toMatch(/Command train\.py --width 256/);
	expect(text).toMatch(/Git revision 0123abcd/);
	await ask("base", async ({ page }, click, view) => {
		await click(view("Trace"));
		const made = plain(await page.getByRole("region", { name: "Recording", exact: true }).innerText());
		expect(made).toContain("train.py --width 256");
		expect(made).toContain("0123abcd");
	});
});
