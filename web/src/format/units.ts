// SPDX-License-Identifier: Apache-2.0
//
// Formats figures for display: at least three significant digits, with a suitable unit.

const TIME: [number, string][] = [
	[1e9, "s"],
	[1e6, "ms"],
	[1e3, "µs"],
	[1, "ns"],
];
const BYTES: [number, string][] = [
	[1024 ** 4, "TiB"],
	[1024 ** 3, "GiB"],
	[1024 ** 2, "MiB"],
	[1024, "KiB"],
	[1, "B"],
];

/** Formats a duration in nanoseconds: 1234567 is "1.235 ms". */
export function formatNs(ns: number): string {
	return withUnit(ns, TIME);
}

/** Formats a duration in microseconds, the unit of most replies. */
export function formatUs(us: number): string {
	return formatNs(us * 1000);
}

export function formatBytes(bytes: number): string {
	return withUnit(bytes, BYTES);
}

/** Formats a count with grouped digits: 1 234 567, with narrow spaces. */
export function formatCount(count: number): string {
	return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

const SPEEDS = ["", "k", "M", "G", "T", "P"];

/** Formats a rate with a suitable prefix: 3.35e12 is "3.35 TB/s". */
export function formatSpeed(perSecond: number, unit: string): string {
	const power = Math.min(SPEEDS.length - 1, Math.max(0, Math.floor(Math.log10(perSecond || 1) / 3 + 1e-9)));
	return `${Number((perSecond / 1000 ** power).toPrecision(3))}\u202f${SPEEDS[power]}${unit}`;
}

/** Formats a share from 0 to 1 as a percentage with two decimals. */
export function formatShare(share: number): string {
	return `${(share * 100).toFixed(2)} %`;
}

/** Formats a percentage with two decimals; a dash if there is none. */
export function formatPercent(percent: number | null): string {
	return percent === null ? "–" : `${percent.toFixed(2)} %`;
}

function withUnit(value: number, units: [number, string][]): string {
	const size = Math.abs(value);
	const [scale, name] = units.find(([least]) => size >= least) ?? units[units.length - 1]!;
	const scaled = value / scale;
	const digits = scale === 1 && Number.isInteger(value) ? 0 : Math.max(0, 3 - String(Math.trunc(Math.abs(scaled))).length + 1);
	return `${value === 0 ? "0" : scaled.toFixed(digits)}\u202f${name}`;
}

const YEAR_2000_NS = 946684800e9;

/** Returns whether a time is a date. The clocks of old traces count from the start of the machine or of the program. */
export function isWallClock(ns: number): boolean {
	return ns > YEAR_2000_NS;
}
