// SPDX-License-Identifier: Apache-2.0
// Operators and kernels: every figure of a row, filters that are wrong, and the details of a row next to the table.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CallsReply, OperatorsReply } from "../../src/data/replies";
import { launch, Tab } from "./browser";
import { expectShows, readGrid } from "./grid";
import { printed, recorded, Server } from "./server";

const KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)";

let browser: Browser;
let server: Server;
const folder = mkdtempSync(join(tmpdir(), "opstrobe-operators-"));
const gpu = join(folder, "gpu.pt.trace.json");
const alike = join(folder, "alike.pt.trace.json");
const ALIKE = ["256x128_32x3_tn_align8", "128x128_64x3_tn_align8"].map((tile) => `sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize_warpgroupsize_stage3_tensor16x8x8_kernel_trace_of_a_long_name_${tile}`);

beforeAll(async () => {
	const event = (name: string, cat: string, ts: number, dur: number, args: object) => ({ ph: "X", name, cat, ts, dur, pid: cat === "kernel" ? 0 : 1, tid: cat === "kernel" ? 7 : 1, args });
	writeFileSync(
		gpu,
		JSON.stringify({
			traceEvents: [
				event("aten::add", "cpu_op", 100, 20, { "External id": 1 }),
				event("aten::mm", "cpu_op", 200, 20, { "Input Dims": [[1024, 1024], [1024, 1024]], "Input Strides": [[1024, 1], [1024, 1]], "Input type": ["float", "float"] }),
				event("cudaLaunchKernel", "cuda_runtime", 105, 5, { "External id": 1, correlation: 9 }),
				event(KERNEL, "kernel", 130, 40, { "External id": 1, correlation: 9, device: 0, stream: 7 }),
			],
		}),
	);
	writeFileSync(
		alike,
		JSON.stringify({
			traceEvents: ALIKE.flatMap((name, i) => [
				event("aten::mm", "cpu_op", 100 * i, 50, { "External id": i + 1 }),
				event("cudaLaunchKernel", "cuda_runtime", 100 * i + 5, 5, { "External id": i + 1, correlation: i + 1 }),
				event(name, "kernel", 100 * i + 30, 40, { "External id": i + 1, correlation: i + 1, device: 0, stream: 7 }),
			]),
		}),
	);
	browser = await launch();
	server = await Server.start(recorded, gpu, alike);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

test("rows have mean, longest, share, per step, memory and FLOPs", async () => {
	const wanted = printed("views", recorded) as OperatorsReply;
	const tab = await Tab.open(browser, server.at("operators", server.trace("train"), "operators.columns=host_min"));
	const { rows } = await readGrid(tab.page, "Operators");
	const all = wanted.operators.rows.reduce((sum, row) => sum + row.host_self, 0);
	expect(wanted.steps.rows.length).toBeGreaterThan(1);
	expect(rows.some((row) => /\d/.test(row.flops ?? ""))).toBe(true);
	for (const row of rows) {
		const from = wanted.operators.rows.find((each) => each.name === row.name)!;
		expect(from.host_min).toBeLessThanOrEqual(from.host_total / from.calls);
		expectShows(row.host_mean!, from.host_total / from.calls, `mean of ${row.name}`);
		expectShows(row.host_min!, from.host_min, `shortest ${row.name}`);
		expectShows(row.host_max!, from.host_max, `longest ${row.name}`);
		expectShows(row.share!, (100 * from.host_self) / all, `share of ${row.name}`);
		expectShows(row.step_self!, from.step_self!, `self per step of ${row.name}`);
		const further = from.lines > 1 ? ` +${from.lines - 1}` : "";
		expect(row.line).toBe((from.line ?? "").replace(/.*\//, "") + further);
		expectShows(row.memory!, from.self_cpu_memory_bytes, `memory of ${row.name}`);
		if (from.flops > 0) expectShows(row.flops!, from.flops, `FLOPs of ${row.name}`);
	}
	await tab.close();
	tab.expectQuiet();
});

test("columns that are shown fit into a window of 1400 pixels, and FLOPs have a unit", async () => {
	const tab = await Tab.open(browser, server.at("operators", server.trace("train")), { viewport: { width: 1400, height: 900 } });
	const { page } = tab;
	const missing = () => page.locator(".grid").evaluate((grid) => grid.scrollWidth - grid.clientWidth);
	const cut = () =>
		page.locator(".grid-head button").evaluateAll((buttons) => buttons.filter((button) => button.scrollWidth > button.clientWidth).map((button) => button.textContent));
	for (const [view, name, shown] of [
		["operators", "train", ["flops", "flops_per_s", "step_self"]],
		["operators", "gpu.pt", ["device_self", "device_total", "flops", "flops_per_s"]],
		["kernels", "gpu.pt", ["total", "mean_est_occupancy_pct"]],
		["modules", "train", ["share", "per_call", "backward", "cpu_allocated"]],
		["roofline", "train", ["flops", "percent"]],
		["timeline", "train", ["count"]],
	] as const) {
		await page.goto("about:blank");
		await page.goto(server.at(view, server.trace(name)));
		await page.locator(".grid-body [data-column=name]").first().waitFor();
		for (const id of shown) expect(await page.locator(`[data-column=${id}]`).count(), `${id} of ${view}`).toBeGreaterThan(0);
		expect(await missing(), `what does not fit in ${view} of ${name}`).toBeLessThanOrEqual(0);
		expect(await cut(), `titles in ${view} of ${name}`).toEqual([]);
	}
	await page.goto(server.at("operators", server.trace("gpu.pt"), "operators.q=flops>1g"));
	const { rows } = await readGrid(page, "Operators");
	expect(rows[0]!.flops).toBe("2.15 G"); // 2 · 1024³
	await tab.close();
	tab.expectQuiet();
});

test("a filter that is wrong says why, and one that matches nothing can be cleared", async () => {
	const tab = await Tab.open(browser, server.at("operators", server.trace("train")));
	const { page } = tab;
	const filter = page.getByRole("searchbox", { name: "Filter the rows" });
	for (const [text, reason] of [
		["host_self>5parsec", "Invalid unit 'parsec' (choose from ns, us, µs, ms, s)."],
		["calls>many", "'many' is not a number"],
		["nothing>5", "No column 'nothing' with figures"],
	] as const) {
		await filter.fill(text);
		await page.getByRole("alert").getByText(reason).waitFor();
	}
	await filter.fill("no such operator");
	await page.getByRole("button", { name: "Clear the filter" }).click();
	await expect.poll(() => filter.inputValue()).toBe("");
	await page.getByText("No row matches").waitFor({ state: "detached" });
	await tab.close();
	tab.expectQuiet();
});

test("the chosen operator shows its calls by duration and the lines that make them, next to the table", async () => {
	const trace = server.trace("train");
	const tab = await Tab.open(browser, server.at("operators", trace));
	const { page } = tab;
	const row = page.locator(".grid-body [role=row]").first();
	const name = await row.locator("[data-column=name]").innerText();
	await row.click();
	const panel = page.getByRole("complementary", { name: "The chosen row" });
	const calls = await page.evaluate(async (path) => (await (await fetch(path)).json()) as CallsReply, `api/v1/traces/${trace.id}/timeline/calls?name=${encodeURIComponent(name)}`);
	await panel.getByText(new RegExp(`^${calls.count} calls? in the whole trace$`)).waitFor();
	expect(calls.histogram!.reduce((sum, each) => sum + each, 0)).toBe(calls.count);
	expect(await panel.getByRole("img", { name: "Calls by duration from" }).count()).toBe(1);
	expect(await panel.locator(".call-lines a.place-link").count()).toBe(Math.min(5, calls.longest.length));
	const [table, side] = [(await page.locator(".grid").boundingBox())!, (await panel.boundingBox())!];
	expect(side.x).toBeGreaterThan(table.x + table.width - 1);
	await tab.shot("operator-side-panel");
	await panel.locator("a.place-link").first().click();
	await page.waitForFunction((longest) => location.hash.includes(`event=${longest}`), calls.longest[0]!.row);
	await tab.close();
	tab.expectQuiet();
});

test("long names of kernels are truncated before what differs", async () => {
	const tab = await Tab.open(browser, server.at("kernels", server.trace("alike.pt")), { viewport: { width: 1400, height: 900 } });
	const cells = tab.page.locator(".grid-body [data-column=name]");
	await cells.first().waitFor();
	expect((await cells.allTextContents()).sort()).toEqual([...ALIKE].sort());
	for (const cell of await cells.all()) {
		const [start, end] = [cell.locator(".split-start"), cell.locator(".split-end")];
		expect(await start.evaluate((part) => part.scrollWidth > part.clientWidth)).toBe(true);
		expect(await end.evaluate((part) => part.scrollWidth <= part.clientWidth)).toBe(true);
		expect(await end.textContent()).toMatch(/^\d+x128_/);
		const [outer, inner] = [(await cell.boundingBox())!, (await end.boundingBox())!];
		expect(inner.x + inner.width).toBeLessThanOrEqual(outer.x + outer.width);
	}
	expect(await tab.page.locator(".grid-head").innerText()).toContain("Of kernels");
	await tab.close();
	tab.expectQuiet();
});

test("kernels have short names, and the full one in the tooltip and the filter", async () => {
	const tab = await Tab.open(browser, server.at("kernels", server.trace("gpu.pt")));
	const cell = tab.page.locator(".grid-body [data-column=name]").first();
	await cell.waitFor();
	expect(await cell.innerText()).toBe("vectorized_elementwise_kernel");
	expect(await cell.getAttribute("title")).toBe(KERNEL);
	await tab.page.getByRole("searchbox", { name: "Filter the rows" }).fill("CUDAFunctor_add");
	await tab.page.getByText("1 row", { exact: true }).waitFor();
	await tab.close();
	tab.expectQuiet();
});
