// SPDX-License-Identifier: Apache-2.0
// Who holds memory at any moment: a click on the curve, the peak of a range, and the same figures from the command.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { MemoryReply, TableReply } from "../../src/data/replies";
import { launch, Tab } from "./browser";
import { expectShows, readGrid } from "./grid";
import { printed, recorded, Server } from "./server";

let browser: Browser;
let server: Server;
const folder = mkdtempSync(join(tmpdir(), "opstrobe-memory-"));

/** Two steps of 1 ms after an import of 10 ms, with one allocation before them; the peak is in the steps or before them. */
function afterImport(records: "steps" | "import"): string {
	const row = (cat: string, name: string, ts: number, dur: number, args: object = {}) => ({ ph: "X", cat, name, pid: 1, tid: 1, ts, dur, args });
	const inputs = { "Input Dims": [[64, 64]], "Input type": ["float"], "Input Strides": [[64, 1]], "Concrete Inputs": [""] };
	const sizes = { steps: [[500, 1, 4096], [10200, 2, 8192], [10400, 2, -8192]], import: [[500, 1, 65536], [600, 1, -65536], [10200, 2, 8192]] }[records];
	let total = 0;
	const memory = sizes.map(([ts = 0, Addr = 0, Bytes = 0]) => ({ ph: "i", s: "t", name: "[memory]", pid: 1, tid: 1, ts, args: { "Device Type": 0, "Device Id": -1, Addr, Bytes, "Total Allocated": (total += Bytes) } }));
	const steps = [0, 1].flatMap((step) => [row("user_annotation", `ProfilerStep#${step}`, 10000 + 1000 * step, 1000), row("cpu_op", "aten::relu", 10100 + 1000 * step, 800, inputs)]);
	const path = join(folder, `${records}.pt.trace.json`);
	writeFileSync(path, JSON.stringify({ traceEvents: [row("cpu_op", "aten::empty", 0, 1000), ...steps, ...memory] }));
	return path;
}

/** The recorded trace without its memory records. */
function withoutRecords(): string {
	const trace = JSON.parse(gunzipSync(readFileSync(recorded)).toString()) as { traceEvents: { name: string }[] };
	const path = join(folder, "none.pt.trace.json");
	writeFileSync(path, JSON.stringify({ ...trace, traceEvents: trace.traceEvents.filter((event) => event.name !== "[memory]") }));
	return path;
}

beforeAll(async () => {
	browser = await launch();
	server = await Server.start(recorded, withoutRecords(), afterImport("steps"), afterImport("import"));
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

test("everything in the view opens on the steps after a long import, unless the peak is elsewhere", async () => {
	const tab = await Tab.open(browser, server.at("memory", server.trace("steps.pt")));
	const { page } = tab;
	const menu = page.locator(".step-choice select").first();
	const sizes = async () => (await readGrid(page, "Allocations")).rows.map((row) => row.bytes);
	await page.getByText("Only the steps are shown.").waitFor();
	expect(await menu.inputValue()).toBe("0");
	expect(await page.getByText("Whole trace").filter({ visible: true }).count()).toBe(0);
	expect(await sizes()).toEqual(["8.00 KiB", "4.00 KiB"]);
	expect(await page.locator("h2", { hasText: "Peak: " }).innerText()).toContain("12.0 KiB at 10.200 ms");
	await tab.shot("memory-steps");
	await page.getByRole("button", { name: "Show all" }).click();
	await page.getByText("Only the steps are shown.").waitFor({ state: "detached" });
	expect(await menu.inputValue()).toBe("");
	expect(await page.locator("h2", { hasText: "Peak: " }).innerText()).toContain("12.0 KiB at 10.200 ms");
	await page.goto(server.at("memory", server.trace("import.pt")));
	await page.locator("h2", { hasText: "Peak: " }).waitFor();
	expect(await menu.inputValue()).toBe("");
	expect(await page.getByText("Only the steps are shown.").count()).toBe(0);
	await tab.close();
	tab.expectQuiet();
});

test("without memory records, the overview shows no peak, and the view says that it is estimated", async () => {
	const tab = await Tab.open(browser, server.at("overview", server.trace("steps.pt")));
	await tab.page.locator(".card", { hasText: "Memory at the peak" }).waitFor();
	await tab.page.goto(server.at("overview", server.trace("none.pt")));
	await tab.page.getByText(/^All \d+ operators/).waitFor();
	expect(await tab.page.locator(".card", { hasText: "Memory at the peak" }).count()).toBe(0);
	await tab.page.goto(server.at("memory", server.trace("none.pt")));
	const note = tab.page.getByText("estimated from the tensors of operators");
	await note.waitFor();
	const curve = await tab.page.locator(".line-chart").boundingBox();
	expect((await note.boundingBox())!.y).toBeLessThan(curve!.y);
	await tab.close();
	tab.expectQuiet();
});

const param = (tab: Tab, name: string) => new URLSearchParams(new URL(tab.page.url()).hash.split("?")[1]).get(name);

const figure = (title: string) => /: (.*?[a-zA-Z]+)\b/.exec(title)?.[1] ?? "";

async function api(tab: Tab, query: string): Promise<MemoryReply> {
	return tab.page.evaluate(async (path) => (await (await fetch(path)).json()) as MemoryReply, `api/v1/traces/${server.traces[0]!.id}/memory${query}`);
}

test("a click on the curve shows what holds memory at that moment", async () => {
	const tab = await Tab.open(browser, server.at("memory", server.traces[0]!));
	const { page } = tab;
	await page.getByRole("region", { name: "Peak", exact: true }).waitFor();
	const curve = page.locator(".line-chart .u-over");
	const box = (await curve.boundingBox())!;
	await curve.click({ position: { x: box.width * 0.3, y: box.height / 2 } });
	const panel = page.getByRole("region", { name: "Memory", exact: true });
	await panel.waitFor();
	const at = Number(param(tab, "at"));
	const whole = (await api(tab, "")).devices[0]!;
	expect(at).toBeGreaterThan(0);
	expect(at).not.toBe(whole.peak_time_ns);

	const { table } = printed("memory", "--at", `${at}ns`, "--limit", "0", recorded) as TableReply;
	const rows = table.rows.map((row) => ({ by: String(row[1]), name: String(row[2]), bytes: Number(row[4]) }));
	const all = rows.find((row) => row.by === "all")!;
	expectShows(figure(await panel.getByRole("heading", { level: 2 }).innerText()), all.bytes, "held");
	const moment = (await api(tab, `?at=${at}`)).devices[0]!;
	expect(moment.peak.bytes).toBe(all.bytes);
	expect(all.bytes).toBeLessThan(whole.peak.bytes);
	for (const by of ["category", "module", "line", "shape"]) {
		const most = rows.filter((row) => row.by === by).sort((a, b) => b.bytes - a.bytes)[0];
		if (!most) continue;
		const list = panel.getByRole("region", { name: `By ${by}` });
		expectShows(await list.locator("li .figure").first().innerText(), most.bytes, `most by ${by}`);
	}
	if (moment.peak.before_bytes > 0) await panel.getByText("allocated before the recording").waitFor();
	await tab.shot("memory-moment");
	await page.getByRole("button", { name: "Show the peak" }).click();
	await page.getByRole("region", { name: "Peak", exact: true }).waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("the peak is that of the range on screen", async () => {
	const tab = await Tab.open(browser, server.at("memory", server.traces[0]!));
	const { page } = tab;
	const curve = page.locator(".line-chart .u-over");
	await curve.waitFor();
	const box = (await curve.boundingBox())!;
	await page.mouse.move(box.x + 5, box.y + 50);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width / 4, box.y + 60, { steps: 4 });
	await page.mouse.up();
	const panel = page.getByRole("region", { name: "Peak of this range" });
	await panel.waitFor();
	const [from, to] = [Number(param(tab, "from")), Number(param(tab, "to"))];
	const part = (await api(tab, `?from=${from}&to=${to}`)).devices[0]!;
	const whole = (await api(tab, "")).devices[0]!;
	expect(part.peak_time_ns).toBeGreaterThanOrEqual(from);
	expect(part.peak_time_ns).toBeLessThanOrEqual(to);
	expect(part.peak.bytes).toBeLessThan(whole.peak.bytes);
	expectShows(figure(await panel.getByRole("heading", { level: 2 }).innerText()), part.peak.bytes, "the peak of the range");
	await tab.close();
	tab.expectQuiet();
});
