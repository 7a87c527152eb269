// SPDX-License-Identifier: Apache-2.0
//
// The ticks of the ruler: round times, spaced for their labels.

import { grouped } from "../format/units";

/** Returns the round step (1, 2 or 5 times a power of ten, in ns) of which at most `most` fit into a length. */
export function tickStep(length: number, most: number): number {
	const least = Math.max(length / Math.max(most, 1), 1);
	const power = 10 ** Math.floor(Math.log10(least));
	for (const factor of [1, 2, 5]) {
		if (power * factor >= least * 0.999999) return power * factor;
	}
	return power * 10;
}

/** Returns the multiples of a step within a range. */
export function ticks(from: number, to: number, step: number): number[] {
	const marks: number[] = [];
	for (let i = Math.ceil(from / step); i * step <= to; i++) marks.push(i * step);
	return marks;
}

const UNITS: [number, string][] = [
	[1e9, "s"],
	[1e6, "ms"],
	[1e3, "µs"],
	[1, "ns"],
];

/** Formats a time as precisely as steps of this size require: tickLabel(1_200_000, 100_000) is "1.2 ms". */
export function tickLabel(ns: number, step: number): string {
	if (ns === 0) return "0";
	const size = Math.abs(ns);
	const [scale, unit] = UNITS.find(([least]) => size >= least) ?? UNITS[3]!;
	const digits = Math.max(0, Math.ceil(Math.log10(scale) - Math.log10(step) - 1e-9));
	return `${grouped(ns / scale, digits)} ${unit}`;
}
