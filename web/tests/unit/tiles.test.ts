// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { TileStore } from "../../src/data/tile_store";
import { decodeTiles, firstBox, levelFor, type Tile, type TileId } from "../../src/data/tiles";
import { boxAt } from "../../src/timeline/layout";

interface Box {
	start: number;
	end: number;
	depth: number;
	row?: number;
	count?: number;
}

/** The bytes of a tile, written from docs/http-api.md. */
function encode({ track, level, index, band }: TileId, boxes: Box[]): ArrayBuffer {
	const count = boxes.length;
	const size = Math.ceil((32 + 37 * count) / 8) * 8;
	const view = new DataView(new ArrayBuffer(size));
	const header = [0x4c495401, size, track, level];
	header.forEach((value, i) => view.setUint32(4 * i, value, true));
	view.setFloat64(16, index, true);
	view.setUint32(24, band, true);
	view.setUint32(28, count, true);
	boxes.forEach((box, i) => {
		view.setFloat64(32 + 8 * i, box.start, true);
		view.setFloat64(32 + 8 * count + 8 * i, box.end, true);
		view.setFloat32(32 + 16 * count + 4 * i, 0.5, true);
		[box.row ?? i, 7, box.count ?? 1, box.depth].forEach((value, column) => {
			view.setUint32(32 + (20 + 4 * column) * count + 4 * i, value, true);
		});
		view.setUint8(32 + 36 * count + i, 4);
	});
	return view.buffer;
}

function join(...parts: ArrayBuffer[]): ArrayBuffer {
	const bytes = parts.flatMap((part) => [...new Uint8Array(part)]);
	return new Uint8Array(bytes).buffer;
}

const at: TileId = { track: 3, level: 20, index: 5, band: 0 };
const boxes: Box[] = [
	{ start: 0, end: 1000, depth: 0 },
	{ start: 10, end: 20, depth: 1 },
	{ start: 30, end: 40, depth: 1, count: 12 },
	{ start: 50, end: 50, depth: 1 },
	{ start: 12, end: 13, depth: 3 },
];

describe("the bytes of tiles", () => {
	test("are taken apart into columns", () => {
		const [tile, empty] = decodeTiles(join(encode(at, boxes), encode({ ...at, band: 1 }, [])));
		expect(tile).toMatchObject(at);
		expect([...tile!.start]).toEqual(boxes.map((box) => box.start));
		expect([...tile!.end]).toEqual(boxes.map((box) => box.end));
		expect([...tile!.row]).toEqual([0, 1, 2, 3, 4]);
		expect([...tile!.name]).toEqual([7, 7, 7, 7, 7]);
		expect([...tile!.count]).toEqual([1, 1, 12, 1, 1]);
		expect([...tile!.kind]).toEqual([4, 4, 4, 4, 4]);
		expect(tile!.busy[0]).toBe(0.5);
		expect([...tile!.depthStart.slice(0, 6)]).toEqual([0, 1, 4, 4, 5, 5]);
		expect(empty!.start.length).toBe(0);
	});

	test("of a second band count depths from 64", () => {
		const [tile] = decodeTiles(encode({ ...at, band: 1 }, [{ start: 0, end: 1, depth: 66 }]));
		expect([...tile!.depthStart.slice(0, 4)]).toEqual([0, 0, 0, 1]);
	});

	test("that are cut short, or no tile, are refused", () => {
		const whole = encode(at, boxes);
		expect(() => decodeTiles(whole.slice(0, whole.byteLength - 8))).toThrow("size");
		expect(() => decodeTiles(whole.slice(0, 16))).toThrow("not a tile");
		expect(() => decodeTiles(new ArrayBuffer(64))).toThrow("not a tile");
		new DataView(whole).setUint32(28, 1 << 30, true);
		expect(() => decodeTiles(whole)).toThrow("size");
	});

	test("a box is found by depth and time", () => {
		const [tile] = decodeTiles(encode(at, boxes)) as [Tile];
		expect(firstBox(tile, 1, 0)).toBe(1);
		expect(firstBox(tile, 1, 25)).toBe(2);
		expect(firstBox(tile, 1, 99)).toBe(4);
		expect(boxAt(tile, 1, 15, 0)).toBe(1);
		expect(boxAt(tile, 1, 25, 0)).toBeUndefined();
		expect(boxAt(tile, 1, 22, 3)).toBe(1); // close by is enough for a pointer, and the closer one counts
		expect(boxAt(tile, 1, 28, 9)).toBe(2);
		expect(boxAt(tile, 1, 50, 0)).toBe(3);
		expect(boxAt(tile, 2, 15, 100)).toBeUndefined();
	});

	test("the level has bins of half a pixel to one pixel", () => {
		for (const nsPerPixel of [1, 1.9, 1000, 123_456.7]) {
			const bin = 2 ** (levelFor(nsPerPixel, 9, 40) - 9);
			expect(bin).toBeLessThanOrEqual(nsPerPixel);
			expect(bin * 2).toBeGreaterThan(nsPerPixel);
		}
		expect(levelFor(1e-3, 9, 40)).toBe(9);
		expect(levelFor(1e30, 9, 40)).toBe(40);
	});
});

describe("the cache of tiles", () => {
	const id = (index: number, level = 10): TileId => ({ track: 0, level, index, band: 0 });
	type Stub = TileId & { bytes: number };

	/** A store whose replies come when the test says so. */
	function store(options: { maxBytes?: number; maxRequests?: number; batch?: number; retryMs?: number } = {}) {
		const requests: { ids: TileId[]; signal: AbortSignal; answer: () => void; refuse: () => void }[] = [];
		let drawn = 0;
		const tiles = new TileStore<Stub>({
			load: (ids, signal) =>
				new Promise((resolve, reject) => {
					signal.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
					requests.push({
						ids,
						signal,
						answer: () => resolve(ids.map((each) => ({ ...each, bytes: 10 }))),
						refuse: () => reject(new Error("no")),
					});
				}),
			onTiles: () => drawn++,
			...options,
		});
		const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
		return { tiles, requests, settle, drawn: () => drawn };
	}

	test("asks once for what is missing, in batches, and draws when it comes", async () => {
		const { tiles, requests, settle, drawn } = store({ batch: 2, maxRequests: 2 });
		tiles.want([0, 1, 2, 3, 4].map((index) => id(index)));
		tiles.want([0, 1, 2, 3, 4].map((index) => id(index)));
		expect(requests.map((each) => each.ids.map((tile) => tile.index))).toEqual([[0, 1], [2, 3]]);
		requests[0]!.answer();
		await settle();
		expect(drawn()).toBe(1);
		expect(tiles.get(0, 10, 1, 0)).toMatchObject(id(1));
		expect(requests[2]!.ids.map((tile) => tile.index)).toEqual([4]);
		requests[1]!.answer();
		requests[2]!.answer();
		await settle();
		tiles.want([0, 1, 2, 3, 4].map((index) => id(index)));
		expect(requests.length).toBe(3);
		expect(tiles.waiting).toBe(false);
	});

	test("a longer tile replaces a missing one", async () => {
		const { tiles, requests, settle } = store();
		tiles.want([id(1, 12)]);
		requests[0]!.answer();
		await settle();
		expect(tiles.covering(0, 10, 5, 0, 12)).toMatchObject({ level: 12, index: 1 });
		expect(tiles.covering(0, 10, 9, 0, 12)).toBeUndefined();
		expect(tiles.covering(0, 10, 5, 0, 11)).toBeUndefined();
	});

	test("the exact tile is fetched where a longer one would replace it", async () => {
		const { tiles, requests, settle } = store();
		tiles.want([id(0, 12)]);
		requests[0]!.answer();
		await settle();
		const asked = tiles.exact(id(1));
		requests[1]!.answer();
		expect(await asked).toMatchObject(id(1));
		expect(await tiles.exact(id(1))).toBe(tiles.get(0, 10, 1, 0));
		expect(requests.length).toBe(2);
		const refused = tiles.exact(id(2));
		requests[2]!.refuse();
		await expect(refused).rejects.toThrow("no");
	});

	test("drops data that is no longer shown, after a delay", async () => {
		const { tiles, requests, settle } = store({ maxRequests: 1 });
		tiles.want([id(0)]);
		await new Promise((resolve) => setTimeout(resolve, 120));
		tiles.want([id(0), id(1)]);
		expect(requests[0]!.signal.aborted).toBe(false);
		tiles.want([id(1)]);
		expect(requests[0]!.signal.aborted).toBe(true);
		await settle();
		expect(requests[1]!.ids).toEqual([id(1)]);
		tiles.close();
		expect(requests[1]!.signal.aborted).toBe(true);
	});

	test("forgets what was not looked at for longest", async () => {
		const { tiles, requests, settle } = store({ maxBytes: 30, batch: 1 });
		for (const index of [0, 1, 2]) {
			tiles.want([id(index)]);
			requests[requests.length - 1]!.answer();
			await settle();
		}
		tiles.get(0, 10, 0, 0);
		tiles.want([id(3)]);
		requests[3]!.answer();
		await settle();
		expect([0, 1, 2, 3].map((index) => tiles.get(0, 10, index, 0) !== undefined)).toEqual([true, false, true, true]);
	});

	test("a failed tile is not requested again at once", async () => {
		const { tiles, requests, settle } = store({ retryMs: Infinity });
		tiles.want([id(0)]);
		requests[0]!.refuse();
		await settle();
		tiles.want([id(0)]);
		expect(requests.length).toBe(1);
		expect(tiles.waiting).toBe(false);
	});
});
