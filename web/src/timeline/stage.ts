// SPDX-License-Identifier: Apache-2.0
//
// The canvas: paints a frame when something visible has changed, moves the window smoothly, and finds what is at a
// point.
import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { cssColor, theme } from "../app/theme";
import { modulePaths } from "../format/module_name";
import { BAND_DEPTHS, levelFor, type TileId } from "../data/tiles";
import { BoxColors } from "./box_colors";
import { BoxPainter, type Ground } from "./boxes";
import { type CounterInk, paintCounter } from "./counters";
import { Geometry } from "./geometry";
import { Fitter, shortName } from "./labels";
import { boxAt, type Layout, layOut } from "./layout";
import { type Ink, Overlay, SMALL_FONT } from "./overlay";
import { packColor, Palette, parseColor } from "./palette";
import { hasStepLine, type Picked, type TimelineState } from "./state";
import { follow } from "./follow";
import { tickStep, ticks } from "./ticks";
import { betweenSpans, clampSpan, type Span } from "./viewport";

const TICK_PIXELS = 110;
const GLIDE_MS = 180;
/** A higher ratio of device pixels to CSS pixels is not visible. */
const MOST_SCALE = 2;

export interface Size {
	width: number;
	height: number;
}

export class Stage {
	readonly size: Signal<Size> = signal({ width: 0, height: 0 });
	readonly layout: ReadonlySignal<Layout>;
	/** The geometry of the last painted frame. */
	geometry: Geometry | undefined;
	/** Tiles to load when idle. */
	background: (() => TileId[]) | undefined;

	private readonly context: CanvasRenderingContext2D;
	private readonly boxes: BoxPainter;
	private readonly colors: BoxColors;
	private readonly overlay: Overlay;
	private readonly fitter: Fitter;
	private readonly stop: (() => void)[] = [];
	private palette!: Palette;
	private ink!: Ink;
	private ground!: Ground;
	private counterInk!: CounterInk;
	private frame = 0;
	private glide: { from: Span; to: Span; since: number } | undefined;
	private readonly shortNames = new Map<number, string>();

	constructor(
		private readonly canvas: HTMLCanvasElement,
		private readonly state: TimelineState,
	) {
		// The picture is computed pixel by pixel on the CPU, so it should not be kept on the GPU.
		this.context = canvas.getContext("2d", { alpha: false, willReadFrequently: true })!;
		this.layout = computed(() => layOut(state.parts, state.folded.value, state.pinned.value));
		this.context.font = SMALL_FONT;
		this.fitter = new Fitter((text) => this.context.measureText(text).width);
		this.readTheme();
		this.colors = new BoxColors(state, this.palette);
		this.boxes = new BoxPainter(state, (tile) => this.colors.of(tile));
		this.overlay = new Overlay(this.context, state, this.fitter);
		this.stop.push(
			effect(() => {
				// Read so that the effect runs again when one of them changes.
				follow(theme, state.colorMode, state.hits, state.query, state.hidden, modulePaths);
				this.shortNames.clear();
				this.readTheme();
				this.colors.reset(this.palette);
				this.schedule();
			}),
			effect(() => {
				follow(state.span, state.scrollTop, this.layout, this.size, state.arrived);
				follow(state.selected, state.links, state.hover, state.range, state.marks);
				follow(state.rangeTracks, state.notes, state.shifts, state.together);
				follow(state.flows, state.paths, state.showPath);
				this.schedule();
			}),
		);
	}

	close(): void {
		cancelAnimationFrame(this.frame);
		for (const stop of this.stop) stop();
	}

	/** Moves to a window, immediately or with a short animation. */
	show(span: Span, smoothly = true): void {
		const to = clampSpan(span, this.state.whole);
		if (smoothly && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
			this.glide = { from: this.state.span.value, to, since: performance.now() };
			this.schedule();
		} else {
			this.glide = undefined;
			this.state.span.value = to;
		}
	}

	/** The window that the animation ends at, from which further moves start. */
	get target(): Span {
		return this.glide?.to ?? this.state.span.value;
	}

	/** Returns what is at a point of the canvas. */
	pick(x: number, y: number): Picked | undefined {
		const { geometry, state } = this;
		const placed = geometry?.at(y);
		if (!geometry || placed?.item.type !== "track") return undefined;
		const { item } = placed;
		const depth = Math.floor((y - placed.y) / item.line);
		if (depth < 0 || depth >= item.track.depths) return undefined;
		const shift = state.shiftOf(item.track.id);
		const time = geometry.time(x) - shift;
		const { level_min, level_max } = state.part(item.track.id).timeline;
		const level = levelFor(geometry.nsPerPixel, level_min, level_max);
		const index = Math.floor(time / 2 ** level);
		const tile = state.tiles.covering(item.track.id, level, index, Math.floor(depth / BAND_DEPTHS), level_max);
		const box = tile && boxAt(tile, depth % BAND_DEPTHS, time, 2 * geometry.nsPerPixel);
		if (!tile || box === undefined || this.colors.of(tile)[box] === BoxColors.HIDDEN) return undefined;
		return {
			row: tile.first + tile.row[box]!,
			name: tile.first + tile.name[box]!,
			track: item.track.id,
			depth,
			start: tile.start[box]! + shift,
			end: tile.end[box]! + shift,
			count: tile.count[box]!,
		};
	}

	/** Returns the tracks between two heights. */
	tracksBetween(top: number, bottom: number): number[] {
		return (this.geometry?.visible() ?? []).flatMap(({ y, item }) => (item.type === "track" && y < bottom && y + item.height > top ? [item.track.id] : []));
	}

	/** Scrolls so that a line is visible. */
	reveal(track: number, depth: number): void {
		const line = this.geometry?.line(track, depth);
		if (!this.geometry || !line || line.pinned) return;
		const { bodyTop, height } = this.geometry;
		const margin = 2 * line.height;
		const { scrollTop } = this.state;
		if (line.top < bodyTop + margin) scrollTop.value = Math.max(scrollTop.value + line.top - bodyTop - margin, 0);
		else if (line.top + line.height > height - margin) scrollTop.value += line.top + line.height - height + margin;
	}

	schedule(): void {
		this.frame ||= requestAnimationFrame((now) => {
			this.frame = 0;
			this.step(now);
			this.paint();
		});
	}

	private step(now: number): void {
		if (!this.glide) return;
		const { from, to, since } = this.glide;
		const share = Math.min(Math.max((now - since) / GLIDE_MS, 0), 1);
		if (share === 1) this.glide = undefined;
		this.state.span.value = share === 1 ? to : betweenSpans(from, to, 1 - (1 - share) ** 3);
		this.schedule();
	}

	private paint(): void {
		const { width, height } = this.size.value;
		if (width < 1 || height < 1) return;
		const { context, state } = this;
		const scale = Math.min(window.devicePixelRatio || 1, MOST_SCALE);
		const columns = Math.round(width * scale);
		const rows = Math.round(height * scale);
		if (this.canvas.width !== columns || this.canvas.height !== rows) {
			this.canvas.width = columns;
			this.canvas.height = rows;
		}
		const hasSteps = hasStepLine(state);
		const scroll = Math.round(state.scrollTop.value);
		const geometry = new Geometry(state.span.value, width, height, this.layout.value, scroll, hasSteps);
		this.geometry = geometry;
		const step = tickStep(geometry.span.to - geometry.span.from, width / TICK_PIXELS);
		const times = ticks(geometry.span.from, geometry.span.to, step);
		const placed = geometry.visible();
		const grid = times.map((time) => geometry.x(time));
		context.putImageData(this.boxes.paint(geometry, placed, scale, this.ground, grid), 0, 0);
		context.setTransform(scale, 0, 0, scale, 0, 0);
		this.paintLabels(geometry);
		const counters: TileId[] = [];
		for (const each of placed) {
			if (each.item.type !== "counter") continue;
			const own = geometry.of(state.shiftOf(each.item.counter.id));
			counters.push(...paintCounter(context, state, own, each, each.item, this.counterInk));
		}
		this.overlay.paint(geometry, this.ink, times, step);
		state.tiles.want([...this.boxes.wanted, ...(this.background?.() ?? [])]);
		state.counters.want(counters);
		const busy = String(this.glide !== undefined || state.tiles.waiting || state.counters.waiting);
		if (this.canvas.ariaBusy !== busy) this.canvas.ariaBusy = busy;
	}

	private paintLabels(geometry: Geometry): void {
		const { context } = this;
		context.save();
		context.beginPath();
		context.rect(0, geometry.pinnedTop, geometry.width, geometry.height - geometry.pinnedTop);
		context.clip();
		context.font = SMALL_FONT;
		context.textBaseline = "middle";
		for (const { x, y, width, name } of this.boxes.labels) {
			// Dimmed boxes are close to the background, so they have its text colour.
			context.fillStyle = this.colors.isDimmed(name) ? this.ink.text : this.palette.text;
			const text = this.fitter.fitName(this.shortName(name), width - 7);
			if (text) context.fillText(text, x + 3, y + 9);
		}
		context.restore();
	}

	private shortName(id: number): string {
		let short = this.shortNames.get(id);
		if (short === undefined) {
			const text = this.state.nameOf(id);
			if (text === undefined) return "";
			this.shortNames.set(id, (short = shortName(text)));
		}
		return short;
	}

	private readTheme(): void {
		const color = (name: string): string => cssColor(name);
		const packed = (name: string): number => packColor(parseColor(color(name)));
		this.palette = new Palette(color, theme.value);
		this.ground = { background: packed("--surface"), grid: packed("--grid"), group: packed("--surface-raised") };
		this.ink = {
			surface: color("--surface"),
			raised: color("--surface-raised"),
			line: color("--line"),
			strong: color("--line-strong"),
			text: color("--text"),
			soft: color("--text-soft"),
			accent: color("--accent"),
			accentSoft: color("--accent-soft"),
			mark: color("--mark"),
			bad: color("--bad"),
			step: color("--accent-soft"),
			onKind: color("--on-kind"),
		};
		this.counterInk = { area: color("--accent-soft"), line: color("--accent"), text: color("--text"), base: color("--line") };
	}
}
