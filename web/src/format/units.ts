// SPDX-License-Identifier: Apache-2.0
//
// Formats figures for people, to the character as the commands do (src/analyze/format.c): tests/analyze/figures.json has
// examples for both. Durations, sizes, shares and rates have three significant digits, integers all.

/** What a missing figure shows. */
export const NOTHING = "–";

type Unit = [from: number, size: number, name: string];

const TIME: Unit[] = [
	[0.9995e9, 1e9, "s"], // 999.6 ms is "1.00 s"
	[0.9995e6, 1e6, "ms"],
	[0.9995e3, 1e3, "µs"],
];
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];
const PREFIXES = ["", "K", "M", "G", "T", "P"];
/** What two decimals show. */
const PERCENT_LEAST = 0.005;
/** Larger figures have an exponent. */
const MOST = 1e18;

/** Formats a duration in nanoseconds: 1234567 is "1.23 ms". */
export function formatNs(ns: number): string {
	const size = Math.abs(ns);
	if (!Number.isFinite(ns)) return NOTHING;
	const [, scale, name] = TIME.find(([from]) => size >= from) ?? [];
	if (scale !== undefined) return `${threeDigits(ns / scale)} ${name}`;
	return size >= 0.0005 ? `${general(ns)} ns` : "0";
}

/** Formats a duration in microseconds, the unit of most replies. */
export function formatUs(us: number): string {
	return formatNs(us * 1000);
}

/** Formats a point in time, in nanoseconds since the trace began, to the microsecond: "1.234567 s". A duration has fewer
 * digits. */
export function formatMoment(ns: number): string {
	const size = Math.abs(ns);
	if (size >= 1e9) return `${grouped(ns / 1e9, 6)} s`;
	if (size >= 1e6) return `${fixed(ns / 1e6, 3)} ms`;
	return size >= 1e3 ? `${fixed(ns / 1e3, 3)} µs` : formatNs(ns);
}

export function formatBytes(bytes: number): string {
	let [size, unit] = [Math.trunc(bytes), 0];
	if (!Number.isFinite(bytes)) return NOTHING;
	for (; Math.abs(size) >= (unit > 0 ? 1023.5 : 1024) && unit + 1 < BYTES.length; unit++) size /= 1024;
	return `${unit > 0 ? threeDigits(size) : grouped(size, 0)} ${BYTES[unit]}`;
}

/** Formats a count with grouped digits: "1,234,567". */
export function formatCount(count: number): string {
	return grouped(Math.round(count), 0);
}

/** Formats a count with a suitable prefix: 1.17e7 is "11.7 M". */
export function formatScaled(count: number): string {
	let [size, prefix] = [count, 0];
	if (!Number.isFinite(count)) return NOTHING;
	for (; Math.abs(size) >= 999.5 && prefix + 1 < PREFIXES.length; prefix++) size /= 1000;
	return prefix > 0 ? `${threeDigits(size)} ${PREFIXES[prefix]}` : fixed(size, 0);
}

/** Formats a rate with a suitable prefix: 3.35e12 is "3.35 TB/s". */
export function formatSpeed(perSecond: number, unit: string): string {
	const text = formatScaled(perSecond);
	return text.includes(" ") ? text + unit : `${perSecond >= 0.9995 ? threeDigits(perSecond) : general(perSecond)} ${unit}`;
}

/** Formats a percentage: "12.3 %"; a dash if there is none. */
export function formatPercent(percent: number | null): string {
	if (percent === null || !Number.isFinite(percent)) return NOTHING;
	if (percent > 0 && percent < PERCENT_LEAST) return "<0.01 %";
	return Math.abs(percent) < PERCENT_LEAST ? "0 %" : `${threeDigits(percent)} %`;
}

/** Formats a share from 0 to 1 as a percentage. */
export function formatShare(share: number): string {
	return formatPercent(share * 100);
}

/** Formats a difference in percent, with its sign: "+12.3 %". */
export function formatChange(percent: number): string {
	if (!Number.isFinite(percent)) return NOTHING;
	return Math.abs(percent) < PERCENT_LEAST ? "0 %" : `${percent > 0 ? "+" : ""}${threeDigits(percent)} %`;
}

/** Formats the change from one figure to another: "+12.3 %", "new" from 0, nothing if there is neither. */
export function changeText(before: number, now: number): string {
	return before > 0 ? formatChange((now / before - 1) * 100) : now > 0 ? "new" : "";
}

/** Formats a number of unknown kind: an integer in full, else with three significant digits, and never "14.0". */
export function formatNumber(value: number): string {
	const size = Math.abs(value);
	if (!Number.isFinite(value)) return NOTHING;
	if (Number.isInteger(value) && size < 1e15) return grouped(value, 0);
	if (size < 0.9995) return general(value);
	const text = threeDigits(value);
	return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
}

/** Formats a difference with its sign: "+3.20 ms". */
export function signed(value: number, text: (value: number) => string): string {
	return value > 0 ? `+${text(value)}` : text(value);
}

/** Formats a number with grouped digits and the given number of decimals. */
export function grouped(value: number, digits: number): string {
	if (!Number.isFinite(value)) return NOTHING;
	const [whole = "", rest] = fixed(value, digits).split(".");
	return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest === undefined ? "" : `.${rest}`);
}

/** Three significant digits, and all digits before the point. */
function threeDigits(value: number): string {
	const size = Math.abs(value);
	if (size >= MOST) return value.toExponential(2);
	return grouped(value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/** printf's "%.3g", for figures below 999.5. */
function general(value: number): string {
	const size = Math.abs(value);
	if (size !== 0 && size < 0.9995e-4) return value.toExponential(2).replace(/\.?0+e/, "e").replace(/e([+-])(\d)$/, "e$10$2");
	return String(Number(value.toPrecision(3)));
}

/** printf's "%.*f", which rounds half to even where toFixed() rounds half up. */
function fixed(value: number, digits: number): string {
	const scaled = value * 10 ** digits;
	const isTie = Math.abs(scaled % 1) === 0.5 && Number.isInteger(value * 2 ** (digits + 1));
	const text = (isTie ? (2 * Math.round(scaled / 2)) / 10 ** digits : value).toFixed(digits);
	return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text;
}

const YEAR_2000_NS = 946684800e9;

/** Returns whether a time is a date. The clocks of old traces count from the start of the machine or of the program. */
export function isWallClock(ns: number): boolean {
	return ns > YEAR_2000_NS;
}
