// SPDX-License-Identifier: Apache-2.0
//
// What the timeline shows first, of a program whose import takes longer than its steps.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseRoute } from "../../src/app/route";
import { launch, Tab } from "./browser";
import { Server } from "./server";

const folder = mkdtempSync(join(tmpdir(), "opstrobe-opening-"));
const MS = 1000;

/** An import of 2 s, and four steps of 100 ms after it. */
function program() {
	const event = (cat: string, name: string, ts: number, dur: number) => ({ ph: "X", cat, name, pid: 1, tid: 1, ts, dur });
	const traceEvents: object[] = [event("python_function", "import torch._dynamo", 0, 2000 * MS)];
	for (let step = 0; step < 4; step++) {
		const ts = (2000 + 100 * step) * MS;
		traceEvents.push(event("user_annotation", `ProfilerStep#${step}`, ts, 100 * MS), event("cpu_op", "aten::mm", ts, 90 * MS));
	}
	return { traceEvents };
}

let browser: Browser;
let server: Server;
beforeAll(async () => {
	writeFileSync(join(folder, "train.pt.trace.json"), JSON.stringify(program()));
	browser = await launch();
	server = await Server.start(join(folder, "train.pt.trace.json"));
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

test("the timeline opens on the steps, and a click shows the whole trace", async () => {
	const tab = await Tab.open(browser, server.at("timeline", server.traces[0]!));
	await tab.page.locator(".tl-canvas[aria-busy=false]").waitFor();
	await tab.page.getByText("aten::mm").first().waitFor();
	const rows = tab.page.locator(".tl-sums .grid-body [role=row]");
	await rows.first().filter({ hasText: "aten::mm" }).waitFor();
	await tab.shot("opening-timeline");
	await tab.page.getByRole("button", { name: "Whole trace" }).click();
	await rows.first().filter({ hasText: "import torch._dynamo" }).waitFor();
	// A link to the complete trace says so.
	await tab.page.waitForFunction(() => location.hash.includes("from=0"));
	expect(Number(parseRoute(new URL(tab.page.url()).hash).params.get("to"))).toBeGreaterThanOrEqual(2_390_000_000);
	await tab.page.reload();
	await rows.first().filter({ hasText: "import torch._dynamo" }).waitFor();
	await tab.close();
	tab.expectQuiet();
});
