// SPDX-License-Identifier: Apache-2.0
// Every view in the dark and in the light, small and at twice the size, by keys alone; text has enough contrast,
// and what can be used has a name. Screenshots of each are left in build/screenshots/.
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { violations } from "./axe";
import { launch, Tab } from "./browser";
import { recorded, Server, type Served, shared } from "./server";

const VIEWS = ["traces", "overview", "advice", "timeline", "operators", "kernels", "roofline", "memory", "modules", "model", "stacks", "source", "distributed", "analyses", "diff", "info"];

let browser: Browser;
let server: Server;
let trace: Served;

beforeAll(async () => {
	browser = await launch();
	const more = shared ? [join(shared, "kineto-tb/samples-2021-06")] : [];
	server = await Server.start(recorded, ...more);
	trace = server.trace("train.pt.trace");
});

afterAll(async () => {
	await browser.close();
	await server.stop();
});

async function settled(page: Page): Promise<void> {
	await page.locator("main > *").first().waitFor();
	await page.waitForFunction(() => !document.body.innerText.includes("Loading"));
}

/** A trace that has something to show in the view. */
function traceFor(view: string): Served {
	if (!shared || !["advice", "kernels", "diff", "analyses"].includes(view)) return trace;
	return server.trace(view === "advice" ? "num_workers_0" : "num_workers_4"); // whose findings are of all kinds
}

const SHAPES: [string, BrowserContextOptions][] = [
	["light", { colorScheme: "light" }],
	["dark", { colorScheme: "dark" }],
	["twice as large", { colorScheme: "light", viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 }],
];

describe.each(SHAPES)("%s", (shape, options) => {
	test.each(VIEWS)("%s", async (view) => {
		const tab = await Tab.open(browser, server.at(view, traceFor(view)), options);
		await settled(tab.page);
		await tab.shot(`${view}-${shape.replaceAll(" ", "-")}`);
		expect(await faintTexts(tab.page), "texts that are hard to read").toEqual([]);
		expect(await nameless(tab.page), "what has no name").toEqual([]);
		expect(await overlapping(tab.page), "texts on other texts").toEqual([]);
		expect(await violations(tab.page), "what axe finds").toEqual([]);
		const { wide, high } = await tab.page.evaluate(() => ({
			wide: document.documentElement.scrollWidth - innerWidth,
			high: document.documentElement.scrollHeight - innerHeight,
		}));
		expect([wide, high], "the page itself does not scroll").toEqual([0, 0]);
		await tab.close();
		tab.expectQuiet();
	});
});

/** Texts whose contrast to the ground behind them is below 4.5. */
function faintTexts(page: Page): Promise<string[]> {
	return page.evaluate(() => {
		const parse = (color: string) => {
			const [r = 0, g = 0, b = 0, a = 1] = (/\(([^)]*)\)/.exec(color)?.[1] ?? "").split(/[\s,/]+/).map(Number);
			return { r, g, b, a };
		};
		const light = ({ r, g, b }: { r: number; g: number; b: number }) => {
			const [x, y, z] = [r, g, b].map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
			return 0.2126 * x! + 0.7152 * y! + 0.0722 * z!;
		};
		const ground = (element: Element | null): { r: number; g: number; b: number } => {
			for (let at = element; at; at = at.parentElement) {
				const color = parse(getComputedStyle(at).backgroundColor);
				if (color.a === 1) return color;
			}
			return { r: 255, g: 255, b: 255 };
		};
		const faint = new Set<string>();
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) {
			const parent = walker.currentNode.parentElement;
			const text = walker.currentNode.textContent?.trim();
			if (!parent || !text || parent.closest("svg, .visually-hidden, [disabled], option, noscript, script, style") || !parent.checkVisibility()) continue;
			const [a, b] = [light(parse(getComputedStyle(parent).color)), light(ground(parent))];
			const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
			if (contrast < 4.5) faint.add(`${text.slice(0, 40)} (${contrast.toFixed(2)}) in ${parent.className || parent.tagName}`);
		}
		return [...faint];
	});
}

/** Texts that lie on other texts, each as far as it shows. */
function overlapping(page: Page): Promise<string[]> {
	return page.evaluate(() => {
		interface Part {
			left: number;
			top: number;
			right: number;
			bottom: number;
		}
		const common = (a: Part, b: Part): Part => ({
			left: Math.max(a.left, b.left),
			top: Math.max(a.top, b.top),
			right: Math.min(a.right, b.right),
			bottom: Math.min(a.bottom, b.bottom),
		});
		const seen: { node: Node; text: string; part: Part }[] = [];
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) {
			const parent = walker.currentNode.parentElement;
			const text = walker.currentNode.textContent?.trim();
			if (!parent || !text || parent.closest(".visually-hidden, option, noscript, script, style, .skip") || !parent.checkVisibility()) continue;
			const range = document.createRange();
			range.selectNodeContents(walker.currentNode);
			for (const rect of range.getClientRects()) {
				let part: Part = rect;
				for (let at: Element | null = parent; at; at = at.parentElement) {
					if (getComputedStyle(at).overflow !== "visible") part = common(part, at.getBoundingClientRect());
				}
				if (part.right - part.left > 2 && part.bottom - part.top > 2) seen.push({ node: walker.currentNode, text: text.slice(0, 40), part });
			}
		}
		const pairs: string[] = [];
		seen.forEach((one, i) => {
			for (const other of seen.slice(i + 1)) {
				const { left, top, right, bottom } = common(one.part, other.part);
				if (one.node !== other.node && right - left > 2 && bottom - top > 5) pairs.push(`${one.text} / ${other.text}`);
			}
		});
		return pairs;
	});
}

/** Links, buttons, fields, tables and pictures that a screen reader could not name. */
function nameless(page: Page): Promise<string[]> {
	return page.evaluate(() =>
		[...document.querySelectorAll<HTMLElement>("a[href], button, input, select, [role=grid], [role=treegrid], [role=tree], [role=img], [role=meter], svg[role]")]
			.filter((element) => element.checkVisibility())
			.filter((element) => {
				const labels = element instanceof HTMLInputElement || element instanceof HTMLSelectElement ? [...(element.labels ?? [])] : [];
				const name = element.getAttribute("aria-label") ?? (labels.map((label) => label.textContent).join("") || element.textContent);
				return name.trim() === "";
			})
			.map((element) => element.outerHTML.slice(0, 120)),
	);
}

test("by keys alone: to the view, through a table, into a row and out", async () => {
	const tab = await Tab.open(browser, server.at("operators", trace));
	const { page } = tab;
	await settled(page);
	const active = () => page.evaluate(() => document.querySelector(".grid")?.getAttribute("aria-activedescendant"));
	for (let i = 0; i < 80; i++) {
		await page.keyboard.press("Tab");
		if (await page.evaluate(() => document.activeElement?.getAttribute("role") === "grid")) break;
	}
	expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Operators");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	expect(await active()).toMatch(/-2$/);
	await page.keyboard.press("End");
	const last = await active();
	await page.locator(`[id="${last}"]`).waitFor();
	await page.keyboard.press("Home");
	await page.keyboard.press("Enter");
	await page.getByRole("complementary", { name: "The chosen row" }).waitFor();
	await page.keyboard.press("Escape");
	await page.getByRole("complementary", { name: "The chosen row" }).waitFor({ state: "detached" });
	await tab.close();
	tab.expectQuiet();
});

test("by keys alone: through a flame graph and a tree", async () => {
	const tab = await Tab.open(browser, server.at("stacks", trace));
	const { page } = tab;
	await settled(page);
	const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? "");
	await page.locator(".flame [role=treeitem][tabindex='0']").focus();
	expect(await focused()).toMatch(/^all, /);
	await page.keyboard.press("ArrowDown");
	const first = await focused();
	expect(first).not.toMatch(/^all, /);
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => location.hash.includes("zoom="));
	await page.keyboard.press("Escape");
	await page.waitForFunction(() => !location.hash.includes("zoom="));
	await page.goto(server.at("modules", trace));
	await settled(page);
	await page.locator("[role=treegrid]").focus();
	const lines = () => page.locator("[role=treegrid]").getAttribute("aria-rowcount").then(Number);
	const before = await lines();
	await page.keyboard.press("ArrowLeft");
	expect(await lines()).toBeLessThan(before);
	await page.keyboard.press("ArrowRight");
	expect(await lines()).toBe(before);
	await tab.close();
	tab.expectQuiet();
});

test("a window that becomes narrow keeps everything in reach", async () => {
	const tab = await Tab.open(browser, server.at("overview", trace));
	await settled(tab.page);
	await tab.page.setViewportSize({ width: 420, height: 700 });
	await tab.page.waitForFunction(() => {
		const svg = document.querySelector(".chart-room svg");
		return svg && svg.parentElement!.clientWidth < 420;
	});
	expect(await tab.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(420);
	await tab.shot("overview-narrow");
	await tab.close();
	tab.expectQuiet();
});
