// SPDX-License-Identifier: Apache-2.0
// Who holds memory at any moment: a click on the curve, the peak of a range, and the same figures from the command.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { MemoryReply, TableReply } from "../../src/data/replies";
import { launch, Tab } from "./browser";
import { expectShows } from "./grid";
import { printed, recorded, Server } from "./server";

let browser: Browser;
let server: Server;
beforeAll(async () => {
	browser = await launch();
	server = await Server.start(recorded);
});
afterAll(async () => {
	await server.stop();
	await browser.close();
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
