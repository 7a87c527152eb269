// SPDX-License-Identifier: Apache-2.0
// The timeline in a real browser on the real server. What it shows is compared with the events of the file itself.
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formatCount } from "../../src/format/units";
import { parseRoute } from "../../src/app/route";
import type { EventReply, FlowsReply, TimelineReply } from "../../src/timeline/api";
import { RULER, STEPS } from "../../src/timeline/geometry";
import { launch, root, Tab } from "./browser";
import { expectShows } from "./grid";
import { recorded, type Served, Server } from "./server";

interface FileEvent {
	name: string;
	cat: string;
	/** ns since the first event */
	start: number;
	end: number;
}

let browser: Browser;
let folder: string;
let server: Server;
let made: Served;
let python: Served;
let events: FileEvent[];

beforeAll(async () => {
	browser = await launch();
	folder = await mkdtemp(join(tmpdir(), "opstrobe-timeline-"));
	const path = join(folder, "worker0.pt.trace.json");
	const program = join(folder, "make_trace");
	execFileSync("cc", [join(root, "bench/make_trace.c"), "-o", program]);
	execFileSync(program, ["20000", path]);
	await writeFile(join(folder, "hostile.pt.trace.json"), hostileTrace());
	server = await Server.start(folder, recorded);
	made = server.trace("worker0");
	python = server.trace("train");
	events = await readEvents(path);
});

afterAll(async () => {
	await server.stop();
	await browser.close();
	await rm(folder, { recursive: true });
});

/** A reply, as a program gets it. */
async function ask<T>(path: string): Promise<T> {
	const url = new URL(server.url);
	const headers = { Authorization: `Bearer ${url.searchParams.get("token") ?? ""}` };
	return (await (await fetch(new URL(`api/v1/${path}`, url), { headers })).json()) as T;
}

async function readEvents(path: string): Promise<FileEvent[]> {
	const { traceEvents } = JSON.parse(await readFile(path, "utf8")) as {
		traceEvents: { ph: string; name: string; cat: string; ts: number; dur?: number }[];
	};
	const timed = traceEvents.filter((each) => each.ph === "X" || each.ph === "i");
	const origin = Math.min(...timed.map((each) => each.ts));
	return timed.map(({ name, cat, ts, dur }) => ({
		name,
		cat,
		start: Math.round((ts - origin) * 1000),
		end: Math.round((ts - origin + (dur ?? 0)) * 1000),
	}));
}

const HOSTILE = ["<img src=x onerror=document.title='owned'>", "</script><script>document.title='owned'</script>", "a\u2028b\u0000c"];

function hostileTrace(): string {
	const traceEvents = HOSTILE.map((name, i) => ({
		...{ ph: "X", cat: "cpu_op", name, pid: 1, tid: 1, ts: 100 * i, dur: 90 },
		args: { [name]: name },
	}));
	const names = { ph: "M", name: "thread_name", pid: 1, tid: 1, args: { name: HOSTILE[0] } };
	return JSON.stringify({ traceEvents: [names, ...traceEvents] });
}

/** The timeline of a trace, drawn to the end. */
class Timeline {
	private constructor(readonly tab: Tab) {}

	static async open(trace: Served, query = "", options: BrowserContextOptions = {}): Promise<Timeline> {
		const timeline = new Timeline(await Tab.open(browser, server.at("timeline", trace, query), options));
		await timeline.idle();
		return timeline;
	}

	get page() {
		return this.tab.page;
	}

	async idle(): Promise<void> {
		await this.page.locator(".tl-canvas[aria-busy=false]").waitFor();
	}

	params(): ReadonlyMap<string, string> {
		return parseRoute(new URL(this.page.url()).hash).params;
	}

	/** Waits until the address says something. */
	async says(name: string, test: (value: string | undefined) => boolean = (value) => value !== undefined): Promise<string> {
		await expect.poll(() => test(this.params().get(name)), { timeout: 30_000, message: `${name} in the address` }).toBe(true);
		return this.params().get(name) ?? "";
	}

	async span(): Promise<{ from: number; to: number }> {
		await this.says("to");
		return { from: Number(this.params().get("from")), to: Number(this.params().get("to")) };
	}

	async press(...keys: string[]): Promise<void> {
		for (const key of keys) await this.page.keyboard.press(key);
		await this.idle();
	}

	/** The point of a moment on a depth of a track, where the window is [from, to). */
	async point(track: string, depth: number, time: number, span: { from: number; to: number }): Promise<[number, number]> {
		const canvas = (await this.page.locator(".tl-canvas").boundingBox())!;
		const line = (await this.page.locator(".tl-name.track", { hasText: track }).first().boundingBox())!;
		return [canvas.x + ((time - span.from) / (span.to - span.from)) * canvas.width, line.y + depth * 18 + 9];
	}

	heading() {
		return this.page.locator(".tl-event h2");
	}

	async fact(title: string): Promise<string> {
		return this.page.locator(`.tl-event dt:text-is("${title}") + dd`).innerText();
	}

	picture(): Promise<string> {
		return this.page.locator(".tl-canvas").evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL());
	}

	async close(): Promise<void> {
		this.tab.expectQuiet();
		await this.tab.close();
	}
}

describe("the timeline", () => {
	test("has every track, the steps and the counters", async () => {
		const timeline = await Timeline.open(made);
		const names = await timeline.page.locator(".tl-name .text").allInnerTexts();
		expect(names.join("\n")).toMatch(/stream 7/);
		expect(names.join("\n")).toMatch(/memory/);
		// Reports of memory are not separate events.
		const count = events.filter((each) => each.cat !== "cpu_instant_event").length;
		const corner = await timeline.page.locator(".tl-corner").innerText();
		expect(corner.replaceAll(",", "")).toContain(`${count} events`);
		await timeline.tab.shot("timeline");
		await timeline.close();
	});

	test("a click shows the event, with the figures of the file", async () => {
		const span = { from: 1_000_000, to: 1_400_000 };
		const timeline = await Timeline.open(made, `from=${span.from}&to=${span.to}`);
		const wanted = events.find((each) => each.cat === "kernel" && each.start > 1_100_000)!;
		const at = await timeline.point("stream 7", 0, (wanted.start + wanted.end) / 2, span);
		await timeline.page.mouse.click(...at);
		await expect.poll(() => timeline.heading().innerText()).toBe(wanted.name);
		expect(await timeline.fact("Duration")).toBe("30.9 µs");
		expect(await timeline.fact("Start")).toBe(`${(wanted.start / 1e6).toFixed(3)} ms`);
		expect(await timeline.page.locator(".tl-args").innerText()).toMatch(/est. achieved occupancy %\s+56/);
		await timeline.says("event");
		// What launched it is two lines deep, inside an operator.
		const launched = events.find((each) => each.cat === "cuda_runtime" && each.start > 1_100_000)!;
		await timeline.page.mouse.click(...(await timeline.point("1", 2, (launched.start + launched.end) / 2, span)));
		await expect.poll(() => timeline.heading().innerText()).toBe("cudaLaunchKernel");
		const outer = timeline.page.locator(".tl-event dl button");
		await expect.poll(() => outer.innerText()).toMatch(/^aten::/);
		const name = await outer.innerText();
		await outer.click();
		await expect.poll(() => timeline.heading().innerText()).toBe(name);
		await timeline.tab.shot("timeline-event");
		await timeline.close();
	});

	test("a link leads from forward to backward and back", async () => {
		const { flows } = await ask<FlowsReply>(`traces/${python.id}/timeline/flows?kinds=forward_backward&limit=1`);
		const { from, to } = flows[0]!;
		const name = async (row: number) => (await ask<EventReply>(`traces/${python.id}/timeline/events/${row}`)).name;
		const [forward, backward] = [await name(from.row), await name(to.row)];
		const timeline = await Timeline.open(python, `event=${from.row}`);
		await expect.poll(() => timeline.heading().innerText()).toBe(forward);
		await timeline.page.locator(".tl-links li", { hasText: "Backward" }).getByRole("button").click();
		await expect.poll(() => timeline.heading().innerText()).toBe(backward);
		await timeline.page.locator(".tl-links li", { hasText: "Backward of" }).getByRole("button").click();
		await expect.poll(() => timeline.heading().innerText()).toBe(forward);
		await timeline.close();
	});

	test("the sums of a range are those of its events", async () => {
		const timeline = await Timeline.open(made, "from=10000000&to=30000000");
		const box = (await timeline.page.locator(".tl-canvas").boundingBox())!;
		await timeline.page.keyboard.down("Shift");
		await timeline.page.mouse.move(box.x + 200, box.y + 10); // on the ruler: of all tracks
		await timeline.page.mouse.down();
		await timeline.page.mouse.move(box.x + 500, box.y + 10);
		await timeline.page.mouse.move(box.x + 600, box.y + 10);
		await timeline.page.mouse.up();
		await timeline.page.keyboard.up("Shift");
		// Not yet the range up to the place in between.
		const end = 10_000_000 + (590 / box.width) * 20_000_000;
		const range = await timeline.says("range", (value) => Number(value?.split("-")[1]) > end);
		const [from, to] = range.split("-").map(Number) as [number, number];
		expect(to - from).toBeGreaterThan(1_000_000);
		const sums = new Map<string, { count: number; total: number }>();
		for (const each of events) {
			// An instant counts where it is; others as far as they are in the range.
			if (each.start >= to || (each.end <= from && !(each.start === each.end && each.start >= from))) continue;
			const sum = sums.get(each.name) ?? { count: 0, total: 0 };
			sum.count++;
			sum.total += Math.min(each.end, to) - Math.max(each.start, from);
			sums.set(each.name, sum);
		}
		const table = timeline.page.getByRole("grid", { name: "What runs in this range" });
		await table.getByRole("button", { name: "Total" }).or(table.getByRole("columnheader", { name: "Total" })).first().click();
		for (const name of ["aten::linear", "cudaLaunchKernel", "aten::empty"]) {
			await timeline.page.getByLabel("Filter the rows").fill(name);
			const row = table.getByRole("row").filter({ hasText: name });
			const sum = sums.get(name)!;
			await expect.poll(async () => (await row.first().getByRole("gridcell").allInnerTexts())[2], { message: name, timeout: 30_000 }).toBe(formatCount(sum.count));
			const cells = await row.first().getByRole("gridcell").allInnerTexts();
			expectShows(cells[3]!, sum.total / 1e3, `total of ${name}`);
		}
		await timeline.tab.shot("timeline-range");
		await timeline.close();
	});

	test("keys zoom, move, scroll and go back to the complete range", async () => {
		const timeline = await Timeline.open(made);
		await timeline.page.mouse.move(5, 5);
		await timeline.press("w", "w", "w");
		await timeline.says("to");
		const zoomed = await timeline.span();
		await timeline.press("d");
		const right = Number(await timeline.says("from", (value) => Number(value) > zoomed.from));
		await timeline.press("ArrowLeft", "ArrowLeft");
		await timeline.says("from", (value) => Number(value) < right);
		await timeline.press("s");
		const length = zoomed.to - zoomed.from;
		await timeline.says("to", (value) => Number(value) - Number(timeline.params().get("from")) > length * 1.3);
		await timeline.press("0");
		await timeline.says("to", (value) => value === undefined);
		await timeline.close();
	});

	test("Escape leads from the search back to the tracks", async () => {
		const timeline = await Timeline.open(made);
		await timeline.press("/");
		await timeline.page.keyboard.type("empty");
		await timeline.says("q", (value) => value === "empty");
		await timeline.press("Enter");
		await timeline.says("event");
		await timeline.press("Escape");
		await timeline.says("q", (value) => value === undefined);
		const before = timeline.params().get("to");
		await timeline.press("w", "w");
		await timeline.says("to", (value) => value !== before);
		expect(timeline.params().has("q")).toBe(false);
		expect(timeline.params().has("event")).toBe(true);
		await timeline.close();
	});

	test("the wheel zooms with Ctrl where the pointer is", async () => {
		const timeline = await Timeline.open(made);
		const box = (await timeline.page.locator(".tl-canvas").boundingBox())!;
		const whole = Math.max(...events.map((each) => each.end));
		await timeline.page.mouse.move(box.x + box.width / 4, box.y + 200);
		await timeline.page.keyboard.down("Control");
		for (let i = 0; i < 8; i++) await timeline.page.mouse.wheel(0, -100);
		await timeline.page.keyboard.up("Control");
		const { from, to } = await timeline.span();
		expect(to - from).toBeLessThan(whole / 5);
		expect((whole / 4 - from) / (to - from)).toBeCloseTo(0.25, 1);
		await timeline.close();
	});

	test("an address brings everything back", async () => {
		const timeline = await Timeline.open(made, "from=2000000&to=2600000&q=aten%3A%3Aempty&color=name&marks=2100000,2300000");
		await timeline.page.getByRole("button", { name: /^stream 7: pin/ }).click({ force: true });
		await timeline.says("pin");
		const span = { from: 2_000_000, to: 2_600_000 };
		const empty = events.find((each) => each.name === "aten::empty" && each.start > 2_200_000)!;
		await timeline.page.mouse.click(...(await timeline.point("1", 2, empty.start + 1500, span)));
		await expect.poll(() => timeline.heading().innerText()).toBe("aten::empty");
		await timeline.says("event");
		await timeline.page.mouse.move(3, 3);
		await timeline.page.reload();
		await timeline.idle();
		await expect.poll(() => timeline.heading().innerText()).toBe("aten::empty");
		const again = await Timeline.open(made, new URL(timeline.page.url()).hash.split("?")[1]);
		await expect.poll(() => again.heading().innerText()).toBe("aten::empty");
		await again.page.mouse.move(3, 3);
		await expect.poll(async () => (await again.picture()) === (await timeline.picture())).toBe(true);
		expect(await again.page.getByRole("tab", { name: "Marks: 2" }).count()).toBe(1);
		await again.tab.shot("timeline-address");
		await again.close();
		await timeline.close();
	});

	test("a search finds all hits and goes from one to the next, and around", async () => {
		const timeline = await Timeline.open(made);
		const hits = events.filter((each) => each.name.includes("ProfilerStep#"));
		expect(hits.length).toBeGreaterThanOrEqual(2);
		await timeline.page.keyboard.press("/");
		await timeline.page.keyboard.type("profilerSTEP#");
		const output = timeline.page.locator(".tl-hits");
		await expect.poll(() => output.innerText()).toBe(`${hits.length} hits`);
		for (const hit of [...hits, hits[0]!]) {
			await timeline.page.keyboard.press("Enter");
			await expect.poll(() => timeline.heading().innerText()).toBe(hit.name);
		}
		await expect.poll(() => output.innerText()).toBe(`1 of ${hits.length}`);
		await timeline.page.keyboard.press("Shift+Enter");
		await expect.poll(() => timeline.heading().innerText()).toBe(hits[hits.length - 1]!.name);
		await timeline.tab.shot("timeline-search");
		await timeline.close();
	});

	test("tracks fold and pin by keyboard", async () => {
		const timeline = await Timeline.open(made);
		const fold = timeline.page.getByRole("button", { name: /^stream 7: (un)?fold$/ });
		expect(await fold.getAttribute("aria-expanded")).toBe("true");
		await fold.focus();
		await timeline.page.keyboard.press("Enter");
		await expect.poll(() => fold.getAttribute("aria-expanded")).toBe("false");
		await timeline.says("fold");
		const pin = timeline.page.getByRole("button", { name: /^stream 7: pin to the top$/ });
		await pin.focus();
		await timeline.page.keyboard.press("Enter");
		await timeline.page.getByRole("group", { name: "Pinned tracks" }).getByText("stream 7").waitFor();
		await timeline.close();
	});

	test("Alt and the arrow keys go to neighbours, parent and child", async () => {
		const timeline = await Timeline.open(made, "from=1000000&to=1400000&event=0");
		await expect.poll(() => timeline.heading().innerText()).toBe("ProfilerStep#0");
		await timeline.page.locator(".tl-canvas").focus();
		await timeline.press("Alt+ArrowDown");
		await expect.poll(() => timeline.heading().innerText()).toMatch(/^aten::/);
		const first = await timeline.heading().innerText();
		await timeline.press("Alt+ArrowRight");
		await expect.poll(() => timeline.heading().innerText()).not.toBe(first);
		await timeline.press("Alt+ArrowLeft");
		await expect.poll(() => timeline.heading().innerText()).toBe(first);
		await timeline.press("Alt+ArrowUp");
		await expect.poll(() => timeline.heading().innerText()).toBe("ProfilerStep#0");
		await timeline.close();
	});

	test("two fingers zoom, one moves", async () => {
		const timeline = await Timeline.open(made, "", { hasTouch: true });
		const box = (await timeline.page.locator(".tl-canvas").boundingBox())!;
		const cdp = await timeline.page.context().newCDPSession(timeline.page);
		const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...xs: number[]) =>
			cdp.send("Input.dispatchTouchEvent", { type, touchPoints: xs.map((x, id) => ({ x: box.x + x, y: box.y + 250, id })) });
		await touch("touchStart", 400, 500);
		await touch("touchMove", 300, 600);
		await touch("touchMove", 200, 700);
		await touch("touchEnd");
		const zoomed = await timeline.span();
		const whole = Math.max(...events.map((each) => each.end));
		expect((zoomed.to - zoomed.from) / whole).toBeCloseTo(0.2, 1);
		await touch("touchStart", 400);
		await touch("touchMove", 350);
		await touch("touchMove", 200);
		await touch("touchEnd");
		await timeline.says("from", (value) => Number(value) > zoomed.from);
		await timeline.close();
	});

	test("Python functions and modules have their names, arrows and the critical path show", async () => {
		const timeline = await Timeline.open(python, "arrows=1", { colorScheme: "dark" });
		await timeline.tab.shot("timeline-python-dark");
		await timeline.page.getByRole("button", { name: "Critical path" }).click();
		await expect.poll(() => timeline.page.locator(".tl-path").innerText()).toMatch(/^Critical path of ProfilerStep#\d.*cpu bound/);
		await timeline.tab.shot("timeline-path");
		await timeline.close();
	});

	test("every kind of event is found, and shows what it is", async () => {
		const timeline = await Timeline.open(python);
		for (const [text, name, kind] of [
			["train.py(", /train\.py\(\d+\)/, /python_function/],
			["nn.Module: Linear", /^[\w.]+$/, /python_function|module/],
			["ProfilerStep#3", /^ProfilerStep#3$/, /user_annotation/],
			["aten::addmm", /^aten::addmm$/, /cpu_op/],
		] as const) {
			await timeline.page.getByLabel("Search names of events").fill(text);
			await expect.poll(() => timeline.page.locator(".tl-hits").innerText()).toMatch(/^\d/);
			await timeline.page.keyboard.press("Enter");
			await expect.poll(() => timeline.heading().innerText()).toMatch(name);
			await expect.poll(() => timeline.fact("Kind")).toMatch(kind);
		}
		await timeline.close();
	});

	test("a click on a step chooses its stretch of time", async () => {
		const timeline = await Timeline.open(python);
		const { steps } = await ask<TimelineReply>(`traces/${python.id}/timeline`);
		const step = steps[1]!;
		await timeline.page.getByRole("button", { name: "Whole trace" }).click(); // it opens on the steps
		await timeline.page.waitForFunction(() => location.hash.includes("from=0"));
		const box = (await timeline.page.locator(".tl-canvas").boundingBox())!;
		const whole = (await ask<TimelineReply>(`traces/${python.id}/timeline`)).duration_ns;
		const x = ((step.start_ns + step.end_ns) / 2 / whole) * box.width;
		await timeline.page.mouse.click(box.x + x, box.y + RULER + STEPS / 2);
		expect(await timeline.says("range")).toBe(`${step.start_ns}-${step.end_ns}`);
		await timeline.page.getByRole("tab", { name: /^Range: / }).waitFor();
		await timeline.close();
	});

	test("a counter shows its value at the pointer", async () => {
		const timeline = await Timeline.open(made);
		const name = timeline.page.locator(".tl-name.counter").first();
		await name.scrollIntoViewIfNeeded();
		const [line, box] = [(await name.boundingBox())!, (await timeline.page.locator(".tl-canvas").boundingBox())!];
		await timeline.page.mouse.move(box.x + box.width / 2, line.y + line.height / 2);
		const tip = timeline.page.getByRole("tooltip");
		await expect.poll(() => tip.innerText()).toMatch(/^[\d.,\s\u202f]+(%|[KMG]?i?B|)\s[^]* at [\d.]+/);
		await timeline.close();
	});

	test("a drag moves the picture with the pointer, and shows no tip meanwhile", async () => {
		const span = { from: 2_000_000, to: 3_000_000 };
		const timeline = await Timeline.open(made, `from=${span.from}&to=${span.to}`);
		const box = (await timeline.page.locator(".tl-canvas").boundingBox())!;
		await timeline.page.mouse.move(box.x + 500, box.y + 150);
		await timeline.page.mouse.down();
		await timeline.page.mouse.move(box.x + 450, box.y + 150);
		await timeline.page.mouse.move(box.x + 300, box.y + 150);
		expect(await timeline.page.getByRole("tooltip").count()).toBe(0);
		await timeline.page.mouse.up();
		const from = Number(await timeline.says("from", (value) => Number(value) > span.from));
		expect((from - span.from) / (span.to - span.from)).toBeCloseTo(200 / box.width, 2);
		expect(timeline.params().get("event")).toBeUndefined();
		await timeline.close();
	});

	test("marks are set where the pointer is, and the time between them is measured", async () => {
		const span = { from: 2_000_000, to: 3_000_000 };
		const timeline = await Timeline.open(made, `from=${span.from}&to=${span.to}`);
		const box = (await timeline.page.locator(".tl-canvas").boundingBox())!;
		await timeline.page.locator(".tl-canvas").focus();
		for (const x of [200, 600]) {
			await timeline.page.mouse.move(box.x + x, box.y + 150);
			await timeline.page.keyboard.press("m");
		}
		const [first, second] = (await timeline.says("marks", (value) => value?.includes(",") ?? false)).split(",").map(Number) as [number, number];
		expect((second - first) / (span.to - span.from)).toBeCloseTo(400 / box.width, 2);
		await timeline.page.getByRole("tab", { name: "Marks: 2" }).click();
		await timeline.page.locator(".tl-marks button", { hasText: "µs" }).last().click();
		await timeline.says("range", (value) => value === `${first}-${second}`);
		await timeline.page.getByRole("tab", { name: "Marks: 2" }).click();
		await timeline.page.getByRole("button", { name: "Remove" }).first().click();
		await timeline.says("marks", (value) => value === String(second));
		await timeline.close();
	});

	test("the strip above moves the window", async () => {
		const timeline = await Timeline.open(made, "from=0&to=2000000");
		const strip = (await timeline.page.locator(".tl-minimap").boundingBox())!;
		await timeline.page.mouse.click(strip.x + strip.width / 2, strip.y + strip.height / 2);
		const whole = Math.max(...events.map((each) => each.end));
		await timeline.says("from", (value) => Number(value) > whole / 4);
		const { from, to } = await timeline.span();
		expect((from + to) / 2 / whole).toBeCloseTo(0.5, 1);
		expect(to - from).toBeCloseTo(2_000_000, -3);
		await timeline.close();
	});

	test("hits, arrows and the critical path are drawn", async () => {
		const timeline = await Timeline.open(python);
		await timeline.page.mouse.move(3, 3);
		await timeline.idle();
		let before = await timeline.picture();
		const changes = async (what: string) => {
			await expect.poll(async () => (await timeline.picture()) !== before, { message: what }).toBe(true);
			await timeline.idle();
			before = await timeline.picture();
		};
		await timeline.page.getByLabel("Search names of events").fill("aten::addmm");
		await changes("all but the hits pales");
		await timeline.page.getByLabel("Search names of events").fill("");
		await changes("and comes back");
		await timeline.page.getByRole("button", { name: "Arrows" }).click();
		await changes("arrows");
		await timeline.page.getByRole("button", { name: "Arrows" }).click();
		await changes("no arrows");
		await timeline.page.getByRole("button", { name: "Critical path" }).click();
		await timeline.page.locator(".tl-path").waitFor();
		await changes("the path");
		await timeline.close();
	});

	test("a track that folds makes room, one that is unpinned goes back", async () => {
		const timeline = await Timeline.open(made);
		const top = async () => (await timeline.page.locator(".tl-name.group").last().boundingBox())!.y;
		const before = await top();
		const fold = timeline.page.getByRole("button", { name: /^(?!GPU \d+:|stream|utilization).*: fold$/ }).nth(1);
		await fold.click();
		await expect.poll(top).toBeLessThan(before);
		await timeline.page.getByRole("button", { name: /: unfold$/ }).first().click();
		await expect.poll(top).toBe(before);
		await timeline.page.getByRole("button", { name: "stream 7: pin to the top" }).click({ force: true });
		const pinned = timeline.page.getByRole("group", { name: "Pinned tracks" });
		await pinned.getByRole("button", { name: "stream 7: unpin" }).click({ force: true });
		await expect.poll(() => pinned.count()).toBe(0);
		await timeline.says("pin", (value) => value === undefined);
		await timeline.close();
	});

	test("names from a trace stay text", async () => {
		const timeline = await Timeline.open(server.trace("hostile"), "event=0");
		await expect.poll(() => timeline.heading().innerText()).toBe(HOSTILE[0]);
		expect(await timeline.page.locator(".tl-name.track .text").first().innerText()).toContain(HOSTILE[0]);
		const at = await timeline.point("<img", 0, 150_000, { from: 0, to: 290_000 });
		await timeline.page.mouse.move(...at);
		await timeline.page.getByRole("tooltip").waitFor();
		expect(await timeline.page.title()).not.toBe("owned");
		expect(await timeline.page.locator("img").count()).toBe(0);
		await timeline.tab.shot("timeline-hostile");
		await timeline.close();
	});

	test("a small window has room for it", async () => {
		const timeline = await Timeline.open(made, "", { viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 });
		const box = (await timeline.page.locator(".tl-canvas").boundingBox())!;
		expect(box.width).toBeGreaterThan(400);
		expect(box.height).toBeGreaterThan(80);
		expect(await timeline.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(720);
		await timeline.tab.shot("timeline-small");
		await timeline.close();
	});
});
