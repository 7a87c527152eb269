// SPDX-License-Identifier: Apache-2.0
//
// Decodes tiles of the timeline (docs/http-api.md, "Tiles").

/** A tile of a track. It covers the time from index to index + 1, in units of 2^level ns, and depths from 64 * band
 * on. */
export interface TileId {
	readonly track: number;
	readonly level: number;
	readonly index: number;
	readonly band: number;
}

/** The boxes of a tile in columns, sorted by depth, then by start. Boxes of one depth do not overlap. */
export interface Tile extends TileId {
	/** Offset that converts rows and names to the numbers shared by all traces on the screen. */
	readonly first: number;
	readonly start: Float64Array;
	readonly end: Float64Array;
	readonly busy: Float32Array;
	readonly row: Uint32Array;
	readonly name: Uint32Array;
	readonly count: Uint32Array;
	readonly kind: Uint8Array;
	/** Boxes of depth `64 * band + d` are those from depthStart[d] to depthStart[d + 1]. */
	readonly depthStart: Uint32Array;
	readonly bytes: number;
}

const MAGIC = 0x4c495401;
const HEADER = 32;
const BOX_BYTES = 37;
export const BAND_DEPTHS = 64;

/** Decodes the tiles of a reply. Throws if the bytes are malformed. */
export function decodeTiles(buffer: ArrayBuffer, first = 0): Tile[] {
	const view = new DataView(buffer);
	const tiles: Tile[] = [];
	for (let offset = 0; offset < buffer.byteLength; ) {
		if (buffer.byteLength - offset < HEADER || view.getUint32(offset, true) !== MAGIC) throw new Error("not a tile");
		const size = view.getUint32(offset + 4, true);
		const count = view.getUint32(offset + 28, true);
		if (size % 8 !== 0 || size < HEADER + count * BOX_BYTES || size > buffer.byteLength - offset) {
			throw new Error("a tile of a wrong size");
		}
		tiles.push({ ...decodeTile(view, offset, size, count), first });
		offset += size;
	}
	return tiles;
}

function decodeTile(view: DataView, offset: number, size: number, count: number): Omit<Tile, "first"> {
	const buffer = view.buffer as ArrayBuffer;
	const band = view.getUint32(offset + 24, true);
	const column = offset + HEADER;
	const depth = new Uint32Array(buffer, column + 32 * count, count);
	return {
		track: view.getUint32(offset + 8, true),
		level: view.getUint32(offset + 12, true),
		index: view.getFloat64(offset + 16, true),
		band,
		start: new Float64Array(buffer, column, count),
		end: new Float64Array(buffer, column + 8 * count, count),
		busy: new Float32Array(buffer, column + 16 * count, count),
		row: new Uint32Array(buffer, column + 20 * count, count),
		name: new Uint32Array(buffer, column + 24 * count, count),
		count: new Uint32Array(buffer, column + 28 * count, count),
		kind: new Uint8Array(buffer, column + 36 * count, count),
		depthStart: startsOfDepths(depth, band),
		bytes: size,
	};
}

function startsOfDepths(depth: Uint32Array, band: number): Uint32Array {
	const starts = new Uint32Array(BAND_DEPTHS + 1);
	let box = 0;
	for (let d = 0; d <= BAND_DEPTHS; d++) {
		while (box < depth.length && depth[box]! < band * BAND_DEPTHS + d) box++;
		starts[d] = box;
	}
	return starts;
}

/** Returns the first box of a depth (counted within the band) that ends at or after `time`, or the end of the depth's
 * boxes. */
export function firstBox(tile: Tile, depth: number, time: number): number {
	let low = tile.depthStart[depth]!;
	let high = tile.depthStart[depth + 1]!;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (tile.end[middle]! < time) low = middle + 1;
		else high = middle;
	}
	return low;
}

/** Returns the level at which a bin of a tile is half a pixel to one pixel wide. */
export function levelFor(nsPerPixel: number, levelMin: number, levelMax: number): number {
	const level = Math.floor(Math.log2(nsPerPixel)) + 9;
	return Math.min(Math.max(level, levelMin), levelMax);
}
