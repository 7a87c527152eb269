// SPDX-License-Identifier: Apache-2.0
//
// What views show first, of a program whose import takes longer than its steps: from a server
// and in a report.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseRoute } from "../../src/app/route";
import { launch, Tab } from "./browser";
import { readGrid } from "./grid";
import { call, Server } from "./server";

const folder = mkdtempSync(join(tmpdir(), "opstrobe-opening-"));
const MS = 1000;
const SHAPES = { "Input Dims": [[512, 512], [512, 512]], "Input Strides": [[512, 1], [512, 1]], "Input type": ["float", "float"] };

/** An import of 2 s, with an operator, and four steps of 100 ms after it. */
function program() {
	const event = (cat: string, name: string, ts: number, dur: number) => ({ ph: "X", cat, name, pid: 1, tid: 1, ts, dur });
	const traceEvents: object[] = [
		event("python_function", "train.py(1): main", 0, 2410 * MS),
		event("python_function", "import torch._dynamo", 0, 2000 * MS),
		event("python_function", "setup.py(7): fill", 500 * MS, 1000 * MS),
		{ ...event("cpu_op", "aten::normal_", 500 * MS, 1000 * MS), args: SHAPES },
	];
	for (let step = 0; step < 4; step++) {
		const ts = (2000 + 100 * step) * MS;
		const memory = { ...event("cpu_instant_event", "[memory]", ts + 1, 0), ph: "i", s: "t", args: { "Bytes": 1024, "Addr": 4096 * (step + 1), "Total Allocated": 1024 * (step + 1), "Device Type": 0, "Device Id": -1 } };
		traceEvents.push(event("user_annotation", `ProfilerStep#${step}`, ts, 100 * MS), { ...event("cpu_op", "aten::mm", ts, 90 * MS), args: SHAPES }, memory);
	}
	return { traceEvents };
}

let browser: Browser;
let server: Server;
const trace = join(folder, "train.pt.trace.json");
const report = join(folder, "report.html");
beforeAll(async () => {
	writeFileSync(trace, JSON.stringify(program()));
	browser = await launch();
	server = await Server.start(trace);
	call("report", "-o", report, trace);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

describe.each(["server", "report"])("%s", (where) => {
	const at = (view: string) => (where === "server" ? server.at(view, server.traces[0]!) : `${pathToFileURL(report).href}#/${view}`);

	test("the timeline opens on the steps, and a click shows the whole trace", async () => {
		const tab = await Tab.open(browser, at("timeline"));
		await tab.page.locator(".tl-canvas[aria-busy=false]").waitFor();
		await tab.page.getByText("aten::mm").first().waitFor();
		const rows = tab.page.locator(".tl-sums .grid-body [role=row]");
		await rows.first().filter({ hasText: "aten::mm" }).waitFor();
		await tab.shot(`${where}-opening-timeline`);
		// No step is chosen, and the trace is not shown whole.
		const step = tab.page.locator(".tl-step option:checked");
		expect(await step.textContent()).toBe("None");
		await tab.page.getByRole("button", { name: "Whole trace" }).click();
		await expect.poll(() => step.textContent()).toBe("Whole trace");
		await rows.first().filter({ hasText: "import torch._dynamo" }).waitFor();
		// A link to the complete trace says so.
		await tab.page.waitForFunction(() => location.hash.includes("from=0"));
		expect(Number(parseRoute(new URL(tab.page.url()).hash).params.get("to"))).toBeGreaterThanOrEqual(2_390_000_000);
		await tab.page.reload();
		await rows.first().filter({ hasText: "import torch._dynamo" }).waitFor();
		await tab.close();
		tab.expectQuiet();
	});

	test("stacks open on the steps and say so, and a click shows the whole trace", async () => {
		const tab = await Tab.open(browser, at("stacks"));
		const total = async (name: string) => (await readGrid(tab.page, "Functions")).rows.find((row) => row.name === name)?.total;
		await tab.page.getByText("Only the steps are shown.").waitFor();
		await tab.page.getByRole("grid", { name: "Functions" }).waitFor();
		// The part of `main` before and after the steps is left out.
		expect([await total("main"), await total("aten::mm"), await total("import torch._dynamo")]).toEqual(["400 ms", "360 ms", undefined]);
		expect(await tab.page.getByLabel("Steps").inputValue()).toBe(where === "server" ? "0" : "0:3");
		await tab.shot(`${where}-opening-stacks`);
		await tab.page.locator(".tools").first().getByRole("button", { name: "Show all" }).click();
		await expect.poll(() => total("import torch._dynamo")).toBe("2.00 s");
		expect(await total("main")).toBe("2.41 s");
		expect(await tab.page.getByText("Only the steps are shown.").count()).toBe(0);
		expect(await tab.page.getByLabel("Steps").inputValue()).toBe("");
		await tab.close();
		tab.expectQuiet();
	});

	test("the overview lists the operators of the steps, and says so", async () => {
		const tab = await Tab.open(browser, at("overview"));
		const panel = tab.page.getByRole("region", { name: "Operators with the most time" });
		await panel.getByText("of steps 0 to 3").waitFor();
		expect(await panel.locator("li .name").allInnerTexts()).toEqual(["aten::mm"]);
		await panel.scrollIntoViewIfNeeded();
		await tab.shot(`${where}-opening-operators`);
		await panel.getByRole("link", { name: "aten::mm" }).click();
		await expect.poll(async () => (await readGrid(tab.page, "Operators")).rows.map((row) => row.host_self)).toEqual(["360 ms"]);
		await tab.close();
		tab.expectQuiet();
	});

	test.each([
		["operators", "Operators", "aten::mm", "aten::normal_"],
		["roofline", "Roofline", "aten::mm", "aten::normal_"],
		["source", "Files of the program", "train.py", "setup.py"],
	])("%s opens on the steps, and a click shows the whole trace", async (view, grid, inSteps, before) => {
		const tab = await Tab.open(browser, `${at(view)}${view === "source" ? "?file=*" : ""}`);
		const table = tab.page.getByRole("grid", { name: grid });
		await table.getByText(inSteps).first().waitFor();
		await tab.page.getByText("Only the steps are shown.").waitFor();
		expect(await table.getByText(before).count()).toBe(0);
		await tab.page.getByRole("button", { name: "Show all" }).click();
		await table.getByText(before).first().waitFor();
		await tab.close();
		tab.expectQuiet();
	});

	test("memory opens on the steps, and a click shows the whole trace", async () => {
		const tab = await Tab.open(browser, at("memory"));
		const allocations = tab.page.getByRole("grid", { name: "Allocations" });
		const note = tab.page.getByText("Only the steps are shown.");
		const menu = tab.page.locator(".step-choice select").first();
		for (const whole of [false, true]) {
			await tab.page.locator(".line-chart .u-over").waitFor();
			await tab.page.locator("h2", { hasText: "Peak: " }).waitFor();
			await allocations.waitFor();
			expect(await note.count()).toBe(whole ? 0 : 1);
			expect(await menu.locator("option:checked").textContent()).toBe(whole ? "Whole trace" : where === "server" ? "0" : "0 to 3");
			await tab.page.getByRole("button", { name: "By operator" }).click();
			await tab.page.getByText("No operator allocates on this device.").or(tab.page.getByRole("grid", { name: "Memory by operator" })).waitFor();
			await tab.page.getByRole("group", { name: "Table" }).getByRole("button", { name: "Allocations" }).click();
			if (!whole) await tab.page.getByRole("button", { name: "Show all" }).click();
			await note.waitFor({ state: "detached" });
		}
		expect(await tab.page.getByText("This is not in the report").count()).toBe(0);
		await tab.close();
		tab.expectQuiet();
	});
});

test("a link to the stacks of an operator covers what the table covers", async () => {
	const tab = await Tab.open(browser, server.at("operators", server.traces[0]!));
	await tab.page.getByRole("button", { name: "Show all" }).click();
	await tab.page.getByRole("grid", { name: "Operators" }).getByText("aten::normal_").click();
	await tab.page.getByRole("link", { name: "What calls it" }).click();
	await tab.page.getByText(/^1\.00\ss, /).waitFor();
	await tab.close();
	tab.expectQuiet();
});
