// SPDX-License-Identifier: Apache-2.0
// The roofline: the figures of the command, the chart with its roof, points that are reached and followed, and a page that can be used by all.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RooflineReply } from "../../src/data/replies";
import { launch, Tab } from "./browser";
import { expectShows, readGrid } from "./grid";
import { call, recorded, Server } from "./server";

let browser: Browser;
let server: Server;
const folder = mkdtempSync(join(tmpdir(), "opstrobe-roofline-"));
const gpu = join(folder, "gpu.pt.trace.json");
const plain = join(folder, "plain.pt.trace.json");
const ROOF = "100G,10G";
const SIZES = [[1024, 1024], [1024, 1024]];

beforeAll(async () => {
	const event = (name: string, cat: string, ts: number, dur: number, args: object) => ({ ph: "X", name, cat, ts, dur, pid: cat === "kernel" ? 0 : 1, tid: cat === "kernel" ? 7 : 1, args });
	const inputs = { "Input Dims": SIZES, "Input Strides": [[1024, 1], [1024, 1]], "Input type": ["c10::BFloat16", "c10::BFloat16"] };
	const traceEvents = [
		event("aten::mm", "cpu_op", 100, 20, inputs),
		event("cudaLaunchKernel", "cuda_runtime", 105, 5, { correlation: 9 }),
		event("sm90_xmma_gemm", "kernel", 130, 10, { correlation: 9, device: 0, stream: 7 }),
	];
	writeFileSync(gpu, JSON.stringify({ deviceProperties: [{ id: 0, name: "NVIDIA H100 80GB HBM3" }], traceEvents }));
	writeFileSync(plain, JSON.stringify({ traceEvents: [event("aten::mm", "cpu_op", 100, 20, {})] }));
	browser = await launch();
	server = await Server.start(recorded, gpu, plain);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

async function settled(page: Page): Promise<void> {
	await page.getByRole("grid", { name: "Roofline" }).waitFor();
	await page.waitForFunction(() => !document.body.innerText.includes("Loading"));
}

function printed(...args: string[]): RooflineReply {
	return JSON.parse(call("roofline", ...args, "--limit", "0", "--format", "json")) as RooflineReply;
}

test.each(["operator", "shape"])("figures are those of the command, by %s", async (by) => {
	const wanted = printed("--by", by, "--roof", ROOF, recorded);
	expect(wanted.rows.length).toBeGreaterThan(5);
	const tab = await Tab.open(browser, server.at("roofline", server.trace("train"), `by=${by}&roof=${ROOF}`));
	await settled(tab.page);
	const { rows } = await readGrid(tab.page, "Roofline");
	expect(rows.length).toBeGreaterThan(5);
	rows.forEach((row, i) => {
		const from = wanted.rows[i]!;
		expect(row.name).toBe(from.name);
		expectShows(row.time!, from.time_us, `time of ${row.name}`);
		expectShows(row.percent!, from.percent_of_roof!, `share of ${row.name}`);
		expectShows(row.avoidable!, from.avoidable_us!, `avoidable time of ${row.name}`);
		expectShows(row.flops!, from.flops, `FLOPs of ${row.name}`);
	});
	const points = await tab.page.locator("[data-point]").count();
	expect(points).toBe(wanted.rows.filter((row) => row.flops > 0).length);
	expect(await tab.page.locator(".chart .roof").count()).toBe(1);
	await tab.close();
	tab.expectQuiet();
});

test("a GPU has the peaks of its maker; a point says what it is and leads to its operator", async () => {
	const tab = await Tab.open(browser, server.at("roofline", server.trace("gpu.pt")));
	const { page } = tab;
	await settled(page);
	await page.getByText("NVIDIA H100 80GB HBM3").waitFor();
	await page.getByText("21.7 %").first().waitFor();
	expect(await page.locator(".chart .roof").count()).toBe(2); // memory and cache
	await page.locator("[data-point]").focus();
	const tip = page.getByRole("tooltip");
	expect(await tip.innerText()).toMatch(/aten::mm[^]*bfloat16[^]*21\.7 %[^]*compute/);
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => location.hash.startsWith("#/operators/"));
	await page.getByText("aten::mm").first().waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("without a roof, times, FLOPs and bytes remain, and a roof can be given", async () => {
	const tab = await Tab.open(browser, server.at("roofline", server.trace("train")));
	const { page } = tab;
	await settled(page);
	await page.getByText("unknown").first().waitFor();
	expect(await page.locator("[data-point]").count()).toBeGreaterThan(3);
	expect(await page.locator(".chart .roof").count()).toBe(0);
	await page.getByLabel("Roof", { exact: true }).fill(ROOF);
	await page.getByLabel("Roof", { exact: true }).press("Enter");
	await page.locator(".chart .roof").waitFor({ state: "attached" });
	await page.getByLabel("Roof", { exact: true }).fill("fast");
	await page.getByLabel("Roof", { exact: true }).press("Enter");
	await page.getByText("invalid roof 'fast'").waitFor();
	await tab.close();
});

test("a trace without shapes says what to do", async () => {
	const tab = await Tab.open(browser, server.at("roofline", server.trace("plain.pt")));
	await tab.page.getByText("No shapes were recorded.").waitFor();
	await tab.close();
	tab.expectQuiet();
});
