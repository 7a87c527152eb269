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
import { expectShows } from "./grid";
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

/** Returns the range of the first curve that a page requests. */
async function rangeOf(records: string, follow?: (tab: Tab) => Promise<void>): Promise<[string | null, string | null]> {
	const tab = await Tab.open(browser, "about:blank");
	const request = () => tab.page.waitForRequest(/memory\/curve/);
	let asked = request();
	await tab.page.goto(server.at("memory", server.trace(records)));
	await tab.page.locator(".line-chart .u-over").waitFor();
	await asked;
	if (follow) {
		asked = request();
		await follow(tab);
	}
	const { searchParams } = new URL((await asked).url());
	await tab.close();
	return [searchParams.get("from"), searchParams.get("to")];
}

test("the curve opens on the steps after a long import, unless the peak is elsewhere", async () => {
	expect(await rangeOf("steps.pt")).toEqual(["9900000", "12000000"]);
	const whole = [null, null];
	expect(await rangeOf("steps.pt", (tab) => tab.page.getByRole("button", { name: "Show all" }).click())).toEqual(whole);
	expect(await rangeOf("import.pt")).toEqual(whole);
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
