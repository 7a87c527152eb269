// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { arrowStart } from "../../src/timeline/geometry";
import { tickLabel, ticks, tickStep } from "../../src/timeline/ticks";
import { betweenSpans, clampSpan, fitSpan, panSpan, revealSpan, type Span, zoomSpan } from "../../src/timeline/viewport";

const whole: Span = { from: 0, to: 1e9 };
const length = ({ from, to }: Span): number => to - from;

describe("the window", () => {
	test("stays inside the trace, with its length where that fits", () => {
		expect(clampSpan({ from: -500, to: 500 }, whole)).toEqual({ from: 0, to: 1000 });
		expect(clampSpan({ from: 1e9, to: 1e9 + 1000 }, whole)).toEqual({ from: 1e9 - 1000, to: 1e9 });
		expect(clampSpan({ from: -5e9, to: 9e9 }, whole)).toEqual(whole);
	});

	test("never gets shorter than a few nanoseconds, also in a trace of one instant", () => {
		expect(length(clampSpan({ from: 5, to: 5 }, whole))).toBe(10);
		expect(length(clampSpan({ from: 0, to: 0 }, { from: 0, to: 0 }))).toBe(10);
		expect(length(zoomSpan({ from: 100, to: 110 }, 105, 0.001, whole))).toBe(10);
	});

	test("zooms about a moment, which stays where it is", () => {
		const span = { from: 1000, to: 5000 };
		const zoomed = zoomSpan(span, 2000, 0.5, whole);
		expect(length(zoomed)).toBe(2000);
		expect((2000 - zoomed.from) / length(zoomed)).toBeCloseTo((2000 - span.from) / length(span), 12);
	});

	test("zooming in and out again leads back", () => {
		let span: Span = { from: 123_456_789, to: 123_556_789 };
		for (let i = 0; i < 20; i++) span = zoomSpan(span, 123_500_000, 1 / 1.35, whole);
		for (let i = 0; i < 20; i++) span = zoomSpan(span, 123_500_000, 1.35, whole);
		expect(span.from).toBeCloseTo(123_456_789, 3);
		expect(span.to).toBeCloseTo(123_556_789, 3);
	});

	test("moves by a share of its length, up to the ends", () => {
		expect(panSpan({ from: 1000, to: 2000 }, 0.5, whole)).toEqual({ from: 1500, to: 2500 });
		expect(panSpan({ from: 1000, to: 2000 }, -5, whole)).toEqual({ from: 0, to: 1000 });
	});

	test("stays for an event that shows well, moves for one that does not", () => {
		const span = { from: 0, to: 1e6 };
		expect(revealSpan(span, { from: 4e5, to: 5e5 }, whole)).toBe(span);
		for (const event of [
			{ from: 5e8, to: 5.001e8 }, // elsewhere
			{ from: 5e5, to: 5e5 + 10 }, // too short to see
			{ from: 1e8, to: 9e8 }, // longer than the window
			{ from: 5e8, to: 5e8 }, // an instant
		]) {
			const shown = revealSpan(span, event, whole);
			expect(shown.from).toBeLessThanOrEqual(event.from);
			expect(shown.to).toBeGreaterThanOrEqual(event.to);
		}
	});

	test("fits a span with a margin", () => {
		expect(fitSpan({ from: 1000, to: 2000 }, whole)).toEqual({ from: 950, to: 2050 });
	});

	test("an animation begins and ends where it should and never leaves the way", () => {
		const [a, b] = [{ from: 0, to: 1e9 }, { from: 4e8, to: 4e8 + 1000 }];
		expect(betweenSpans(a, b, 0)).toEqual(a);
		const end = betweenSpans(a, b, 1);
		expect(end.from).toBeCloseTo(b.from, 3);
		expect(length(end)).toBeCloseTo(1000, 6);
		for (let share = 0; share <= 1; share += 0.1) {
			const { from, to } = betweenSpans(a, b, share);
			expect(from).toBeGreaterThanOrEqual(a.from);
			expect(to).toBeLessThanOrEqual(a.to);
		}
	});
});

describe("the ruler", () => {
	test.each([
		[1000, 10, 100],
		[1001, 10, 200],
		[3e9, 10, 5e8],
		[7, 100, 1],
		[0, 10, 1],
	])("a length of %d ns with at most %d marks has one each %d ns", (span, most, step) => {
		expect(tickStep(span, most)).toBe(step);
	});

	test("has the multiples of its step", () => {
		expect(ticks(950, 1250, 100)).toEqual([1000, 1100, 1200]);
		expect(ticks(0, 200, 100)).toEqual([0, 100, 200]);
	});

	test("formats times precisely enough to distinguish neighbours", () => {
		expect(tickLabel(1_200_000, 100_000)).toBe("1.2 ms");
		expect(tickLabel(1_200_000, 1_000)).toBe("1.200 ms");
		expect(tickLabel(2e9, 1e9)).toBe("2 s");
		expect(tickLabel(0, 5)).toBe("0");
	});
});

test("an arrow starts at the end of its event, unless the effect starts earlier", () => {
	const from = { start_ns: 100, end_ns: 900 };
	expect(arrowStart({ from, to: { start_ns: 2000 } }, 1)).toBe(900);
	expect(arrowStart({ from, to: { start_ns: 500 } }, 1)).toBe(108);
	expect(arrowStart({ from, to: { start_ns: 103 } }, 1)).toBe(103);
});
