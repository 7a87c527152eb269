// SPDX-License-Identifier: Apache-2.0
// Reads a table from the screen as a reader does: line by line, scrolling, all lines or the first ones.
import type { FrameLocator, Page } from "playwright-core";
import { expect } from "vitest";

export interface Shown {
	/** The unit of each column, by the column's id. */
	units: Record<string, string>;
	/** The texts of each row, by the column's id. */
	rows: Record<string, string>[];
}

export async function readGrid(page: Page | FrameLocator, label: string, most = Infinity): Promise<Shown> {
	const grid = page.locator(`.grid[aria-label="${label}"]`);
	await grid.waitFor();
	return grid.evaluate(async (element, most) => {
		const found = new Map<number, Record<string, string>>();
		const count = Math.min(most, Number(element.getAttribute("aria-rowcount")) - 1);
		const units: Record<string, string> = {};
		const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
		for (let top = 0; found.size < count && top <= element.scrollHeight; top += 200) {
			element.scrollTop = top;
			await frame();
			await frame();
			for (const row of element.querySelectorAll(".grid-body [role=row]")) {
				const cells: Record<string, string> = {};
				for (const cell of row.querySelectorAll("[data-column]")) cells[cell.getAttribute("data-column") ?? ""] = cell.textContent;
				found.set(Number(row.getAttribute("aria-rowindex")), cells);
			}
		}
		const first = element.querySelector(".grid-body [role=row]");
		const heads = element.querySelectorAll(".grid-head [role=columnheader]");
		first?.querySelectorAll("[data-column]").forEach((cell, i) => {
			units[cell.getAttribute("data-column") ?? ""] = heads[i]?.querySelector(".unit")?.textContent.replace(/^, /, "") ?? "";
		});
		return { units, rows: [...found].sort((a, b) => a[0] - b[0]).map(([, cells]) => cells) };
	}, most);
}

const UNITS: Record<string, number> = {
	"": 1,
	"%": 1,
	K: 1e3,
	M: 1e6,
	G: 1e9,
	T: 1e12,
	ns: 1e-3,
	µs: 1,
	ms: 1e3,
	s: 1e6,
	B: 1,
	KiB: 1024,
	MiB: 1024 ** 2,
	GiB: 1024 ** 3,
	TiB: 1024 ** 4,
};

/** A text on the screen shows this figure, as exactly as its digits allow. Times are microseconds. */
export function expectShows(text: string, unit: string, figure: number, what: string): void {
	const plain = text.replace(/[\u202f\u00a0 ]/g, "").replace("−", "-").replace("+", "");
	const factor = UNITS[unit];
	if (factor === undefined) throw new Error(`${what}: no unit '${unit}'`);
	const digits = plain.split(".")[1]?.length ?? 0;
	const half = (0.5 * 10 ** -digits + 1e-9) * factor + Math.abs(figure) * 1e-12;
	expect(plain, `${what}: '${text}' is a number`).toMatch(/^-?\d+(\.\d+)?$/);
	expect(Math.abs(Number(plain) * factor - figure), `${what}: '${text} ${unit}' is ${figure}`).toBeLessThanOrEqual(half);
}

/** "177.6 ms" */
export function expectShowsWithUnit(text: string, figure: number, what: string): void {
	const [, number = "", unit = ""] = /^(.*?)[\s\u202f]*([a-zA-Zµ%]*)$/.exec(text.trim()) ?? [];
	expectShows(number, unit, figure, what);
}
