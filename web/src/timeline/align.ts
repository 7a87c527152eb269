// SPDX-License-Identifier: Apache-2.0
//
// Alignment of several traces: by wall-clock time, by a step, by a collective operation, or by their starts.
import type { DataSource } from "../data/source";
import { fetchReply } from "../data/reply";
import { isWallClock } from "../format/units";
import type { CollectiveReply, Step, TimelineReply } from "./api";
import { partOf, traceOf } from "./parts";
import type { Part } from "./parts";
import type { TimelineState } from "./state";
import { clampSpan, type Span } from "./viewport";

export const ALIGNS = ["clock", "step", "collective", "start"] as const;
export type Align = (typeof ALIGNS)[number];

/** A step that all traces have, with its instance in each of them. */
export interface CommonStep {
	name: string;
	of: Step[];
}

/** Returns steps of the same name, or if there are none, steps with the same index in each trace. */
export function commonSteps(timelines: readonly TimelineReply[]): CommonStep[] {
	const [first, ...others] = timelines.map((each) => each.steps);
	if (!first) return [];
	const named = first.flatMap((step) => {
		const of = [step, ...others.flatMap((steps) => steps.find((each) => each.name === step.name) ?? [])];
		return of.length === timelines.length ? [{ name: shortStep(step), of }] : [];
	});
	if (named.length > 0) return named;
	return first.flatMap((step, i) => {
		const of = [step, ...others.flatMap((steps) => steps[i] ?? [])];
		return of.length === timelines.length ? [{ name: shortStep(step), of }] : [];
	});
}

/** Returns the first step whose duration is nearest to the median; of several ranks, the longest duration counts. */
export function typicalStep(steps: readonly CommonStep[]): CommonStep | undefined {
	const durations = steps.map(({ of }) => Math.max(...of.map((each) => each.end_ns - each.start_ns)));
	const sorted = [...durations].sort((a, b) => a - b);
	const middle = (sorted.length - 1) / 2;
	const median = (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2;
	const distances = durations.map((duration) => Math.abs(duration - median));
	return steps[distances.indexOf(Math.min(...distances))];
}

export function shortStep(step: { name: string }): string {
	return step.name.replace(/^ProfilerStep#/, "");
}

function clockShifts(timelines: readonly TimelineReply[]): number[] | undefined {
	const origins = timelines.map((each) => BigInt(each.origin_ns));
	if (!origins.every((each) => isWallClock(Number(each)))) return undefined;
	return origins.map((each) => Number(each - origins[0]!));
}

/** Aligns by wall-clock time if all traces have it and ran at the same time; else by a step that they share. */
export function alignAtFirst(timelines: readonly TimelineReply[]): Align {
	const shifts = clockShifts(timelines);
	const whole = timelines[0]!.duration_ns;
	const together = shifts?.every((shift, i) => shift < whole && shift + timelines[i]!.duration_ns > 0);
	if (together) return "clock";
	return commonSteps(timelines).length > 0 ? "step" : "start";
}

/** Returns the available alignments. Whether all traces share a collective operation is only known later. */
export function alignsOf(source: DataSource, timelines: readonly TimelineReply[]): Align[] {
	const has: Record<Align, boolean> = {
		clock: clockShifts(timelines) !== undefined,
		step: commonSteps(timelines).length > 0,
		collective: source.kind === "http",
		start: true,
	};
	return ALIGNS.filter((each) => has[each]);
}

/** Returns the shift of each part relative to its own times; undefined if the traces cannot be aligned in this way. */
export async function findShifts(source: DataSource, parts: readonly Part[], align: Align, step: CommonStep | undefined): Promise<number[] | undefined> {
	if (align !== "collective") return shiftsOf(parts.map((each) => each.timeline), align, step);
	const { calls } = await fetchReply<CollectiveReply>(source, `traces/${parts.map(traceOf).join(",")}/timeline/collective`);
	// A collective ends everywhere at the same time. The first place is the call on the host, followed by its
	// kernels, if any.
	const ends = calls.map((places) => Math.max(...(places.length > 1 ? places.slice(1) : places).map((each) => each.end_ns)));
	return ends.every(Number.isFinite) ? ends.map((end) => ends[0]! - end) : undefined;
}

/** Alignments that need no request. */
export function shiftsOf(timelines: readonly TimelineReply[], align: Align, step: CommonStep | undefined): number[] | undefined {
	if (align === "clock") return clockShifts(timelines);
	if (align === "start") return timelines.map(() => 0);
	if (align === "collective") return undefined;
	const { of } = step ?? commonSteps(timelines)[0] ?? {};
	return of?.map((each) => of[0]!.start_ns - each.start_ns);
}

/** Returns the range from the earliest start of a step to its latest end. */
export function stepSpan(state: TimelineState, step: CommonStep): Span {
	const shifts = state.shifts.value;
	return {
		from: Math.min(...step.of.map((each, i) => each.start_ns + shifts[i]!)),
		to: Math.max(...step.of.map((each, i) => each.end_ns + shifts[i]!)),
	};
}

/** Sets the range to a step. Parts that are aligned by a step begin it together; undefined: no range. */
export function chooseStep(state: TimelineState, step: CommonStep | undefined): void {
	state.step.value = step;
	if (step && state.align.value === "step") shiftParts(state, shiftsOf(state.parts.map((each) => each.timeline), "step", step)!);
	state.rangeTracks.value = undefined;
	state.range.value = step && stepSpan(state, step);
}

/** Moves the parts. The selection moves with its part; the window stays. */
export function shiftParts(state: TimelineState, shifts: readonly number[]): void {
	const before = state.shifts.value;
	if (shifts.every((shift, i) => shift === before[i])) return;
	state.shifts.value = shifts;
	state.hover.value = undefined;
	const picked = state.selected.value;
	if (picked) {
		const by = shifts[partOf(picked.row)]! - before[partOf(picked.row)]!;
		state.selected.value = { ...picked, start: picked.start + by, end: picked.end + by };
	}
	state.span.value = clampSpan(state.span.value, state.whole);
}
