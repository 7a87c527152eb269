// SPDX-License-Identifier: Apache-2.0
// What the timeline offers around the picture: devices first, kinds, steps, ranges of some tracks, arguments, notes, and a
// call among its like.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, Tab } from "./browser";
import { readGrid } from "./grid";
import { Server } from "./server";

const folder = mkdtempSync(join(tmpdir(), "opstrobe-tools-"));
const path = join(folder, "made.pt.trace.json");
const annotated = join(folder, "annotated.pt.trace.json");

let browser: Browser;
let server: Server;

beforeAll(async () => {
	const events: object[] = [];
	const add = (name: string, cat: string, tid: number, ts: number, dur: number, args: object = {}) =>
		events.push({ ph: "X", name, cat, ts, dur, pid: cat === "kernel" ? 0 : 1, tid, args });
	for (let step = 0; step < 3; step++) {
		const at = 1000 + step * 1000;
		add(`ProfilerStep#${step}`, "user_annotation", 1, at, 900);
		add("train.py(3): forward", "python_function", 1, at + 10, 700);
		add("aten::mm", "cpu_op", 1, at + 20, 100 + 100 * step, { "External id": step + 1, "Input Dims": [[64, 10 + step], [10 + step, 7]] });
		add("cudaLaunchKernel", "cuda_runtime", 1, at + 30, 10, { "External id": step + 1, correlation: step + 1 });
		add("gemm", "kernel", 7, at + 50, 200, { "External id": step + 1, correlation: step + 1, device: 0, stream: 7 });
		add("aten::index", "cpu_op", 2, at + 100, 50);
	}
	add("train.py(3): predict", "python_function", 3, 1000, 1100);
	add("torch/nn/modules/module.py(1): _call_impl", "python_function", 3, 1001, 998);
	add("nn.Module: Linear_0", "python_function", 3, 1002, 990, { "Python module id": 0, "Python id": 9 });
	add("aten::linear", "cpu_op", 3, 1003, 980);
	add("typed", "cpu_op", 4, 1000, 50, { "Call stack": "<string>(1): <module>" });
	events.push({ ph: "i", s: "g", name: "Record Window End", cat: "", pid: "", tid: "", ts: 90_000 });
	writeFileSync(path, JSON.stringify({ traceEvents: events }));
	const device = { pid: 0, tid: 7, args: { device: 0, stream: 7 } };
	writeFileSync(
		annotated,
		JSON.stringify({
			traceEvents: [
				{ ph: "X", name: "forward", cat: "gpu_user_annotation", ts: 100, dur: 900, ...device },
				{ ph: "X", name: "gemm", cat: "kernel", ts: 200, dur: 100, ...device },
				{ ph: "X", name: "softmax", cat: "kernel", ts: 500, dur: 300, ...device },
			],
		}),
	);
	browser = await launch();
	server = await Server.start(path, annotated);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

async function open(query = ""): Promise<Tab> {
	const tab = await Tab.open(browser, server.at("timeline", server.traces[0]!, query));
	await tab.page.locator(".tl-canvas").waitFor();
	return tab;
}

const said = (tab: Tab, name: string) => expect.poll(() => new URLSearchParams(new URL(tab.page.url()).hash.split("?")[1]).get(name));

test("devices come first, and the trace ends with its last event", async () => {
	const tab = await open();
	const labels = await tab.page.locator(".tl-gutter").innerText();
	expect(labels.indexOf("stream 7")).toBeGreaterThan(-1);
	expect(labels.indexOf("stream 7")).toBeLessThan(labels.indexOf("thread"));
	expect(labels).not.toContain("no process");
	const reply = await tab.page.evaluate(async (id) => (await (await fetch(`api/v1/traces/${id}/timeline`)).json()) as { duration_ns: number }, server.traces[0]!.id);
	expect(reply.duration_ns).toBe(2_900_000);
	await tab.close();
	tab.expectQuiet();
});

test("kinds can be hidden, in the picture and in the sums", async () => {
	const tab = await open();
	const { page } = tab;
	const names = async () => (await readGrid(page, "What runs in this range")).rows.map((row) => row.name);
	expect(await names()).toContain("train.py(3): forward");
	const shot = () => page.locator(".tl-canvas").screenshot();
	const before = await shot();
	await page.locator("summary", { hasText: "Kinds" }).click();
	await page.getByRole("checkbox", { name: "Python functions" }).uncheck();
	await said(tab, "hide").toBe("python");
	await page.locator("summary", { hasText: "Kinds: 1 hidden" }).click();
	await expect.poll(names).not.toContain("train.py(3): forward");
	expect(Buffer.compare(before, await shot())).not.toBe(0);
	await page.reload();
	await expect.poll(names).not.toContain("train.py(3): forward");
	await tab.close();
	tab.expectQuiet();
});

test("a step is picked from a list", async () => {
	const tab = await open();
	await tab.page.getByRole("combobox", { name: "Step" }).selectOption("1");
	await said(tab, "range").toBe("1000000-1900000");
	await tab.page.getByRole("tab", { name: /^Range: 900\sµs$/ }).waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("one click shows a typical step, another the whole trace", async () => {
	const tab = await open();
	const { page } = tab;
	await page.getByRole("button", { name: "Typical step" }).click();
	const step = page.getByRole("combobox", { name: "Step" });
	await expect.poll(() => step.inputValue()).not.toBe("-1");
	expect(Number(await step.inputValue())).toBe(0); // all take equally long
	await said(tab, "range").toBe("0-900000");
	await page.getByRole("button", { name: "Whole trace" }).click();
	await page.locator(".tl-canvas").waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("annotations on devices do not count as device work", async () => {
	const tab = await Tab.open(browser, server.at("timeline", server.trace("annotated.pt")));
	const shares = async () => (await readGrid(tab.page, "What runs in this range")).rows.map((row) => `${row.name} ${row.share}`).sort();
	await expect.poll(shares).toEqual(["forward –", "gemm 25.0 %", "softmax 75.0 %"]);
	await tab.close();
	tab.expectQuiet();
});

test("a range of one track sums that track, and devices have a separate denominator", async () => {
	const tab = await open();
	const { page } = tab;
	const share = async (name: string) => parseFloat((await readGrid(page, "What runs in this range")).rows.find((row) => row.name === name)?.share ?? "");
	await expect.poll(() => share("gemm")).toBe(100); // all that devices do
	await page.getByRole("columnheader", { name: "Of self time on CPU or GPU" }).waitFor();
	const box = (await page.locator(".tl-canvas").boundingBox())!;
	const stream = (await page.locator(".tl-gutter").getByText("stream 7").boundingBox())!;
	const y = stream.y + stream.height / 2;
	await page.keyboard.down("Shift");
	await page.mouse.move(box.x + 5, y);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width / 2, y, { steps: 3 });
	await page.mouse.up();
	await page.keyboard.up("Shift");
	await said(tab, "tracks").toMatch(/^\d+$/);
	await page.getByText("on 1 track").waitFor();
	expect((await readGrid(page, "What runs in this range")).rows.map((row) => row.name)).toEqual(["gemm"]);
	await page.getByRole("columnheader", { name: "Of self time on GPUs" }).waitFor();
	await tab.shot("timeline-range-of-a-track");
	await tab.close();
	tab.expectQuiet();
});

test("the search looks at arguments when asked", async () => {
	const tab = await open("q=64,12");
	const hits = tab.page.locator(".tl-hits");
	await expect.poll(() => hits.innerText()).toBe("0 hits");
	await tab.page.getByRole("button", { name: "Arguments" }).click();
	await said(tab, "args").toBe("1");
	await expect.poll(() => hits.innerText()).toMatch(/\b1\b/);
	await tab.page.getByRole("button", { name: "Next hit" }).click();
	await tab.page.locator(".tl-event h2", { hasText: "aten::mm" }).waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("an event is compared with its like", async () => {
	const tab = await open("q=aten%3A%3Amm");
	const { page } = tab;
	await page.getByRole("heading", { name: "3 calls in the whole trace" }).waitFor();
	const calls = page.locator(".calls");
	expect(await calls.innerText()).toMatch(/rank of this call\s+3 of 3/);
	expect(await calls.innerText()).toMatch(/median\s+200\sµs/);
	await tab.close();
	tab.expectQuiet();
});

test("marks carry notes in the address", async () => {
	const tab = await open("marks=500000,700000");
	const { page } = tab;
	await page.getByRole("tab", { name: "Marks: 2" }).click();
	await page.getByRole("textbox", { name: "Note of mark 2" }).fill("slow & odd = here?");
	await said(tab, "notes").not.toBe(null);
	const address = page.url();
	await tab.close();
	tab.expectQuiet();
	const other = await Tab.open(browser, server.url + new URL(address).hash);
	await other.page.getByRole("tab", { name: "Marks: 2" }).click();
	expect(await other.page.getByRole("textbox", { name: "Note of mark 2" }).inputValue()).toBe("slow & odd = here?");
	expect(await other.page.getByRole("textbox", { name: "Note of mark 1" }).inputValue()).toBe("");
	await other.shot("timeline-notes");
	await other.close();
	other.expectQuiet();
});

test("wrappers are folded until the switch is off", async () => {
	const tab = await open(`q=${encodeURIComponent("nn.Module: Linear_0")}`);
	const { page } = tab;
	const track = page.locator(".tl-name.track .text", { hasText: "thread 3" });
	const depths = async () => Number(/(\d+) deep/.exec((await track.getAttribute("title")) ?? "")?.[1]);
	expect(await depths()).toBe(3); // predict, Linear_0, aten::linear
	await page.locator(".tl-event h2", { hasText: "Linear_0" }).waitFor();
	await page.getByText("Folded around it").waitFor();
	expect(await page.locator(".tl-event dt:text-is('Folded around it') + dd").innerText()).toMatch(/_call_impl.*998\sµs/s);
	await tab.shot("timeline-wrappers-folded");
	const toggle = page.getByRole("button", { name: "Fold wrappers" });
	expect(await toggle.getAttribute("aria-pressed")).toBe("true");
	const before = await page.locator(".tl-canvas").screenshot();
	await toggle.click();
	await said(tab, "wrappers").toBe("1");
	await expect.poll(depths).toBe(4);
	await expect.poll(async () => Buffer.compare(before, await page.locator(".tl-canvas").screenshot())).not.toBe(0);
	await tab.shot("timeline-wrappers");
	await page.reload();
	await expect.poll(depths).toBe(4);
	// The parent is the wrapper where that is drawn, and else what is around it.
	await page.locator(".tl-canvas").focus();
	await page.keyboard.press("Alt+ArrowUp");
	await page.locator(".tl-event h2", { hasText: "_call_impl" }).waitFor();
	await page.getByRole("button", { name: "Fold wrappers" }).click();
	await page.getByText("Folded into").waitFor();
	await page.getByRole("button", { name: "what it calls" }).click();
	await page.locator(".tl-event h2", { hasText: "Linear_0" }).waitFor();
	await page.locator(".tl-canvas").focus();
	await page.keyboard.press("Alt+ArrowUp");
	await page.locator(".tl-event h2", { hasText: "predict" }).waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("wrappers fold in flame graphs, too", async () => {
	const tab = await Tab.open(browser, server.at("stacks", server.traces[0]!));
	const { page } = tab;
	const toggle = page.getByRole("checkbox", { name: "Fold wrappers" });
	const frames = async () => (await readGrid(page, "Functions")).rows.map((row) => row.name);
	expect(await toggle.isChecked()).toBe(true);
	expect((await frames()).filter((name) => name?.includes("_call_impl"))).toEqual([]);
	await toggle.uncheck();
	await expect.poll(async () => (await frames()).some((name) => name?.includes("_call_impl"))).toBe(true);
	expect(new URL(page.url()).hash).toContain("wrappers=keep");
	await tab.shot("stacks-wrappers");
	await toggle.check();
	await expect.poll(async () => (await frames()).some((name) => name?.includes("_call_impl"))).toBe(false);
	expect(new URL(page.url()).hash).not.toContain("wrappers");
	await tab.close();
	tab.expectQuiet();
});

test("flame graphs leave out waits of helper threads, say how much that is, and show it if asked to", async () => {
	const helper = join(folder, "helper.pt.trace.json");
	const call = (name: string, tid: number, ts: number, dur: number, cat = "python_function") => ({ ph: "X", name, cat, pid: 1, tid, ts, dur, args: {} });
	const traceEvents = [
		call("ProfilerStep#1", 2, 0, 1000, "user_annotation"),
		call("train.py(9): train", 2, 1, 998),
		call("loader.py(3): pin", 3, 0, 990),
		call("queue.py(154): Queue.get", 3, 5, 900),
	];
	writeFileSync(helper, JSON.stringify({ traceEvents }));
	const own = await Server.start(helper);
	const tab = await Tab.open(browser, own.at("stacks", own.traces[0]!), { viewport: { width: 1400, height: 900 } });
	const { page } = tab;
	const frames = async () => (await readGrid(page, "Functions")).rows.map((row) => row.name).sort();
	expect(await frames()).toEqual(["ProfilerStep*", "pin", "train"]);
	expect((await page.getByText(/^Left out: /).innerText()).replace(/\s/g, " ")).toBe("Left out: 900 µs in which helper threads wait");
	await tab.shot("stacks-waits");
	await page.getByRole("checkbox", { name: "Leave out waits of helper threads" }).uncheck();
	await expect.poll(frames).toEqual(["ProfilerStep*", "Queue.get", "pin", "train"]);
	expect(await page.getByText(/^Left out: /).count()).toBe(0);
	expect(new URL(page.url()).hash).toContain("waits=keep");
	await tab.close();
	tab.expectQuiet();
	await own.stop();
});

test("the toolbar is one line at 1400 pixels, also while searching", async () => {
	const tab = await Tab.open(browser, server.at("timeline", server.traces[0]!, "q=aten"), { viewport: { width: 1400, height: 900 } });
	const { page } = tab;
	await page.getByText(/of \d+$/).waitFor();
	const heights = await page.locator(".tl-toolbar").evaluate((bar) => [bar.clientHeight, ...[...bar.children].map((each) => each.getBoundingClientRect().height)]);
	expect(heights[0]).toBeLessThan(1.6 * Math.max(...heights.slice(1)));
	expect(await page.locator(".tl-toolbar").evaluate((bar) => bar.scrollWidth <= bar.clientWidth)).toBe(true);
	await tab.shot("timeline-toolbar");
	await tab.close();
	tab.expectQuiet();
});

test("a frame of code that was in no file has no link", async () => {
	const tab = await open("q=typed");
	await tab.page.keyboard.press("n");
	await tab.page.getByRole("heading", { name: "typed" }).waitFor();
	await tab.page.getByText("<string>:1").first().waitFor();
	expect(await tab.page.getByRole("link", { name: "<string>" }).count()).toBe(0);
	await tab.close();
	tab.expectQuiet();
});
