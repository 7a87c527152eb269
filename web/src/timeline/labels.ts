// SPDX-License-Identifier: Apache-2.0
// Names on boxes: the part of a name that says most first, cut where the box ends.
import { isModule, moduleName } from "../format/module_name";

/** A name for a box: without what is the same everywhere, and the function before the file it is in. */
export function shortName(name: string): string {
	if (isModule(name)) return moduleName(name);
	const frame = /^(.*?)([^/\\]*)\((\d+)\): (.*)$/.exec(name);
	if (frame) return `${frame[4]!}  ${frame[2]!}:${frame[3]!}`;
	return name.replace(/^void /, "").replaceAll("(anonymous namespace)::", "").replace(/^at::native::/, "");
}

/** Cuts texts to a width. Characters are measured once; kerning does not matter at this size. */
export class Fitter {
	private readonly widths = new Map<number, number>();
	private readonly measure: (text: string) => number;
	private readonly dots: number;

	constructor(measure: (text: string) => number) {
		this.measure = measure;
		this.dots = measure("…");
	}

	/** A name cut to a width, without its namespace when that lets all of the rest stay. */
	fitName(text: string, width: number): string {
		const whole = this.fit(text, width);
		const bare = whole === text ? undefined : /^(?:aten|autograd::engine|autograd|torch|c10d?|prims|nn)::(.+)$/.exec(text)?.[1];
		return bare === undefined ? whole : this.fit(bare, width);
	}

	/** As much of the text as fits, with … for what does not; "" when not even three characters would. */
	fit(text: string, width: number): string {
		let used = 0;
		let cut = 0; // characters that fit together with the dots
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
