// SPDX-License-Identifier: Apache-2.0
//
// Positions of times and lines on the canvas, in CSS pixels. From top to bottom: the ruler, the steps, pinned tracks,
// and the rest, which scrolls.
import { type Item, type Layout, visibleItems } from "./layout";
import type { Span } from "./viewport";

export const RULER = 26;
export const STEPS = 22;

export interface Placed {
	item: Item;
	/** The top of the item on the canvas. */
	y: number;
	/** The part of the canvas that it may paint on. */
	clipTop: number;
	clipBottom: number;
}

export class Geometry {
	readonly stepsTop = RULER;
	readonly pinnedTop: number;
	readonly bodyTop: number;
	private readonly perNs: number;
	private lines: ReturnType<typeof linesOf> | undefined;

	constructor(
		readonly span: Span,
		readonly width: number,
		readonly height: number,
		readonly layout: Layout,
		readonly scrollTop: number,
		private readonly hasSteps: boolean,
	) {
		this.perNs = width / (span.to - span.from);
		this.pinnedTop = RULER + (hasSteps ? STEPS : 0);
		// Pinned tracks never take more than half of the height.
		this.bodyTop = this.pinnedTop + Math.min(layout.pinnedHeight, (height - this.pinnedTop) / 2);
	}

	/** Returns the geometry in the times of a part, which appear later by `shift`. */
	of(shift: number): Geometry {
		if (shift === 0) return this;
		const { span, width, height, layout, scrollTop } = this;
		return new Geometry({ from: span.from - shift, to: span.to - shift }, width, height, layout, scrollTop, this.hasSteps);
	}

	x(time: number): number {
		return (time - this.span.from) * this.perNs;
	}

	time(x: number): number {
		return this.span.from + x / this.perNs;
	}

	get nsPerPixel(): number {
		return 1 / this.perNs;
	}

	/** Returns all visible items, from top to bottom. */
	visible(): Placed[] {
		const { bodyTop, height, pinnedTop, scrollTop } = this;
		const pinned = visibleItems(this.layout.pinned, 0, bodyTop - pinnedTop).map((item) => ({
			item,
			y: pinnedTop + item.y,
			clipTop: pinnedTop,
			clipBottom: bodyTop,
		}));
		const scrolled = visibleItems(this.layout.items, scrollTop, scrollTop + height - bodyTop).map((item) => ({
			item,
			y: bodyTop + item.y - scrollTop,
			clipTop: bodyTop,
			clipBottom: height,
		}));
		return [...pinned, ...scrolled];
	}

	/** Returns the visible titles of parts. */
	parts(): { item: Item & { type: "part" }; y: number; height: number }[] {
		const { bodyTop, height, scrollTop } = this;
		return visibleItems(this.layout.items, scrollTop, scrollTop + height - bodyTop).flatMap((item) =>
			item.type === "part" ? [{ item, y: bodyTop + item.y - scrollTop, height: item.height }] : [],
		);
	}

	/** Returns the position of a depth of a track, which may be outside the visible area; undefined if the track has
	 * no line. */
	line(track: number, depth: number): { top: number; height: number; pinned: boolean } | undefined {
		this.lines ??= linesOf(this.layout);
		const { item, pinned } = this.lines.get(track) ?? {};
		if (!item) return undefined;
		const top = pinned ? this.pinnedTop + item.y : this.bodyTop + item.y - this.scrollTop;
		return { top: top + depth * item.line, height: item.line, pinned: pinned === true };
	}

	/** Returns the item at a height. */
	at(y: number): Placed | undefined {
		return this.visible().find((placed) => y >= Math.max(placed.y, placed.clipTop) &&
			y < Math.min(placed.y + placed.item.height, placed.clipBottom));
	}
}

type TrackItem = Item & { type: "track" };

/** Returns the item of each track; for a pinned track the pinned item. */
function linesOf(layout: Layout): Map<number, { item: TrackItem; pinned: boolean }> {
	const lines = new Map<number, { item: TrackItem; pinned: boolean }>();
	for (const [items, pinned] of [[layout.items, false], [layout.pinned, true]] as const) {
		for (const item of items) if (item.type === "track") lines.set(item.track.id, { item, pinned });
	}
	return lines;
}

interface Ends {
	start_ns: number;
	end_ns: number;
}

/**
 * Returns the time at which the arrow of a link starts: the end of the causing event, so that it does not cross the event's
 * name; or if the effect starts before that, inside the event, at most a little after its start.
 */
export function arrowStart({ from, to }: { from: Ends; to: Pick<Ends, "start_ns"> }, nsPerPixel: number): number {
	return to.start_ns >= from.end_ns ? from.end_ns : Math.min(to.start_ns, from.start_ns + 8 * nsPerPixel);
}
