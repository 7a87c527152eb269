// SPDX-License-Identifier: Apache-2.0
//
// Figures of one column or axis share a unit, so that they can be compared visually. The largest figure determines the
// unit.
import { formatCount } from "./units";

/** The kind of a figure: microseconds, bytes, a share from 0 to 1, percent, a count, floating-point operations, or a
 * plain number. */
export type Kind = "us" | "bytes" | "share" | "pct" | "count" | "flops" | "number";

export interface Scale {
	/** "ms"; empty for plain numbers. */
	unit: string;
	/** The figure in that unit, without the unit. */
	text: (value: number) => string;
}

/** Units, each with the smallest figure for which it is used, and its size. */
const TIME: [from: number, size: number, unit: string][] = [
	[1e7, 1e6, "s"],
	[1e4, 1e3, "ms"],
	[0, 1, "µs"],
];
const AXIS_TIME: typeof TIME = [
	[1e6, 1e6, "s"],
	[1e3, 1e3, "ms"],
	[0, 1, "µs"],
];
const BYTES: [from: number, size: number, unit: string][] = [
	[1024 ** 4, 1024 ** 4, "TiB"],
	[1024 ** 3, 1024 ** 3, "GiB"],
	[1024 ** 2, 1024 ** 2, "MiB"],
	[1024, 1024, "KiB"],
	[0, 1, "B"],
];

const FLOPS: [from: number, size: number, unit: string][] = [
	[1e12, 1e12, "T"],
	[1e9, 1e9, "G"],
	[1e6, 1e6, "M"],
	[1e3, 1e3, "K"],
	[0, 1, ""],
];

export function scaleOf(kind: Kind, largest: number): Scale {
	const size = Math.abs(largest);
	switch (kind) {
		case "us":
			return inUnit(TIME, size, 3);
		case "bytes":
			return inUnit(BYTES, size, size < 1024 ? 0 : 2);
		case "share":
			return { unit: "%", text: (value) => grouped(value * 100, 2) };
		case "pct":
			return { unit: "%", text: (value) => grouped(value, 2) };
		case "count":
			return { unit: "", text: formatCount };
		case "flops":
			return inUnit(FLOPS, size, size < 1e3 ? 0 : 2);
		case "number":
			return { unit: "", text: formatNumber };
	}
}

/** Returns the scale of an axis. Its figures are round, so the unit may be larger. */
export function axisScale(kind: Kind, largest: number): Scale {
	return kind === "us" ? inUnit(AXIS_TIME, Math.abs(largest), 3) : scaleOf(kind, largest);
}

/** Returns the label of a tick, without redundant zeros: "20 ms". */
export function tickText(scale: Scale, value: number): string {
	const text = scale.text(value);
	return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text} ${scale.unit}`.trimEnd();
}

function inUnit(units: typeof TIME, largest: number, digits: number): Scale {
	const [, size, unit] = units.find(([from]) => largest >= from) ?? units[units.length - 1]!;
	return { unit, text: (value) => grouped(value / size, digits) };
}

/** Formats a number with grouped digits and the given number of decimals. */
export function grouped(value: number, digits: number): string {
	if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
	const text = Math.abs(value).toFixed(digits);
	const [whole = "", rest] = text.split(".");
	const sign = value < 0 && Number(text) !== 0 ? "−" : "";
	return sign + whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") + (rest === undefined ? "" : `.${rest}`);
}

/** Formats a number of unknown kind: an integer in full, else with four significant digits. */
export function formatNumber(value: number): string {
	if (Number.isInteger(value)) return grouped(value, 0);
	const size = Math.abs(value);
	if (size !== 0 && (size < 1e-4 || size >= 1e15)) return value.toExponential(3);
	const digits = Math.max(0, 3 - Math.floor(Math.log10(size || 1)));
	return grouped(value, Math.min(digits, 7));
}

/** Formats a difference with its sign: "+3.2 %". */
export function signed(value: number, text: (value: number) => string): string {
	return value > 0 ? `+${text(value)}` : text(value);
}
