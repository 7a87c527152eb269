// SPDX-License-Identifier: Apache-2.0
// The drawing of a model: blocks in the order of their calls, folded where they are equal; figures as the table of modules has
// them; by mouse and by keys, with a thousand modules.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModulesReply } from "../../src/data/replies";
import { violations } from "./axe";
import { launch, Tab } from "./browser";
import { recorded, Server } from "./server";

const folder = mkdtempSync(join(tmpdir(), "opstrobe-model-"));
const BLOCKS = 333;

/** A model of 333 blocks of two modules, as torch.profiler writes calls of modules. */
function large(): object {
	const events: object[] = [];
	let id = 0;
	const call = (name: string, parent: number | null, ts: number, dur: number): number => {
		id++;
		const args = { "Python id": id, "Python parent id": parent, "Python module id": id };
		events.push({ ph: "X", cat: "python_function", name: `nn.Module: ${name}`, pid: 1, tid: 1, ts, dur, args });
		return id;
	};
	const net = call("Net_0", null, 0, BLOCKS * 10 + 20);
	for (let i = 0; i < BLOCKS; i++) {
		const block = call(`Block_${i}`, net, 5 + 10 * i, 9);
		call(`Attention_${i}`, block, 6 + 10 * i, 3);
		call(`Linear_${i}`, block, 10 + 10 * i, 2);
	}
	return { with_modules: 1, traceEvents: events };
}

let browser: Browser;
let server: Server;
beforeAll(async () => {
	writeFileSync(join(folder, "large.json"), JSON.stringify(large()));
	browser = await launch();
	server = await Server.start(recorded, join(folder, "large.json"));
});
afterAll(async () => {
	await server.stop();
	await browser.close();
	rmSync(folder, { recursive: true });
});

const items = (page: Page) => page.getByRole("tree").getByRole("treeitem");
const names = async (page: Page) => (await page.locator(".model-name").allInnerTexts()).map((text) => text.trim());

test("modules are nested, in the order of their calls, with the figures of the table", async () => {
	const trace = server.trace("train.pt.trace");
	const tab = await Tab.open(browser, server.at("model", trace, "heat=forward"));
	const { page } = tab;
	await items(page).first().waitFor();
	const { modules } = await page.evaluate(async (id) => (await (await fetch(`api/v1/traces/${id}/modules`)).json()) as ModulesReply, trace.id);
	expect(await names(page)).toEqual(["Net", "features", "0", "1", "2", "head"]);
	expect(await items(page).evaluateAll((all) => all.map((each) => Number(each.getAttribute("aria-level"))))).toEqual([1, 2, 3, 3, 3, 2]);
	const shown = await items(page).evaluateAll((all) => all.map((each) => Number((each as HTMLElement).dataset.figure)));
	const [net, features] = modules as [(typeof modules)[0], (typeof modules)[0]];
	expect(shown.reduce((sum, each) => sum + each, 0)).toBeCloseTo(net.total.host_ns / 1e3, 6);
	expect(shown[1]).toBeCloseTo(features.self.host_ns / 1e3, 6);
	await items(page).filter({ hasText: "BatchNorm2d" }).click();
	const detail = page.getByRole("complementary", { name: "The chosen module" });
	await detail.getByRole("heading", { name: "features.1" }).waitFor();
	await detail.getByText("3 calls in the whole trace").waitFor();
	for (const name of ["Share", "Per step"]) expect(await detail.innerText()).toContain(name);
	expect(await detail.locator(".source-link").first().innerText()).toMatch(/\.py:\d+$/);
	await tab.shot("model");
	await detail.getByRole("link", { name: "Calls in the timeline" }).click();
	await page.locator(".tl-event h2", { hasText: "features.1" }).waitFor();
	await tab.close();
	tab.expectQuiet();
});

test("equal blocks are one until they are opened", async () => {
	const tab = await Tab.open(browser, server.at("model", server.trace("large")));
	const { page } = tab;
	await items(page).first().waitFor();
	expect(await items(page).count()).toBe(4);
	expect((await items(page).nth(1).innerText()).replace(/\s+/g, " ")).toContain(`×${BLOCKS} Block`);
	await items(page).nth(1).click();
	await page.getByRole("button", { name: `Show the ${BLOCKS} blocks` }).click();
	await expect.poll(() => items(page).count()).toBeGreaterThan(BLOCKS);
	await page.getByRole("checkbox", { name: "Fold equal blocks" }).uncheck();
	await page.getByRole("button", { name: "Open all" }).click();
	await expect.poll(() => items(page).count()).toBe(1 + 3 * BLOCKS);
	await tab.shot("model-large");
	await page.getByRole("button", { name: "Close all" }).click();
	await expect.poll(() => items(page).count()).toBe(1);
	await tab.close();
	tab.expectQuiet();
});

test("by keys alone", async () => {
	const tab = await Tab.open(browser, server.at("model", server.trace("train.pt.trace")));
	const { page } = tab;
	await items(page).first().focus();
	const focused = () => page.evaluate(() => document.activeElement?.querySelector(".model-name")?.textContent);
	expect(await focused()).toBe("Net");
	for (const [key, name] of [["ArrowDown", "features"], ["ArrowRight", "0"], ["End", "head"], ["ArrowUp", "2"], ["ArrowLeft", "features"]] as const) {
		await page.keyboard.press(key);
		expect(await focused(), key).toBe(name);
	}
	await page.keyboard.press("ArrowLeft");
	await expect.poll(() => names(page)).toEqual(["Net", "features", "head"]);
	await page.keyboard.press("Enter");
	await page.getByRole("complementary", { name: "The chosen module" }).waitFor();
	await page.keyboard.press("Escape");
	await page.getByRole("complementary", { name: "The chosen module" }).waitFor({ state: "detached" });
	await tab.close();
	tab.expectQuiet();
});

test("axe finds nothing in either theme, with a module chosen", async () => {
	for (const colorScheme of ["light", "dark"] as const) {
		const tab = await Tab.open(browser, server.at("model", server.trace("train.pt.trace"), "part=1"), { colorScheme });
		await tab.page.getByRole("complementary", { name: "The chosen module" }).waitFor();
		expect(await violations(tab.page)).toEqual([]);
		await tab.close();
	}
});
