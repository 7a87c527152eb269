// SPDX-License-Identifier: Apache-2.0
//
// Mouse, touch and keys. Dragging moves the picture; with Shift, or if the mode says so, it selects a range. The wheel
// scrolls, and with Ctrl zooms. Two fingers zoom. W, A, S, D and the arrow keys work as in other timelines.
import { RULER } from "./geometry";
import type { Stage } from "./stage";
import type { Picked, TimelineState } from "./state";
import { panSpan, type Span, zoomSpan } from "./viewport";

export interface Actions {
	select(picked: Picked | undefined): void;
	/** Zooms to an event. */
	focus(picked: Picked): void;
	/** Selects the step of a part. */
	selectStep(x: number, part: number): void;
	neighbour(way: "previous" | "next" | "parent" | "child"): void;
	nextHit: (forward: boolean) => void;
	search(): void;
	/** Makes keys act on the tracks again. */
	tracks(): void;
	help(): void;
	mark(time: number): void;
	fit(): void;
}

const CLICK_PIXELS = 4;
const SNAP_PIXELS = 5;
const ZOOM_KEY = 1.35;
const PAN_KEY = 0.18;
const LINE_SCROLL = 54;

interface Finger {
	x: number;
	y: number;
}

interface Drag {
	mode: "move" | "range";
	x: number;
	y: number;
	span: Span;
	scrollTop: number;
	moved: boolean;
}

export class Input {
	private readonly fingers = new Map<number, Finger>();
	private drag: Drag | undefined;
	private pinch: { span: Span; distance: number; time: number } | undefined;
	private pointer: Finger = { x: 0, y: 0 };
	private readonly off = new AbortController();

	constructor(
		private readonly canvas: HTMLCanvasElement,
		private readonly stage: Stage,
		private readonly state: TimelineState,
		private readonly actions: Actions,
	) {
		const { signal } = this.off;
		canvas.addEventListener("pointerdown", (event) => this.down(event), { signal });
		canvas.addEventListener("pointermove", (event) => this.move(event), { signal });
		canvas.addEventListener("pointerup", (event) => this.up(event), { signal });
		canvas.addEventListener("pointercancel", (event) => this.up(event), { signal });
		canvas.addEventListener("pointerleave", () => (state.hover.value = undefined), { signal });
		canvas.addEventListener("dblclick", (event) => this.doubleClick(event), { signal });
		canvas.addEventListener("wheel", (event) => this.wheel(event), { signal, passive: false });
		canvas.addEventListener("keydown", (event) => this.key(event), { signal });
	}

	close(): void {
		this.off.abort();
	}

	private place(event: MouseEvent): Finger {
		const box = this.canvas.getBoundingClientRect();
		return { x: event.clientX - box.left, y: event.clientY - box.top };
	}

	private down(event: PointerEvent): void {
		if (event.button > 1) return;
		const at = this.place(event);
		this.canvas.setPointerCapture(event.pointerId);
		this.canvas.focus({ preventScroll: true });
		this.fingers.set(event.pointerId, at);
		if (this.fingers.size === 2) {
			this.beginPinch();
			return;
		}
		const ranges = event.shiftKey || at.y < RULER || this.state.dragMode.value === "range";
		this.drag = {
			...at,
			mode: ranges && event.button === 0 ? "range" : "move",
			span: this.stage.target,
			scrollTop: this.state.scrollTop.value,
			moved: false,
		};
	}

	private move(event: PointerEvent): void {
		const at = this.place(event);
		this.pointer = at;
		if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, at);
		if (this.pinch) this.movePinch();
		else if (this.drag) this.moveDrag(at);
		else this.hover(at);
	}

	private up(event: PointerEvent): void {
		this.fingers.delete(event.pointerId);
		this.pinch = undefined;
		const { drag } = this;
		this.drag = undefined;
		if (!drag || drag.moved || event.type === "pointercancel") return;
		const at = this.place(event);
		const { geometry } = this.stage;
		const item = geometry?.at(at.y)?.item;
		if (geometry && at.y >= RULER && at.y < geometry.pinnedTop) this.actions.selectStep(at.x, 0);
		else if (item?.type === "part") this.actions.selectStep(at.x, item.part.number);
		else if (at.y >= RULER) this.actions.select(this.stage.pick(at.x, at.y));
		if (drag.mode === "range") this.state.range.value = undefined;
	}

	private moveDrag(at: Finger): void {
		const { drag } = this;
		const { geometry } = this.stage;
		if (!drag || !geometry) return;
		if (!drag.moved && Math.hypot(at.x - drag.x, at.y - drag.y) < CLICK_PIXELS) return;
		drag.moved = true;
		this.state.hover.value = undefined;
		if (drag.mode === "range") {
			const from = this.snap(drag.x, drag.y);
			const to = this.snap(at.x, at.y);
			this.state.range.value = { from: Math.min(from, to), to: Math.max(from, to) };
			// A range started on the ruler covers all tracks, else those that the pointer passed.
			this.state.rangeTracks.value = drag.y < geometry.pinnedTop ? undefined : this.stage.tracksBetween(Math.min(drag.y, at.y), Math.max(drag.y, at.y));
			return;
		}
		this.stage.show(panSpan(drag.span, (drag.x - at.x) / geometry.width, this.state.whole), false);
		this.scrollTo(drag.scrollTop + drag.y - at.y);
	}

	/** Returns the time of a point, or that of an event's start or end close to it. */
	private snap(x: number, y: number): number {
		const { geometry } = this.stage;
		if (!geometry) return 0;
		const time = geometry.time(Math.min(Math.max(x, 0), geometry.width));
		const picked = this.stage.pick(x, y);
		for (const edge of picked ? [picked.start, picked.end] : []) {
			if (Math.abs(geometry.x(edge) - x) <= SNAP_PIXELS) return edge;
		}
		return Math.round(time);
	}

	private hover(at: Finger): void {
		const picked = this.stage.pick(at.x, at.y);
		const had = this.state.hover.value;
		if (picked?.row !== had?.row || picked?.start !== had?.start || picked?.depth !== had?.depth) {
			this.state.hover.value = picked;
		}
		this.canvas.style.cursor = picked ? "pointer" : "default";
	}

	private beginPinch(): void {
		const [a, b] = [...this.fingers.values()] as [Finger, Finger];
		const { geometry } = this.stage;
		this.drag = undefined;
		if (!geometry) return;
		this.pinch = {
			span: this.stage.target,
			distance: Math.max(Math.abs(a.x - b.x), 10),
			time: geometry.time((a.x + b.x) / 2),
		};
	}

	/** The time between the fingers stays between them. */
	private movePinch(): void {
		const [a, b] = [...this.fingers.values()];
		const { geometry } = this.stage;
		if (!this.pinch || !a || !b || !geometry) return;
		const { span, distance, time } = this.pinch;
		const zoomed = zoomSpan(span, time, distance / Math.max(Math.abs(a.x - b.x), 10), this.state.whole);
		const length = zoomed.to - zoomed.from;
		const from = time - ((a.x + b.x) / 2 / geometry.width) * length;
		this.stage.show({ from, to: from + length }, false);
	}

	private doubleClick(event: MouseEvent): void {
		const at = this.place(event);
		const picked = this.stage.pick(at.x, at.y);
		if (picked) this.actions.focus(picked);
	}

	private wheel(event: WheelEvent): void {
		event.preventDefault();
		const { geometry } = this.stage;
		if (!geometry) return;
		const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
		const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
		if (event.ctrlKey || event.metaKey) {
			const time = geometry.time(this.place(event).x);
			this.stage.show(zoomSpan(this.state.span.value, time, Math.exp(dy * 0.004), this.state.whole), false);
			return;
		}
		const sideways = event.shiftKey && dx === 0 ? dy : dx;
		if (sideways !== 0) {
			this.stage.show(panSpan(this.state.span.value, sideways / geometry.width, this.state.whole), false);
		}
		if (!event.shiftKey && dy !== 0) this.scrollTo(this.state.scrollTop.value + dy);
	}

	scrollTo(top: number): void {
		const { geometry } = this.stage;
		if (!geometry) return;
		const most = Math.max(geometry.layout.height - (geometry.height - geometry.bodyTop), 0);
		this.state.scrollTop.value = Math.min(Math.max(top, 0), most);
	}

	private key(event: KeyboardEvent): void {
		if (event.ctrlKey || event.metaKey) return;
		if (!this.act(event)) return;
		event.preventDefault();
		event.stopPropagation();
	}

	/** Performs the action of a key. Returns false for a key without an action. */
	private act(event: KeyboardEvent): boolean {
		const { actions, stage, state } = this;
		const zoom = (factor: number): void => stage.show(zoomSpan(stage.target, this.middle(), factor, state.whole));
		const pan = (share: number): void => stage.show(panSpan(stage.target, share, state.whole));
		const keys: Record<string, () => void> = {
			w: () => zoom(1 / ZOOM_KEY),
			"+": () => zoom(1 / ZOOM_KEY),
			"=": () => zoom(1 / ZOOM_KEY),
			s: () => zoom(ZOOM_KEY),
			"-": () => zoom(ZOOM_KEY),
			a: () => pan(-PAN_KEY),
			d: () => pan(PAN_KEY),
			ArrowLeft: () => (event.altKey ? actions.neighbour("previous") : pan(-PAN_KEY)),
			ArrowRight: () => (event.altKey ? actions.neighbour("next") : pan(PAN_KEY)),
			ArrowUp: () => (event.altKey ? actions.neighbour("parent") : this.scrollTo(state.scrollTop.value - LINE_SCROLL)),
			ArrowDown: () => (event.altKey ? actions.neighbour("child") : this.scrollTo(state.scrollTop.value + LINE_SCROLL)),
			PageUp: () => this.scrollTo(state.scrollTop.value - this.page()),
			PageDown: () => this.scrollTo(state.scrollTop.value + this.page()),
			Home: () => stage.show(state.whole),
			0: () => stage.show(state.whole),
			f: () => actions.fit(),
			m: () => actions.mark(this.pointedTime()),
			n: () => actions.nextHit(!event.shiftKey),
			"/": () => actions.search(),
			"?": () => actions.help(),
			Escape: () => {
				state.range.value = undefined;
				actions.select(undefined);
			},
		};
		const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
		action?.();
		return action !== undefined;
	}

	private page(): number {
		const { geometry } = this.stage;
		return geometry ? geometry.height - geometry.bodyTop - LINE_SCROLL : 0;
	}

	/** Returns the centre of zooming by keys: the selected event if it is visible, else the pointer, else the
	 * middle. */
	private middle(): number {
		const { selected } = this.state;
		const span = this.stage.target;
		const picked = selected.value;
		if (picked) {
			const middle = (Math.max(picked.start, span.from) + Math.min(picked.end, span.to)) / 2;
			if (middle >= span.from && middle <= span.to) return middle;
		}
		return this.pointedTime();
	}

	private pointedTime(): number {
		const { geometry } = this.stage;
		const span = this.stage.target;
		const share = geometry && this.canvas.matches(":hover") ? this.pointer.x / geometry.width : 0.5;
		return span.from + (span.to - span.from) * share;
	}
}
