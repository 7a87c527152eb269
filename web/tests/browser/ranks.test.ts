// SPDX-License-Identifier: Apache-2.0
// Several traces on one timeline: two ranks of a run whose clocks agree, and two recordings side by side.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseRoute } from "../../src/app/route";
import { violations } from "./axe";
import { launch, Tab } from "./browser";
import { type Served, Server } from "./server";

const folder = mkdtempSync(join(tmpdir(), "opstrobe-timelines-"));
const KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";

/** µs: when rank 1 begins after rank 0, and how long steps take. */
const LATER = 300;
const STEP = 1000;

/** Three steps, each with an operator and a collective whose kernel ends 700 µs after rank 0's step began. */
function rank(number: number): object {
	const own = number * LATER;
	const traceEvents = [0, 1, 2].flatMap((step) => {
		const at = STEP * step + own;
		const start = STEP * step + (number === 0 ? 150 : 450);
		const host = { ph: "X", pid: 9, tid: 1 };
		return [
			{ ...host, cat: "user_annotation", name: `ProfilerStep#${step}`, ts: at, dur: 600 },
			{ ...host, cat: "cpu_op", name: `aten::mm${number}`, ts: at + 10, dur: 40 },
			{ ...host, cat: "user_annotation", name: "nccl:all_reduce", ts: at + 100, dur: 40, args: { "External id": 20 + step, "Input Dims": [[1000]], "Input type": ["float"] } },
			{ ...host, cat: "cuda_runtime", name: "cudaLaunchKernel", ts: at + 110, dur: 10, args: { "External id": 20 + step, correlation: 5 + step } },
			{ ph: "X", pid: number, tid: 7, cat: "kernel", name: KERNEL, ts: start, dur: STEP * step + 700 - start, args: { "External id": 20 + step, correlation: 5 + step, device: number, stream: 7 } },
		];
	});
	return { baseTimeNanoseconds: 1_700_000_000_000_000_000, distributedInfo: { backend: "nccl", rank: number, world_size: 2 }, traceEvents };
}

/** Steps of one length, that begin where no clock says. */
function recording(steps: number[], length: number): object {
	const traceEvents = steps.flatMap((step, i) => {
		const host = { ph: "X", pid: 3, tid: 3, ts: 50 + i * 2 * length };
		return [
			{ ...host, cat: "user_annotation", name: `ProfilerStep#${step}`, dur: length },
			{ ...host, cat: "cpu_op", name: "aten::relu", dur: length / 2 },
		];
	});
	return { traceEvents };
}

let browser: Browser;
let server: Server;
beforeAll(async () => {
	for (const [name, trace] of [
		["job/worker0", rank(0)],
		["job/worker1", rank(1)],
		["old/before", recording([0, 1], 400)],
		["new/after", recording([0, 1, 2, 3, 4], 500)],
	] as const) {
		mkdirSync(join(folder, name, ".."), { recursive: true });
		writeFileSync(join(folder, `${name}.pt.trace.json`), JSON.stringify(trace));
	}
	browser = await launch();
	server = await Server.start(folder);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

function stepsOf(tab: Tab) {
	return tab.page.locator("label", { hasText: /^Step/ }).locator("select");
}

class Timelines {
	private constructor(readonly tab: Tab) {}

	static async open(trace: Served, query = "", colorScheme: "light" | "dark" = "light"): Promise<Timelines> {
		const one = new Timelines(await Tab.open(browser, server.at("timeline", trace, query), { colorScheme }));
		await one.idle();
		return one;
	}

	get page() {
		return this.tab.page;
	}

	async idle(): Promise<void> {
		await this.page.locator(".tl-canvas[aria-busy=false]").waitFor();
	}

	param(name: string): string | undefined {
		return parseRoute(new URL(this.page.url()).hash).params.get(name);
	}

	async says(name: string, value: string | undefined): Promise<void> {
		await expect.poll(() => this.param(name), { timeout: 30_000, message: `${name} in the address` }).toBe(value);
	}

	/** Clicks on a moment of a line next to a name, where all of the time is shown. */
	async click(line: string, nth: number, time: number, whole: { from: number; to: number }): Promise<void> {
		const canvas = (await this.page.locator(".tl-canvas").boundingBox())!;
		const name = (await this.page.locator(".tl-name", { hasText: line }).nth(nth).boundingBox())!;
		await this.page.mouse.click(canvas.x + ((time - whole.from) / (whole.to - whole.from)) * canvas.width, name.y + 9);
	}

	steps() {
		return stepsOf(this.tab);
	}

	parts(): Promise<string[]> {
		return this.page.locator(".tl-name.part .text").allInnerTexts();
	}

	async close(): Promise<void> {
		this.tab.expectQuiet();
		await this.tab.close();
	}
}

const worker = (number: number) => server.trace(`worker${number}`);
/** Of both ranks in wall-clock time: the last step of rank 1 ends last. */
const WHOLE = { from: 0, to: (2 * STEP + LATER + 600) * 1000 };

test("ranks are chosen, and lie below one another in one time", async () => {
	const view = await Timelines.open(worker(0));
	expect(await view.parts()).toEqual([]);
	await view.page.locator("summary", { hasText: "Ranks" }).click();
	await view.page.getByRole("checkbox", { name: "worker1" }).click();
	await view.says("with", worker(1).id);
	await view.idle();
	expect(await view.parts()).toEqual(["worker0", "worker1"]);
	await expect.poll(() => view.page.locator(".tl-corner").innerText()).toContain("2.90 ms");
	expect(await view.page.getByLabel("Aligned").inputValue()).toBe("clock");
	// The sums are those of each rank.
	const sums = view.page.locator('.grid[aria-label="What runs in this range"]');
	await sums.getByText("aten::mm1").waitFor();
	await sums.getByText("aten::mm0").waitFor();
	expect(await sums.locator("[data-column=rank]").first().innerText()).toMatch(/^worker[01]$/);
	// A step of the lower rank is where its clock says.
	await view.click("worker1", 0, (STEP + LATER + 300) * 1000, WHOLE);
	await view.says("range", `${(STEP + LATER) * 1000}-${(STEP + LATER + 600) * 1000}`);
	await view.tab.shot("timeline-ranks");
	await view.close();
});

test("a collective shows the same call of the other rank, and leads there", async () => {
	const view = await Timelines.open(worker(0), `with=${worker(1).id}`);
	await view.click("stream 7", 0, (STEP + 500) * 1000, WHOLE);
	const panel = view.page.locator(".tl-event");
	await panel.getByRole("heading", { name: "Same call in other ranks" }).waitFor();
	const call = panel.locator("li", { hasText: "worker1:" });
	expect(await call.count()).toBe(1);
	expect(await call.innerText()).toMatch(/300\sµs later, 250\sµs long/);
	await call.getByRole("button").click();
	await expect.poll(() => view.param("event")).toMatch(/^1\d{10}$/);
	await panel.locator("dt:text-is('Rank') + dd", { hasText: "worker1" }).waitFor();
	await panel.locator("dt:text-is('Start') + dd", { hasText: /1\.450\sms/ }).waitFor();
	// The address leads back to it.
	await view.page.reload();
	await view.idle();
	await panel.locator("dt:text-is('Rank') + dd", { hasText: "worker1" }).waitFor();
	expect(await view.parts()).toEqual(["worker0", "worker1"]);
	await view.close();
});

test("ranks are aligned by a step, by a collective, by their begins", async () => {
	const view = await Timelines.open(worker(0), `with=${worker(1).id}`);
	const align = async (by: string): Promise<void> => {
		await view.page.getByLabel("Aligned").selectOption(by);
		await view.says("align", by === "clock" ? undefined : by);
	};
	const step = view.steps();
	await step.selectOption({ index: 2 });
	await view.says("range", `${STEP * 1000}-${(STEP + LATER + 600) * 1000}`);
	await align("step");
	await step.selectOption({ index: 3 });
	await view.says("step", "2");
	await view.says("range", `${2 * STEP * 1000}-${(2 * STEP + 600) * 1000}`);
	// The kernels end together in wall-clock time, so that the collective aligns as the clock does.
	await align("collective");
	await step.selectOption({ index: 2 });
	await view.says("range", `${STEP * 1000}-${(STEP + LATER + 600) * 1000}`);
	await view.close();
});

test("a search goes from rank to rank", async () => {
	const view = await Timelines.open(worker(0), `with=${worker(1).id}`);
	await view.page.locator("#tl-search").fill("aten::mm");
	await view.page.getByText("6 hits").waitFor();
	const numbers: string[] = [];
	for (let i = 0; i < 7; i++) {
		await view.page.locator("#tl-search").press("Enter");
		await view.page.getByText(`${(i % 6) + 1} of 6`).waitFor();
		numbers.push(await view.page.locator(".tl-event h2").innerText());
	}
	expect(numbers).toEqual([0, 0, 0, 1, 1, 1, 0].map((rank) => `aten::mm${rank}`));
	await view.close();
});

test("a diff has a flame graph: as wide as one of them, in the colour of the change", async () => {
	const tab = await Tab.open(browser, server.at("diff", server.trace("after"), `base=${server.trace("before").id}`));
	const graph = tab.page.getByRole("tree", { name: "Flame graph of the difference" });
	// All steps are 400 µs, then 500: half of each is the operator's, of which 50 µs more are a fiftieth of the step and above.
	const relu = graph.getByRole("treeitem", { name: /^aten::relu, 200\sµs → 250\sµs \(\+25\.0 %\)/ });
	await relu.waitFor();
	await graph.getByRole("treeitem", { name: /^all, 400\sµs → 500\sµs/ }).waitFor();
	const fill = (locator: typeof relu) => locator.locator("rect").evaluate((rect) => (rect as SVGElement).style.fill);
	expect(await fill(relu)).toContain("var(--flame-more) 100");
	await tab.shot("diff-flame");
	await tab.page.getByRole("button", { name: "Width: base" }).click();
	await expect.poll(() => parseRoute(new URL(tab.page.url()).hash).params.get("widths")).toBe("before");
	await relu.waitFor(); // the times stay, from before to now
	// The other way around it takes less.
	await tab.page.getByRole("button", { name: "Swap" }).click();
	const less = graph.getByRole("treeitem", { name: /^aten::relu, 250\sµs → 200\sµs/ });
	await less.waitFor();
	expect(await fill(less)).toContain("var(--flame-less) 100");
	await tab.close();
	tab.expectQuiet();
});

test("a diff leads to both timelines, step by step", async () => {
	const tab = await Tab.open(browser, server.at("diff", server.trace("after"), `base=${server.trace("before").id}`));
	await tab.page.getByRole("link", { name: "Timelines" }).click();
	await tab.page.locator(".tl-canvas[aria-busy=false]").waitFor();
	expect(await tab.page.locator(".tl-name.part .text").allInnerTexts()).toEqual(["before", "after"]);
	expect(await tab.page.getByLabel("Aligned").inputValue()).toBe("step");
	// Only the steps that both have; the second of each begins at the same place.
	const step = stepsOf(tab);
	expect(await step.locator("option").allInnerTexts()).toEqual(["All", expect.stringMatching(/^0 \(400\sµs, 500\sµs\)$/), expect.stringMatching(/^1 /)]);
	await step.selectOption({ index: 2 });
	await expect.poll(() => parseRoute(new URL(tab.page.url()).hash).params.get("range")).toBe("800000-1300000");
	await tab.shot("timeline-diff");
	await tab.close();
	tab.expectQuiet();
});

test.each(["light", "dark"] as const)("axe finds nothing in timelines and differences in the %s theme", async (colorScheme) => {
	for (const [view, query] of [
		["timeline", ""],
		["timeline", `with=${worker(1).id}&event=1`],
		["diff", `base=${worker(1).id}`],
	] as const) {
		const tab = await Tab.open(browser, server.at(view, worker(0), query), { colorScheme });
		await tab.page.locator(".grid, .pairs").first().waitFor();
		await tab.page.waitForFunction(() => !document.body.innerText.includes("Loading"));
		expect(await violations(tab.page), `${view} ${query}`).toEqual([]);
		await tab.close();
		tab.expectQuiet();
	}
});
