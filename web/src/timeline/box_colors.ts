// SPDX-License-Identifier: Apache-2.0
//
// The colour of each box of a tile, computed once, and again when the theme, the colour mode or the search changes.
import type { Tile } from "../data/tiles";
import { classOf, packColor, type Palette } from "./palette";
import type { TimelineState } from "./state";

interface Colored {
	version: number;
	colors: Uint32Array;
}

export class BoxColors {
	private readonly colored = new WeakMap<Tile, Colored>();
	/** Colour of boxes that are not drawn. No other colour is 0, since all are opaque. */
	static readonly HIDDEN = 0;
	private readonly known = new Map<string, number>();
	private version = 0;
	private matches: ReadonlySet<number> | undefined;

	constructor(
		private readonly state: TimelineState,
		private palette: Palette,
	) {}

	/** Discards all colours. */
	reset(palette: Palette): void {
		this.palette = palette;
		const { hits, query } = this.state;
		const found = hits.value;
		this.matches = found && query.value ? new Set(found.flatMap((each) => each.names)) : undefined;
		this.known.clear();
		this.version++;
	}

	/** Returns whether boxes of a name are dimmed because the search does not match it. */
	isDimmed(name: number): boolean {
		return this.matches !== undefined && !this.matches.has(name);
	}

	of(tile: Tile): Uint32Array {
		const had = this.colored.get(tile);
		if (had?.version === this.version) return had.colors;
		const colors = had?.colors ?? new Uint32Array(tile.start.length);
		for (let box = 0; box < colors.length; box++) {
			// Steps of a sixteenth are the finest that can be distinguished.
			const busy = tile.count[box] === 1 ? 16 : Math.round(tile.busy[box]! * 16);
			colors[box] = this.color(tile.kind[box]!, tile.first + tile.name[box]!, busy);
		}
		this.colored.set(tile, { version: this.version, colors });
		return colors;
	}

	private color(kind: number, name: number, busy: number): number {
		const key = `${name}.${kind}.${busy}`;
		const known = this.known.get(key);
		if (known !== undefined) return known;
		const text = this.state.nameOf(name) ?? "";
		const of = classOf(this.state.timeline.kinds[kind] ?? "", text);
		if (this.state.hidden.value.has(of)) {
			this.known.set(key, BoxColors.HIDDEN);
			return BoxColors.HIDDEN;
		}
		const full = this.palette.color(of, text, this.state.colorMode.value);
		const thin = this.palette.thinned(full, busy / 16);
		const packed = packColor(this.isDimmed(name) ? this.palette.dimmed(thin) : thin);
		this.known.set(key, packed);
		return packed;
	}
}
