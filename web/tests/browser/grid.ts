// SPDX-License-Identifier: Apache-2.0
// Reads a table from the screen as a reader does: line by line, scrolling, all lines or the first ones.
import type { FrameLocator, Page } from "playwright-core";
import { expect } from "vitest";

export interface Shown {
	/** The texts of each row, by the column's id. */
	rows: Record<string, string>[];
}

export async function readGrid(page: Page | FrameLocator, label: string, most = Infinity): Promise<Shown> {
	const grid = page.locator(`.grid[aria-label="${label}"]`);
	await grid.waitFor();
	return grid.evaluate(async (element, most) => {
		const found = new Map<number, Record<string, string>>();
		const count = Math.min(most, Number(element.getAttribute("aria-rowcount")) - 1);
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
		return { rows: [...found].sort((a, b) => a[0] - b[0]).map(([, cells]) => cells) };
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

/** A text on the screen shows this figure and its unit, as exactly as its digits allow. Times are microseconds. */
export function expectShows(text: string, figure: number, what: string): void {
	const [, sign = "", number = "", , unit = ""] = /^([<+-]?)([\d,]+(\.\d+)?) ?([a-zA-Zµ%]*)$/.exec(text.trim()) ?? [];
	const factor = UNITS[unit];
	expect(number, `${what}: '${text}' is a number`).not.toBe("");
	if (factor === undefined) throw new Error(`${what}: no unit '${unit}'`);
	const digits = number.split(".")[1]?.length ?? 0;
	const half = ((sign === "<" ? 1 : 0.5) * 10 ** -digits + 1e-9) * factor + Math.abs(figure) * 1e-12;
	const shown = Number(number.replaceAll(",", "")) * (sign === "-" ? -1 : 1) * factor;
	expect(Math.abs(shown - figure), `${what}: '${text}' is ${figure}`).toBeLessThanOrEqual(half);
}
