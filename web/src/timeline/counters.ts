// SPDX-License-Identifier: Apache-2.0
//
// Paints counters: an area below the value, and a lighter one up to the maximum where a pixel has several values.
import { formatBytes, formatNumber, formatShare } from "../format/units";
import { levelFor, type TileId } from "../data/tiles";
import type { Counter } from "./api";
import type { Geometry, Placed } from "./geometry";
import type { Item } from "./layout";
import type { CounterPiece } from "./load";
import type { TimelineState } from "./state";
import type { Span } from "./viewport";

export interface CounterInk {
	area: string;
	line: string;
	text: string;
	base: string;
}

type CounterItem = Item & { type: "counter" };

export function formatCounter(counter: Counter, value: number): string {
	if (counter.unit === "bytes") return formatBytes(value);
	if (counter.unit === "ratio") return formatShare(value);
	return formatNumber(value);
}

/** Paints one counter, in the times of its part. Returns the pieces that it used. */
export function paintCounter(
	context: CanvasRenderingContext2D,
	state: TimelineState,
	geometry: Geometry,
	placed: Placed,
	item: CounterItem,
	ink: CounterInk,
): TileId[] {
	const { counter } = item;
	const [low, high] = [Math.min(counter.min, 0), Math.max(counter.max, 0)];
	const top = placed.y + 3;
	const bottom = placed.y + item.height - 5;
	const y = (value: number): number => bottom - ((value - low) / (high - low || 1)) * (bottom - top);
	const wanted: TileId[] = [];

	const steps: [number, number][] = []; // x, and the value from there on
	const peaks = new Path2D();
	for (const { piece, from, to } of piecesOf(state, geometry, counter, wanted)) {
		if (piece.before !== null) steps.push([geometry.x(from), piece.before]);
		for (let i = firstAfter(piece.time_ns, from); i < piece.time_ns.length && piece.time_ns[i]! < to; i++) {
			const x = geometry.x(piece.time_ns[i]!);
			peaks.rect(x, y(piece.max[i]!), 1, y(piece.min[i]!) - y(piece.max[i]!));
			steps.push([x, piece.last[i]!]);
		}
	}
	context.save();
	context.beginPath();
	context.rect(0, placed.clipTop, geometry.width, placed.clipBottom - placed.clipTop);
	context.clip();
	if (steps.length > 0) {
		const area = new Path2D();
		const line = new Path2D();
		area.moveTo(steps[0]![0], y(0));
		steps.forEach(([x, value], i) => {
			const height = y(value);
			if (i === 0) line.moveTo(x, height);
			else line.lineTo(x, y(steps[i - 1]![1]));
			area.lineTo(x, i === 0 ? height : y(steps[i - 1]![1]));
			area.lineTo(x, height);
			line.lineTo(x, height);
		});
		const end = Math.min(geometry.x(state.part(counter.id).timeline.duration_ns), geometry.width);
		line.lineTo(end, y(steps[steps.length - 1]![1]));
		area.lineTo(end, y(steps[steps.length - 1]![1]));
		area.lineTo(end, y(0));
		context.fillStyle = ink.area;
		context.fill(area);
		context.strokeStyle = ink.line;
		context.lineWidth = 1;
		context.stroke(line);
		context.fillStyle = ink.line;
		context.fill(peaks);
	}
	context.fillStyle = ink.base;
	context.fillRect(0, y(0), geometry.width, 1);
	context.restore();
	return wanted;
}

interface Stretch extends Span {
	piece: CounterPiece;
}

function piecesOf(state: TimelineState, geometry: Geometry, counter: Counter, wanted: TileId[]): Stretch[] {
	const { level_min, level_max, duration_ns } = state.part(counter.id).timeline;
	const level = levelFor(geometry.nsPerPixel, level_min, level_max);
	const length = 2 ** level;
	const pieces: Stretch[] = [];
	const last = Math.floor(Math.min(geometry.span.to, duration_ns) / length);
	for (let index = Math.max(Math.floor(geometry.span.from / length), 0); index <= last; index++) {
		const id = { track: counter.id, level, index, band: 0 };
		wanted.push(id);
		const piece = state.counters.covering(id.track, level, index, 0, level_max);
		if (!piece) continue;
		// If a longer piece replaces this one, its initial value belongs to an earlier time.
		const exact = piece.level === level;
		const from = index * length;
		pieces.push({ piece: exact ? piece : { ...piece, before: valueAt(piece, from) }, from, to: from + length });
	}
	return pieces;
}

function firstAfter(times: number[], time: number): number {
	let low = 0;
	let high = times.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (times[middle]! < time) low = middle + 1;
		else high = middle;
	}
	return low;
}

/** Returns the value at a time, as far as a piece contains it. */
export function valueAt(piece: CounterPiece, time: number): number | null {
	const after = firstAfter(piece.time_ns, time + 1);
	return after > 0 ? piece.last[after - 1]! : piece.before;
}

/** Returns the value of a counter at a time, from loaded data. */
export function counterValue(state: TimelineState, counter: Counter, time: number, nsPerPixel: number): number | null {
	const { level_min, level_max } = state.part(counter.id).timeline;
	const own = time - state.shiftOf(counter.id);
	const level = levelFor(nsPerPixel, level_min, level_max);
	const piece = state.counters.covering(counter.id, level, Math.floor(own / 2 ** level), 0, level_max);
	return piece ? valueAt(piece, own) : null;
}
