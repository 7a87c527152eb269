// SPDX-License-Identifier: Apache-2.0
//
// Paints boxes. There may be a hundred thousand on the screen, far more than a canvas can draw as rectangles in a
// sixtieth of a second. But all boxes of one depth are on one line. So their colours are written once, as a row of
// pixels, which is then copied for the height of the line. Only the text is drawn with canvas functions.
import { BAND_DEPTHS, firstBox, levelFor, type Tile, type TileId } from "../data/tiles";
import { BoxColors } from "./box_colors";
import type { Geometry, Placed } from "./geometry";
import { type Item, visibleDepths } from "./layout";
import type { TimelineState } from "./state";

export interface Label {
	x: number;
	y: number;
	width: number;
	name: number;
}

/** Narrower boxes have no text. */
const LABEL_LEAST = 26;
const LABEL_LINE = 12;

export interface Ground {
	background: number;
	grid: number;
	group: number;
}

export class BoxPainter {
	readonly labels: Label[] = [];
	/** Tiles that are required, the most visible first. */
	readonly wanted: TileId[] = [];
	private pixels = new Uint32Array(0);
	private image: ImageData | undefined;
	private line = new Uint32Array(0);
	private ground = new Uint32Array(0);
	private columns = 0;
	private rows = 0;

	constructor(
		private readonly state: TimelineState,
		private readonly colorsOf: (tile: Tile) => Uint32Array,
	) {}

	/** Paints all tracks. `scale` is device pixels per CSS pixel, `grid` the positions of vertical lines. */
	paint(geometry: Geometry, placed: Placed[], scale: number, ground: Ground, grid: number[]): ImageData {
		this.begin(Math.round(geometry.width * scale), Math.round(geometry.height * scale), ground, grid, scale);
		for (const each of placed) {
			if (each.item.type === "track") this.paintTrack(geometry.of(this.state.shiftOf(each.item.track.id)), each, each.item, scale);
			if (each.item.type === "group") this.paintGroup(each, scale, ground.group);
		}
		return this.image!;
	}

	private begin(columns: number, rows: number, colors: Ground, grid: number[], scale: number): void {
		this.labels.length = 0;
		this.wanted.length = 0;
		if (columns !== this.columns || rows !== this.rows || !this.image) {
			this.image = new ImageData(columns, rows);
			this.pixels = new Uint32Array(this.image.data.buffer);
			this.line = new Uint32Array(columns);
			this.ground = new Uint32Array(columns);
			this.columns = columns;
			this.rows = rows;
		}
		this.ground.fill(colors.background);
		for (const x of grid) {
			const column = Math.round(x * scale);
			if (column >= 0 && column < columns) this.ground[column] = colors.grid;
		}
		// Each copy doubles the part that is already copied.
		this.pixels.set(this.ground, 0);
		for (let done = columns; done < this.pixels.length; done *= 2) {
			this.pixels.copyWithin(done, 0, Math.min(done, this.pixels.length - done));
		}
	}

	private paintGroup({ y, clipTop, clipBottom, item }: Placed, scale: number, color: number): void {
		const top = Math.round(Math.max(y, clipTop) * scale);
		const bottom = Math.round(Math.min(y + item.height, clipBottom) * scale);
		this.pixels.fill(color, top * this.columns, Math.max(bottom, top) * this.columns);
	}

	/** Uses the times of the track's part. */
	private paintTrack(geometry: Geometry, placed: Placed, item: Item & { type: "track" }, scale: number): void {
		const { timeline } = this.state.part(item.track.id);
		const { span } = geometry;
		const [first, last] = visibleDepths(item, placed.clipTop - placed.y, placed.clipBottom - placed.y);
		const level = levelFor(geometry.nsPerPixel, timeline.level_min, timeline.level_max);
		const length = 2 ** level;
		const from = Math.floor(Math.max(span.from, item.track.start_ns, 0) / length);
		const to = Math.floor(Math.min(span.to, item.track.end_ns) / length);
		for (let band = Math.floor(first / BAND_DEPTHS); band * BAND_DEPTHS < last; band++) {
			const stretches: Stretch[] = [];
			for (let index = from; index <= to; index++) {
				const id = { track: item.track.id, level, index, band };
				this.wanted.push(id);
				for (const stretch of this.tilesFor(id, timeline.level_max)) {
					stretches.push({ ...stretch, from: stretch.from * length, to: stretch.to * length });
				}
			}
			const most = Math.min(last, (band + 1) * BAND_DEPTHS);
			this.paintDepths(geometry, placed, item, stretches, Math.max(first, band * BAND_DEPTHS), most, scale);
		}
	}

	/** Returns the tiles to paint in place of a tile: itself, its two halves, or a longer one. Times are in lengths
	 * of the tile. */
	private tilesFor({ track, level, index, band }: TileId, levelMax: number): Stretch[] {
		const { tiles } = this.state;
		const exact = tiles.get(track, level, index, band);
		const whole = (tile: Tile): Stretch => ({ tile, colors: this.colorsOf(tile), from: index, to: index + 1 });
		if (exact) return [whole(exact)];
		const [left, right] = [2 * index, 2 * index + 1].map((half) => tiles.get(track, level - 1, half, band));
		if (left && right) return [{ ...whole(left), to: index + 0.5 }, { ...whole(right), from: index + 0.5 }];
		const longer = tiles.covering(track, level, index, band, levelMax);
		return longer ? [whole(longer)] : [];
	}

	private paintDepths(
		geometry: Geometry,
		placed: Placed,
		item: Item & { type: "track" },
		stretches: Stretch[],
		first: number,
		last: number,
		scale: number,
	): void {
		const texts = item.line >= LABEL_LINE;
		let shared = -1; // the row in this.line; the thin lines of a folded track may share a row
		for (let depth = first; depth < last; depth++) {
			const top = Math.round((placed.y + depth * item.line) * scale);
			// A background line below each line of boxes, unless the lines are too thin for it.
			const gap = item.line >= 4 ? scale : 0;
			const bottom = Math.max(Math.round((placed.y + (depth + 1) * item.line - gap / scale) * scale), top + 1);
			if (top !== shared) this.line.set(this.ground);
			shared = top;
			const label = texts ? placed.y + depth * item.line : undefined;
			for (const stretch of stretches) this.paintLine(geometry, stretch, depth % BAND_DEPTHS, scale, label);
			const begin = Math.max(top, Math.round(placed.clipTop * scale));
			const end = Math.min(bottom, Math.round(placed.clipBottom * scale), this.rows);
			for (let row = begin; row < end; row++) this.pixels.set(this.line, row * this.columns);
		}
	}

	/** Writes the boxes of one depth in one time range to the line. */
	private paintLine(geometry: Geometry, stretch: Stretch, depth: number, scale: number, label: number | undefined): void {
		const { tile, colors } = stretch;
		const { line, columns } = this;
		const origin = geometry.span.from;
		const perNs = (geometry.width * scale) / (geometry.span.to - origin);
		const from = Math.max(stretch.from, origin);
		const to = Math.min(stretch.to, geometry.span.to);
		const left = Math.max(Math.floor((from - origin) * perNs), 0);
		const right = Math.min(Math.ceil((to - origin) * perNs), columns);
		const end = tile.depthStart[depth + 1]!;
		for (let box = firstBox(tile, depth, from); box < end; box++) {
			const start = tile.start[box]!;
			if (start >= to) break;
			const x0 = Math.max(Math.floor((start - origin) * perNs), left);
			const x1 = Math.min(Math.max(Math.floor((tile.end[box]! - origin) * perNs), x0 + 1), right);
			const color = colors[box]!;
			if (color === BoxColors.HIDDEN) continue;
			if (x1 - x0 < 3) {
				// For this few pixels a call of fill() is too expensive.
				for (let x = x0; x < x1; x++) line[x] = color;
				continue;
			}
			// The last column keeps its colour, so that neighbours of the same colour look like two boxes.
			line.fill(color, x0, x1 === right ? x1 : x1 - 1);
			if (label === undefined || tile.count[box] !== 1) continue;
			// A long box is in several tiles. Its text belongs to the first visible one.
			if (start < stretch.from && stretch.from > origin) continue;
			const width = Math.min((tile.end[box]! - origin) * perNs, columns) / scale - x0 / scale;
			if (width >= LABEL_LEAST) this.labels.push({ x: x0 / scale, y: label, width, name: tile.first + tile.name[box]! });
		}
	}
}

interface Stretch {
	tile: Tile;
	colors: Uint32Array;
	from: number;
	to: number;
}
