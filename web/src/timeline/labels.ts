// SPDX-License-Identifier: Apache-2.0
//
// Names on boxes: the most informative part of a name comes first, truncated at the end of the box.
import { isModule, moduleName } from "../format/module_name";

/** Shortens a name for a box: removes common parts, and puts the function before its file. */
export function shortName(name: string): string {
	if (isModule(name)) return moduleName(name);
	const frame = /^(.*?)([^/\\]*)\((\d+)\): (.*)$/.exec(name);
	if (frame) return `${frame[4]!}  ${frame[2]!}:${frame[3]!}`;
	return name.replace(/^void /, "").replaceAll("(anonymous namespace)::", "").replace(/^at::native::/, "");
}

/** Truncates texts to a width. Characters are measured once; kerning does not matter at this size. */
export class Fitter {
	private readonly widths = new Map<number, number>();
	private readonly measure: (text: string) => number;
	private readonly dots: number;

	constructor(measure: (text: string) => number) {
		this.measure = measure;
		this.dots = measure("…");
	}

	/** Truncates a name to a width, without its namespace if the rest then fits completely. */
	fitName(text: string, width: number): string {
		const whole = this.fit(text, width);
		const bare = whole === text ? undefined : /^(?:aten|autograd::engine|autograd|torch|c10d?|prims|nn)::(.+)$/.exec(text)?.[1];
		return bare === undefined ? whole : this.fit(bare, width);
	}

	/** Returns as much of the text as fits, followed by … if truncated; "" if not even three characters fit. */
	fit(text: string, width: number): string {
		let used = 0;
		let cut = 0; // number of characters that fit together with the dots
		for (let i = 0; i < text.length; i++) {
			used += this.width(text.charCodeAt(i));
			if (used + this.dots <= width) cut = i + 1;
			if (used > width) return cut < 3 ? "" : `${text.slice(0, cut)}…`;
		}
		return text;
	}

	private width(code: number): number {
		let width = this.widths.get(code);
		if (width === undefined) this.widths.set(code, (width = this.measure(String.fromCharCode(code))));
		return width;
	}
}
