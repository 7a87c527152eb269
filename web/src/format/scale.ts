// SPDX-License-Identifier: Apache-2.0
//
// The text of a figure by its kind, and the scale of an axis, whose figures share a unit.
import { formatBytes, formatCount, formatNumber, formatPercent, formatScaled, formatShare, formatUs, grouped } from "./units";

/** The kind of a figure: microseconds, bytes, a share from 0 to 1, percent, a count, floating-point operations, or a
 * plain number. */
export type Kind = "us" | "bytes" | "share" | "pct" | "count" | "flops" | "number";

const TEXTS: Record<Kind, (value: number) => string> = {
	us: formatUs,
	bytes: formatBytes,
	share: formatShare,
	pct: formatPercent,
	count: formatCount,
	flops: formatScaled,
	number: formatNumber,
};

/** Returns the figure with its unit: "1.23 ms". */
export function figureText(kind: Kind, value: number): string {
	return TEXTS[kind](value);
}

export interface Scale {
	/** "ms"; empty for plain numbers. */
	unit: string;
	/** The figure in that unit, without the unit. */
	text: (value: number) => string;
}

type Unit = [from: number, size: number, unit: string];

/** Units, each with the smallest figure for which it is used, and its size. */
const TIME: Unit[] = [
	[1e6, 1e6, "s"],
	[1e3, 1e3, "ms"],
	[0, 1, "µs"],
];
const BYTES: Unit[] = [
	[1024 ** 4, 1024 ** 4, "TiB"],
	[1024 ** 3, 1024 ** 3, "GiB"],
	[1024 ** 2, 1024 ** 2, "MiB"],
	[1024, 1024, "KiB"],
	[0, 1, "B"],
];

const FLOPS: Unit[] = [
	[1e12, 1e12, "T"],
	[1e9, 1e9, "G"],
	[1e6, 1e6, "M"],
	[1e3, 1e3, "K"],
	[0, 1, ""],
];

/** Returns the scale of an axis. The largest figure determines the unit of all. */
export function axisScale(kind: Kind, largest: number): Scale {
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

/** Returns the label of a tick, without redundant zeros: "20 ms". */
export function tickText(scale: Scale, value: number): string {
	const text = scale.text(value);
	return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text} ${scale.unit}`.trimEnd();
}

function inUnit(units: Unit[], largest: number, digits: number): Scale {
	const [, size, unit] = units.find(([from]) => largest >= from) ?? units[units.length - 1]!;
	return { unit, text: (value) => grouped(value / size, digits) };
}
