// SPDX-License-Identifier: Apache-2.0
//
// The visible time range, and operations that move it. Times are nanoseconds from the start of the trace, as floating
// point numbers: below 2^53 ns, 104 days, whole nanoseconds are exact.

export interface Span {
	readonly from: number;
	readonly to: number;
}

/** Shorter windows are not useful, and with this limit the arithmetic stays well within the precision of a double. */
const LEAST_NS = 10;

/** Moves a window into the complete range without changing its length if it fits. The complete range may be empty (one
 * instant). */
export function clampSpan(span: Span, whole: Span): Span {
	const most = Math.max(whole.to - whole.from, LEAST_NS);
	const length = Math.min(Math.max(span.to - span.from, LEAST_NS), most);
	const middle = (span.from + span.to) / 2;
	const from = Math.min(Math.max(middle - length / 2, whole.from), whole.from + most - length);
	return { from, to: from + length };
}

/** Makes the window `factor` times as long; the time `at` keeps its position on the screen. */
export function zoomSpan(span: Span, at: number, factor: number, whole: Span): Span {
	const longest = Math.max(whole.to - whole.from, LEAST_NS);
	const length = span.to - span.from;
	const wanted = Math.min(Math.max(length * factor, LEAST_NS), longest);
	const share = length > 0 ? (at - span.from) / length : 0.5;
	const from = at - share * wanted;
	return clampSpan({ from, to: from + wanted }, whole);
}

/** Moves the window by a share of its length. */
export function panSpan(span: Span, share: number, whole: Span): Span {
	const by = (span.to - span.from) * share;
	return clampSpan({ from: span.from + by, to: span.to + by }, whole);
}

/** Returns the window that shows an event: unchanged if the event is well inside, else with a margin around it. */
export function revealSpan(span: Span, event: Span, whole: Span): Span {
	const length = span.to - span.from;
	const duration = event.to - event.from;
	const visible = event.from >= span.from && event.to <= span.to;
	if (visible && duration > length / 200) return span;
	const wanted = duration > length || duration < length / 200 ? Math.max(duration * 8, LEAST_NS * 4) : length;
	const middle = (event.from + event.to) / 2;
	return clampSpan({ from: middle - wanted / 2, to: middle + wanted / 2 }, whole);
}

/** Returns a window with a margin around a range. */
export function fitSpan(span: Span, whole: Span): Span {
	const margin = Math.max((span.to - span.from) * 0.05, LEAST_NS);
	return clampSpan({ from: span.from - margin, to: span.to + margin }, whole);
}

/** Returns the window of an animation between two windows, `share` of the way. The length changes evenly in zoom, not in
 * nanoseconds. */
export function betweenSpans(a: Span, b: Span, share: number): Span {
	const la = a.to - a.from;
	const lb = b.to - b.from;
	const length = la * (lb / la) ** share;
	// The time at the same position in both windows stays there, so that a zoom does not swing.
	const progress = la === lb ? share : (length - la) / (lb - la);
	const from = a.from + (b.from - a.from) * progress;
	return { from, to: from + length };
}
