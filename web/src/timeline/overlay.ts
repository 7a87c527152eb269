// SPDX-License-Identifier: Apache-2.0
//
// Everything drawn over the boxes: ruler, steps, the selected range, marks, arrows, the critical path, the selected
// event.
import { formatNs } from "../format/units";
import type { CriticalPathReply, Flow, Place, Step } from "./api";
import { pickedOf } from "./choose";
import type { Geometry } from "./geometry";
import type { Fitter } from "./labels";
import type { Picked, TimelineState } from "./state";
import { tickLabel } from "./ticks";
import type { Span } from "./viewport";
import { arrowStart, RULER, STEPS } from "./geometry";

export interface Ink {
	surface: string;
	raised: string;
	line: string;
	strong: string;
	text: string;
	soft: string;
	accent: string;
	accentSoft: string;
	mark: string;
	bad: string;
	step: string;
	onKind: string;
}

export const SMALL_FONT = "11px system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', sans-serif";

export class Overlay {
	constructor(
		private readonly context: CanvasRenderingContext2D,
		private readonly state: TimelineState,
		private readonly fitter: Fitter,
	) {}

	paint(geometry: Geometry, ink: Ink, times: number[], step: number): void {
		const { range, hover, selected } = this.state;
		this.below(geometry, geometry.bodyTop, () => {
			for (const { item, y, height } of geometry.parts()) {
				this.paintSteps(geometry.of(this.state.shifts.value[item.part.number]!), item.part.timeline.steps, y, height, ink);
			}
		});
		this.below(geometry, geometry.pinnedTop, () => {
			if (this.state.showPath.value) for (const path of this.state.paths.value) this.paintPath(geometry, path, ink);
			for (const flow of this.state.flows.value) {
				if (inWindow(geometry.span, flow)) this.arrow(geometry, flow, ink.soft, 1);
			}
			for (const flow of this.state.links.value) this.arrow(geometry, flow, ink.accent, 2);
		});
		for (const each of this.state.together.value) this.paintTogether(geometry, each, ink);
		if (hover.value) this.outline(geometry, hover.value, ink.text, 1);
		if (selected.value) this.outline(geometry, selected.value, ink.accent, 3);
		this.paintRuler(geometry, ink, times, step);
		if (geometry.pinnedTop > RULER) this.paintSteps(geometry, this.state.timeline.steps, RULER, STEPS, ink);
		if (range.value) this.paintRange(geometry, range.value, ink);
		if (range.value && this.state.rangeTracks.value) this.paintTracks(geometry, range.value, this.state.rangeTracks.value, ink);
		this.paintMarks(geometry, ink);
		if (geometry.bodyTop > geometry.pinnedTop) {
			this.context.fillStyle = ink.strong;
			this.context.fillRect(0, geometry.bodyTop - 1, geometry.width, 1);
		}
	}

	/** Clips drawing to the area below a line: below ruler and steps, or below pinned tracks. */
	private below(geometry: Geometry, top: number, draw: () => void): void {
		this.context.save();
		this.context.beginPath();
		this.context.rect(0, top, geometry.width, geometry.height - top);
		this.context.clip();
		draw();
		this.context.restore();
	}

	private paintRuler(geometry: Geometry, ink: Ink, times: number[], step: number): void {
		const { context } = this;
		context.fillStyle = ink.surface;
		context.fillRect(0, 0, geometry.width, RULER);
		context.font = SMALL_FONT;
		context.textBaseline = "middle";
		for (const time of times) {
			const x = Math.round(geometry.x(time));
			context.fillStyle = ink.strong;
			context.fillRect(x, RULER - 7, 1, 7);
			context.fillStyle = ink.soft;
			context.fillText(tickLabel(time, step), x + 4, RULER / 2);
		}
		context.fillStyle = ink.line;
		context.fillRect(0, RULER - 1, geometry.width, 1);
	}

	/** Draws into a line of this height, in the times of the steps. */
	private paintSteps(geometry: Geometry, steps: readonly Step[], top: number, height: number, ink: Ink): void {
		const { context } = this;
		context.fillStyle = ink.surface;
		context.fillRect(0, top, geometry.width, height);
		let painted = -1;
		for (let i = firstEnding(steps, geometry.span.from); i < steps.length; i++) {
			const each = steps[i]!;
			if (each.start_ns > geometry.span.to) break;
			const left = Math.max(geometry.x(each.start_ns), -1);
			const right = Math.min(geometry.x(each.end_ns), geometry.width + 1);
			if (right - painted < 0.5) continue; // more steps than pixels
			painted = right;
			context.fillStyle = i % 2 === 0 ? ink.step : ink.raised;
			context.fillRect(left, top + 1, Math.max(right - left - 1, 1), height - 3);
			const text = this.fitter.fit(each.name.replace(/^ProfilerStep#/, "step "), right - left - 8);
			context.fillStyle = ink.text;
			if (right - left > 24) context.fillText(text, Math.max(left, 0) + 4, top + height / 2);
		}
		context.fillStyle = ink.line;
		context.fillRect(0, top + height - 1, geometry.width, 1);
	}

	private paintRange(geometry: Geometry, range: Span, ink: Ink): void {
		const { context } = this;
		const left = geometry.x(Math.min(range.from, range.to));
		const right = geometry.x(Math.max(range.from, range.to));
		context.fillStyle = ink.accent;
		if (!this.state.rangeTracks.value) {
			context.globalAlpha = 0.16;
			context.fillRect(left, RULER, right - left, geometry.height - RULER);
			context.globalAlpha = 1;
		}
		context.fillRect(left, 0, 1, geometry.height);
		context.fillRect(right, 0, 1, geometry.height);
		this.flag(formatNs(Math.abs(range.to - range.from)), (Math.max(left, 0) + Math.min(right, geometry.width)) / 2, geometry, ink);
	}

	/** The range, if it covers only some tracks. */
	private paintTracks(geometry: Geometry, range: Span, tracks: readonly number[], ink: Ink): void {
		const { context } = this;
		const left = geometry.x(range.from);
		for (const { y, item, clipTop, clipBottom } of geometry.visible()) {
			if (item.type !== "track" || !tracks.includes(item.track.id)) continue;
			const top = Math.max(y, clipTop);
			const height = Math.min(y + item.height, clipBottom) - top;
			context.globalAlpha = 0.16;
			context.fillStyle = ink.accent;
			context.fillRect(left, top, geometry.x(range.to) - left, height);
			context.globalAlpha = 1;
			context.strokeStyle = ink.accent;
			context.lineWidth = 1;
			context.strokeRect(left + 0.5, top + 0.5, geometry.x(range.to) - left, height - 1);
		}
	}

	/** A text on the ruler, centred at x as far as there is room. */
	private flag(text: string, x: number, geometry: Geometry, ink: Ink): void {
		const { context } = this;
		context.font = `600 ${SMALL_FONT}`;
		const width = context.measureText(text).width + 12;
		const left = Math.min(Math.max(x - width / 2, 0), geometry.width - width);
		context.fillStyle = ink.accentSoft;
		context.beginPath();
		context.roundRect(left, 4, width, RULER - 8, 4);
		context.fill();
		context.fillStyle = ink.text;
		context.fillText(text, left + 6, RULER / 2);
		context.font = SMALL_FONT;
	}

	private paintMarks(geometry: Geometry, ink: Ink): void {
		const { context } = this;
		this.state.marks.value.forEach((time, i) => {
			const x = Math.round(geometry.x(time));
			if (x < -20 || x > geometry.width + 20) return;
			context.fillStyle = ink.mark;
			context.fillRect(x, 0, 1, geometry.height);
			context.beginPath();
			context.moveTo(x, 2);
			context.lineTo(x + 16, 2);
			context.lineTo(x + 12, 8.5);
			context.lineTo(x + 16, 15);
			context.lineTo(x, 15);
			context.fill();
			context.fillStyle = "#14171d";
			context.fillText(String(i + 1), x + 3, 9);
			const note = this.state.notes.value.get(time);
			if (note) this.flag(note, x + 22 + context.measureText(note).width / 2, geometry, ink);
		});
	}

	private outline(geometry: Geometry, picked: Picked, color: string, width: number): void {
		const line = geometry.line(picked.track, picked.depth);
		if (!line) return;
		this.context.save();
		this.context.beginPath();
		const top = line.pinned ? geometry.pinnedTop : geometry.bodyTop;
		this.context.rect(0, top, geometry.width, geometry.height - top);
		this.context.clip();
		const left = Math.max(geometry.x(picked.start), -4);
		const right = Math.min(geometry.x(picked.end), geometry.width + 4);
		this.context.strokeStyle = color;
		this.context.lineWidth = width;
		this.context.strokeRect(left - 0.5, line.top - 0.5, Math.max(right - left, 2), Math.max(line.height - 1, 2));
		this.context.restore();
	}

	/** The same collective operation in one of the parts. */
	private paintTogether(geometry: Geometry, place: Place, ink: Ink): void {
		const picked = pickedOf(this.state, place);
		if (picked) this.outline(geometry, picked, ink.accent, 2);
	}

	private arrow(geometry: Geometry, flow: Flow, color: string, width: number): void {
		const from = middleOf(geometry, flow.from.track, this.state.depthOf(flow.from));
		const to = middleOf(geometry, flow.to.track, this.state.depthOf(flow.to));
		if (!from || !to) return;
		const { context } = this;
		const x0 = geometry.x(arrowStart(flow, geometry.nsPerPixel));
		const x1 = geometry.x(flow.to.start_ns);
		if (Math.max(x0, x1) < 0 || Math.min(x0, x1) > geometry.width) return;
		const bend = Math.max(Math.abs(x1 - x0) / 2, 18);
		context.strokeStyle = color;
		context.fillStyle = color;
		context.lineWidth = width;
		context.beginPath();
		context.moveTo(x0, from);
		context.bezierCurveTo(x0 + bend, from, x1 - bend, to, x1 - 4, to);
		context.stroke();
		context.beginPath();
		context.moveTo(x1, to);
		context.lineTo(x1 - 7, to - 4);
		context.lineTo(x1 - 7, to + 4);
		context.fill();
	}

	private paintPath(geometry: Geometry, path: CriticalPathReply, ink: Ink): void {
		const { context } = this;
		context.lineWidth = 2;
		context.strokeStyle = ink.bad;
		context.fillStyle = ink.bad;
		context.beginPath();
		let last: { x: number; y: number } | undefined;
		const { segments } = path;
		for (let i = firstEnding(segments, geometry.span.from); i < segments.length; i++) {
			const each = segments[i]!;
			if (each.start_ns > geometry.span.to) break;
			const depth = this.state.depthOf(each);
			const line = each.track === null || depth === null ? undefined : geometry.line(each.track, depth);
			if (!line) continue;
			const left = geometry.x(each.start_ns);
			const right = geometry.x(each.end_ns);
			const y = line.top + line.height - 2;
			// Segments within one pixel of the previous line are skipped.
			if (last?.y === y && right - last.x < 0.5) continue;
			if (last && Math.abs(left - last.x) < geometry.width) {
				context.moveTo(last.x, last.y);
				context.lineTo(left, y);
			}
			context.moveTo(left, y);
			context.lineTo(Math.max(right, left + 1), y);
			last = { x: right, y };
		}
		context.stroke();
	}
}

/** Arrows that leave the window say little, and cross what is in it. */
function inWindow({ from, to }: Span, flow: Flow): boolean {
	return Math.min(flow.from.start_ns, flow.to.start_ns) >= from && Math.max(flow.from.start_ns, flow.to.start_ns) <= to;
}

function middleOf(geometry: Geometry, track: number | null, depth: number | null): number | undefined {
	if (track === null || depth === null) return undefined;
	const line = geometry.line(track, depth);
	return line && line.top + line.height / 2;
}

/** Returns the first element, in order of time, that ends after a time. */
function firstEnding(list: readonly { end_ns: number }[], time: number): number {
	let low = 0;
	let high = list.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (list[middle]!.end_ns < time) low = middle + 1;
		else high = middle;
	}
	return low;
}
