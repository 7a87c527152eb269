// SPDX-License-Identifier: Apache-2.0
// Two ranks of which one is late: it is named, with the way to the moment on its timeline.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseRoute } from "../../src/app/route";
import { launch, Tab } from "./browser";
import { writeRanks } from "../traces/make_ranks.mjs";
import { Server } from "./server";

const folder = mkdtempSync(join(tmpdir(), "opstrobe-ranks-"));

/** By how much rank 1 comes to the collective after rank 0, in each step; µs. */
const LATE = [100, 400, 250];

function rank(number: number, world = 2): object {
	const kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";
	const traceEvents = LATE.flatMap((late, step) => {
		const at = 1000 + 1000 * step;
		const start = at + 100 + (number % 2) * late;
		const host = { ph: "X", pid: 9, tid: 1 };
		return [
			{ ...host, cat: "user_annotation", name: `ProfilerStep#${step}`, ts: at, dur: 900 },
			{ ...host, cat: "cpu_op", name: "c10d::allreduce_", ts: at + 20, dur: 60, args: { "External id": 10 + step, "Input Dims": [[[1000]]], "Input type": ["TensorList"] } },
			{ ...host, cat: "user_annotation", name: "nccl:all_reduce", ts: at + 30, dur: 40, args: { "External id": 20 + step, "Input Dims": [[1000]], "Input type": ["float"] } },
			{ ...host, cat: "cuda_runtime", name: "cudaLaunchKernel", ts: at + 40, dur: 10, args: { "External id": 20 + step, correlation: 5 + step } },
			{ ph: "X", pid: 0, tid: 7, cat: "kernel", name: kernel, ts: start, dur: at + 700 - start, args: { "External id": 20 + step, correlation: 5 + step, device: 0, stream: 7 } },
		];
	});
	return { traceEvents, distributedInfo: { backend: "nccl", rank: number, world_size: world } };
}

let browser: Browser;
let server: Server;
beforeAll(async () => {
	for (const number of [0, 1]) writeFileSync(join(folder, `worker${number}.pt.trace.json`), JSON.stringify(rank(number)));
	browser = await launch();
	server = await Server.start(folder);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

test("the late rank is named, with the moment of the collective for which the others wait longest", async () => {
	const tab = await Tab.open(browser, server.at("distributed", server.trace("worker0")));
	const panel = tab.page.getByRole("region", { name: "Late rank" });
	await panel.getByText(/^worker1 is late: the others wait 250\sµs longer/).waitFor();
	await panel.getByText(/Longest in step 1, for worker1: 400\sµs/).waitFor();
	const first = await tab.page.locator("main section.panel").first().getAttribute("aria-label");
	expect(first).toBe("Late rank"); // the answer is above the charts
	await tab.shot("distributed-late-rank");
	await panel.getByRole("link", { name: /^Show nccl:all_reduce, for which they wait 400\sµs, on the timelines of worker1 and worker0$/ }).click();
	await tab.page.waitForFunction((id) => location.hash.startsWith(`#/timeline/${id}`), server.trace("worker1").id);
	await tab.page.locator(".tl-canvas[aria-busy=false]").waitFor();
	expect(await tab.page.locator(".tl-name.part .text").allInnerTexts()).toEqual(["worker1", "worker0"]);
	// The late rank's kernel of step 1 runs from 2.5 to 2.7 ms, 1.5 to 1.7 ms after its first event; the other one waits for it from 1.1 ms on.
	await tab.page.waitForFunction(() => location.hash.includes("from="));
	const params = parseRoute(new URL(tab.page.url()).hash).params;
	expect(Number(params.get("from"))).toBeGreaterThan(1_000_000);
	expect(Number(params.get("from"))).toBeLessThan(1_100_000);
	expect(Number(params.get("to"))).toBeGreaterThan(1_700_000);
	expect(Number(params.get("to"))).toBeLessThan(1_800_000);
	await tab.page.locator(".tl-event h2", { hasText: "nccl:all_reduce" }).waitFor();
	await tab.shot("distributed-late-moment");
	await tab.close();
	tab.expectQuiet();
});

test("the reason why it is late is next to it: what takes it longer than the others", async () => {
	const made = join(folder, "train-ddp");
	mkdirSync(made);
	writeRanks(made);
	const own = await Server.start(made);
	for (const colorScheme of ["light", "dark"] as const) {
		const tab = await Tab.open(browser, own.at("distributed", own.trace("worker0")), { colorScheme });
		const panel = tab.page.getByRole("region", { name: "Late rank" });
		await panel.getByText(/^Rank 2 is the last of 4 in 3 of 3 steps, and takes 647\sµs a step longer than the others at the first place\./).waitFor();
		await panel.getByRole("list", { name: "Where" }).getByText("enumerate(DataLoader)").waitFor();
		expect(await panel.innerText()).not.toContain("Predicted gain");
		await tab.shot(`distributed-reason-${colorScheme}`);
		await tab.close();
		tab.expectQuiet();
	}
	await own.stop();
});

test("the menu of steps shows the durations on both ranks", async () => {
	const tab = await Tab.open(browser, server.at("timeline", server.trace("worker1"), `with=${server.trace("worker0").id}`));
	await tab.page.locator(".tl-canvas[aria-busy=false]").waitFor();
	const menu = tab.page.locator(".tl-step select");
	await menu.selectOption("1");
	expect(await menu.locator("option:checked").innerText()).toMatch(/^1 \(900\sµs, 900\sµs\)$/);
	const cut = await menu.evaluate((select) => {
		const free = select.parentElement!.appendChild(select.cloneNode(true) as HTMLElement);
		free.style.maxWidth = "none";
		const more = free.getBoundingClientRect().width - select.getBoundingClientRect().width;
		free.remove();
		return more;
	});
	expect(cut).toBe(0);
	await tab.shot("distributed-steps");
	await tab.close();
	tab.expectQuiet();
});

/** Labels that lie on one another, or outside of the picture. */
function collisions(labels: SVGTextElement[]): string[] {
	const places = labels.map((label) => ({ text: label.textContent, box: label.getBoundingClientRect(), room: label.ownerSVGElement!.getBoundingClientRect() }));
	return places.flatMap(({ text, box, room }, i) => [
		...(box.left < room.left || box.right > room.right ? [`${text} is outside`] : []),
		...places.slice(0, i).filter((other) => other.box.right > box.left).map((other) => `${other.text} / ${text}`),
	]);
}

test.each([[4], [16], [40]])("the bars of %i workers with long names are named by rank, in order", async (count) => {
	const made = mkdtempSync(join(tmpdir(), "opstrobe-names-"));
	const name = (number: number) => `trainer-node-17.cluster.internal_${9995 + number}`; // "…_10000" comes before "…_9995"
	for (let number = 0; number < count; number++) writeFileSync(join(made, `${name(number)}.pt.trace.json`), JSON.stringify(rank(number, count)));
	const own = await Server.start(made);
	for (const width of [800, 1440]) {
		const tab = await Tab.open(browser, own.at("distributed", own.trace(name(0))), { viewport: { width, height: 900 } });
		const chart = tab.page.locator("figure", { hasText: "Transfer and waiting" });
		const labels = chart.locator("a[data-bar] text");
		await tab.page.getByText(`${count} rows`).waitFor(); // all traces have been read
		const ranks = (await labels.allTextContents()).map((text) => Number(text.replace("rank ", "")));
		const every = ranks[1]! - ranks[0]!;
		expect(ranks).toEqual(Array.from({ length: Math.ceil(count / every) }, (_, i) => i * every));
		if (count <= 16) expect(every).toBe(1);
		expect(await labels.evaluateAll(collisions)).toEqual([]);
		await tab.shot(`distributed-names-${count}-${width}`);
		await chart.locator("a[data-bar]").nth(3).hover();
		await tab.page.locator(".tooltip").getByText(name(3)).waitFor();
		await tab.close();
		tab.expectQuiet();
	}
	await own.stop();
	rmSync(made, { recursive: true });
});
