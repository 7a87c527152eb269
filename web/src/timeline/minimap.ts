// SPDX-License-Identifier: Apache-2.0
//
// The complete trace in one strip. For the busiest tracks it shows the depth of calls, in the colour of the innermost
// call. It also shows the window, hits of a search, and marks. Dragging on it moves the window.
import { effect, type Signal, signal } from "@preact/signals";
import { cssColor, theme } from "../app/theme";
import { BAND_DEPTHS, type Tile, type TileId } from "../data/tiles";
import type { Track } from "./api";
import { BoxColors } from "./box_colors";
import { Palette } from "./palette";
import type { Stage } from "./stage";
import type { TimelineState } from "./state";
import { follow } from "./follow";
import { clampSpan } from "./viewport";

export const MINIMAP = 50;
const STRIPS = 3;
const HANDLE = 5;

export class Minimap {
	readonly width: Signal<number> = signal(0);
	private readonly context: CanvasRenderingContext2D;
	private readonly backdrop = document.createElement("canvas");
	private tracks: Track[];
	private readonly off = new AbortController();
	private readonly stop: (() => void)[] = [];
	private frame = 0;
	private stale = true;
	/** The tiles shown in the backdrop. */
	private shown: (Tile | undefined)[] = [];
	/** What is being dragged: an edge of the window, or the window at a position relative to its length. */
	private drag: { edge: "from" | "to" } | { share: number } | undefined;

	constructor(
		private readonly canvas: HTMLCanvasElement,
		private readonly state: TimelineState,
		private readonly stage: Stage,
	) {
		this.context = canvas.getContext("2d")!;
		this.tracks = stripsOf(state);
		this.stop.push(
			effect(() => {
				this.tracks = stripsOf(state);
				follow(theme, state.colorMode, this.width, state.hits, state.shifts);
				this.stale = true;
				this.schedule();
			}),
			effect(() => {
				follow(state.arrived);
				// During a zoom, tiles arrive that do not matter here. Painting all boxes of the trace
				// takes longer than a frame.
				if (!this.tiles().some((tile, i) => tile && tile !== this.shown[i])) return;
				this.stale = true;
				this.schedule();
			}),
			effect(() => {
				follow(state.span, state.range, state.marks);
				this.schedule();
			}),
		);
		const { signal } = this.off;
		canvas.addEventListener("pointerdown", (event) => this.down(event), { signal });
		canvas.addEventListener("pointermove", (event) => this.move(event), { signal });
		for (const end of ["pointerup", "pointercancel"] as const) {
			canvas.addEventListener(end, () => (this.drag = undefined), { signal });
		}
	}

	close(): void {
		cancelAnimationFrame(this.frame);
		this.off.abort();
		for (const stop of this.stop) stop();
	}

	/** Returns the required tiles: one for each of its tracks. */
	wanted(): TileId[] {
		return this.tracks.flatMap((track) =>
			bandsOf(track).map((band) => ({ track: track.id, level: this.state.part(track.id).timeline.level_max, index: 0, band })),
		);
	}

	private tiles(): (Tile | undefined)[] {
		return this.wanted().map(({ track, level, index, band }) => this.state.tiles.get(track, level, index, band));
	}

	private schedule(): void {
		this.frame ||= requestAnimationFrame(() => {
			this.frame = 0;
			this.paint();
		});
	}

	private x(time: number): number {
		const { from, to } = this.state.whole;
		return ((time - from) / (to - from)) * this.width.value;
	}

	private paint(): void {
		const width = this.width.value;
		if (width < 1) return;
		const scale = window.devicePixelRatio || 1;
		for (const canvas of [this.canvas, this.backdrop]) {
			if (canvas.width === Math.round(width * scale)) continue;
			canvas.width = Math.round(width * scale);
			canvas.height = Math.round(MINIMAP * scale);
			this.stale = true;
		}
		if (this.stale) this.paintBackdrop(scale);
		this.stale = false;
		const { context } = this;
		context.setTransform(1, 0, 0, 1, 0, 0);
		context.drawImage(this.backdrop, 0, 0);
		context.setTransform(scale, 0, 0, scale, 0, 0);
		this.paintWindow(width);
	}

	private paintBackdrop(scale: number): void {
		const context = this.backdrop.getContext("2d")!;
		this.shown = this.tiles();
		context.setTransform(scale, 0, 0, scale, 0, 0);
		context.fillStyle = cssColor("--surface");
		context.fillRect(0, 0, this.width.value, MINIMAP);
		const colors = new BoxColors(this.state, new Palette(cssColor, theme.value));
		const height = (MINIMAP - 8) / Math.max(this.tracks.length, 1);
		this.tracks.forEach((track, i) => {
			this.paintStrip(context, track, colors, 2 + i * height, height - 2);
		});
		this.paintHits(context);
	}

	private paintStrip(context: CanvasRenderingContext2D, track: Track, colors: BoxColors, top: number, height: number): void {
		// Deeper boxes paint over the ones around them, and are proportionally higher.
		for (const band of bandsOf(track)) {
			const tile = this.state.tiles.get(track.id, this.state.part(track.id).timeline.level_max, 0, band);
			if (!tile) continue;
			const ink = colors.of(tile);
			const shift = this.state.shiftOf(track.id);
			for (let depth = 0; depth < BAND_DEPTHS; depth++) {
				const high = Math.max((height * (band * BAND_DEPTHS + depth + 1)) / track.depths, 1.5);
				this.paintDepth(context, tile, shift, depth, ink, top + height - high, high);
			}
		}
	}

	private paintDepth(
		context: CanvasRenderingContext2D,
		tile: Tile,
		shift: number,
		depth: number,
		ink: Uint32Array,
		y: number,
		height: number,
	): void {
		for (let box = tile.depthStart[depth]!; box < tile.depthStart[depth + 1]!; box++) {
			const x = this.x(tile.start[box]! + shift);
			const color = ink[box]!;
			context.fillStyle = `rgb(${color & 255} ${(color >> 8) & 255} ${(color >> 16) & 255})`;
			context.fillRect(x, y, Math.max(this.x(tile.end[box]! + shift) - x, 1), height);
		}
	}

	private paintHits(context: CanvasRenderingContext2D): void {
		context.fillStyle = cssColor("--bad");
		this.state.hits.value?.forEach(({ bins }, part) => {
			const shift = this.state.shifts.value[part]!;
			const { duration_ns } = this.state.parts[part]!.timeline;
			bins?.forEach((count, i) => {
				if (count > 0) context.fillRect(this.x(shift + (i / bins.length) * duration_ns), MINIMAP - 6, 1.5, 5);
			});
		});
	}

	private paintWindow(width: number): void {
		const { context, state } = this;
		const left = this.x(state.span.value.from);
		const right = Math.max(this.x(state.span.value.to), left + 2);
		context.globalAlpha = 0.62;
		context.fillStyle = cssColor("--surface-raised");
		context.fillRect(0, 0, left, MINIMAP);
		context.fillRect(right, 0, width - right, MINIMAP);
		context.globalAlpha = 1;
		const range = state.range.value;
		context.fillStyle = cssColor("--accent");
		if (range) context.fillRect(this.x(range.from), MINIMAP - 3, Math.max(this.x(range.to) - this.x(range.from), 1), 3);
		context.fillRect(left, 0, 2, MINIMAP);
		context.fillRect(right - 2, 0, 2, MINIMAP);
		context.fillStyle = cssColor("--mark");
		for (const mark of state.marks.value) context.fillRect(this.x(mark), 0, 2, MINIMAP);
		context.fillStyle = cssColor("--line");
		context.fillRect(0, MINIMAP - 1, width, 1);
	}

	private time(event: PointerEvent): { x: number; time: number } {
		const x = event.clientX - this.canvas.getBoundingClientRect().left;
		const { from, to } = this.state.whole;
		return { x, time: from + (x / Math.max(this.width.value, 1)) * (to - from) };
	}

	private down(event: PointerEvent): void {
		const { x, time } = this.time(event);
		const { from, to } = this.state.span.value;
		this.canvas.setPointerCapture(event.pointerId);
		if (Math.abs(x - this.x(from)) <= HANDLE) this.drag = { edge: "from" };
		else if (Math.abs(x - this.x(to)) <= HANDLE) this.drag = { edge: "to" };
		else if (time > from && time < to && to - from < this.state.whole.to - this.state.whole.from) this.drag = { share: (time - from) / (to - from) };
		else this.drag = { share: 0.5 };
		this.move(event);
	}

	private move(event: PointerEvent): void {
		const { x, time } = this.time(event);
		const { from, to } = this.state.span.value;
		if (!this.drag) {
			const onEdge = Math.min(Math.abs(x - this.x(from)), Math.abs(x - this.x(to))) <= HANDLE;
			this.canvas.style.cursor = onEdge ? "ew-resize" : "grab";
			return;
		}
		if ("share" in this.drag) {
			const start = time - (to - from) * this.drag.share;
			this.stage.show(clampSpan({ from: start, to: start + to - from }, this.state.whole), false);
		} else if (this.drag.edge === "from") {
			this.stage.show({ from: Math.min(time, to - 1), to }, false);
		} else {
			this.stage.show({ from, to: Math.max(time, from + 1) }, false);
		}
	}
}

/** Returns the tracks with most events, devices first; with several parts, at least one of each. */
function stripsOf(state: TimelineState): Track[] {
	return state.parts.flatMap(({ timeline }) => {
		const busiest = [...timeline.tracks].sort((a, b) => b.events - a.events);
		const streams = busiest.filter((track) => track.kind === "stream").slice(0, 1);
		const strips = Math.ceil(STRIPS / state.parts.length);
		return [...streams, ...busiest.filter((track) => !streams.includes(track))].slice(0, strips);
	});
}

function bandsOf(track: Track): number[] {
	return Array.from({ length: Math.min(Math.ceil(track.depths / BAND_DEPTHS), 2) }, (_, band) => band);
}
