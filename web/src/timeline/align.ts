// SPDX-License-Identifier: Apache-2.0
// How several traces are laid over one another: by the wall clock, by a step, by a collective operation, or by their begins.
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

/** A step that all traces have: it in each of them. */
export interface CommonStep {
	name: string;
	of: Step[];
}

/** Steps of the same name; where there are none, those of the same place among the steps of each. */
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

export function shortStep(step: Step): string {
	return step.name.replace(/^ProfilerStep#/, "");
}

function clockShifts(timelines: readonly TimelineReply[]): number[] | undefined {
	const origins = timelines.map((each) => BigInt(each.origin_ns));
	if (!origins.every((each) => isWallClock(Number(each)))) return undefined;
	return origins.map((each) => Number(each - origins[0]!));
}

/** The clock, if all traces have it and ran at the same time; else a step that they share. */
export function alignAtFirst(timelines: readonly TimelineReply[]): Align {
	const shifts = clockShifts(timelines);
	const whole = timelines[0]!.duration_ns;
	const together = shifts?.every((shift, i) => shift < whole && shift + timelines[i]!.duration_ns > 0);
	if (together) return "clock";
	return commonSteps(timelines).length > 0 ? "step" : "start";
}

/** What is offered. Whether all have a collective operation in common is known later. */
export function alignsOf(source: DataSource, timelines: readonly TimelineReply[]): Align[] {
	const has: Record<Align, boolean> = {
		clock: clockShifts(timelines) !== undefined,
		step: commonSteps(timelines).length > 0,
		collective: source.kind === "http",
		start: true,
	};
	return ALIGNS.filter((each) => has[each]);
}

/** How much later the times of each part are than its own; undefined where the traces cannot be aligned so. */
export async function findShifts(source: DataSource, parts: readonly Part[], align: Align, step: CommonStep | undefined): Promise<number[] | undefined> {
	if (align !== "collective") return shiftsOf(parts.map((each) => each.timeline), align, step);
	const { calls } = await fetchReply<CollectiveReply>(source, `traces/${parts.map(traceOf).join(",")}/timeline/collective`);
	// It ends everywhere at once. The first place is the call on the host; its kernels follow, where it has some.
	const ends = calls.map((places) => Math.max(...(places.length > 1 ? places.slice(1) : places).map((each) => each.end_ns)));
	return ends.every(Number.isFinite) ? ends.map((end) => ends[0]! - end) : undefined;
}

/** Those that need no reply. */
export function shiftsOf(timelines: readonly TimelineReply[], align: Align, step: CommonStep | undefined): number[] | undefined {
	if (align === "clock") return clockShifts(timelines);
	if (align === "start") return timelines.map(() => 0);
	if (align === "collective") return undefined;
	const { of } = step ?? commonSteps(timelines)[0] ?? {};
	return of?.map((each) => of[0]!.start_ns - each.start_ns);
}

/** From the first begin of a step to its last end. */
export function stepSpan(state: TimelineState, step: CommonStep): Span {
	const shifts = state.shifts.value;
	return {
		from: Math.min(...step.of.map((each, i) => each.start_ns + shifts[i]!)),
		to: Math.max(...step.of.map((each, i) => each.end_ns + shifts[i]!)),
	};
}

/** Makes a step the range. Parts that are aligned by a step begin it together; undefined: no range. */
export function chooseStep(state: TimelineState, step: CommonStep | undefined): void {
	state.step.value = step;
	if (step && state.align.value === "step") shiftParts(state, shiftsOf(state.parts.map((each) => each.timeline), "step", step)!);
	state.rangeTracks.value = undefined;
	state.range.value = step && stepSpan(state, step);
}

/** Moves the parts. What is selected moves with its part; the window stays. */
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
