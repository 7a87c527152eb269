// SPDX-License-Identifier: Apache-2.0
//
// Requests triggered by changes of the state: hits of a search, arrows, the critical path.
import { effect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchReply } from "../data/reply";
import { isAbort } from "../data/source";
import { findShifts, shiftParts } from "./align";
import type { CollectiveReply, CriticalPathReply, FlowsReply, Place } from "./api";
import { fetchEvent } from "./choose";
import { search } from "./find";
import { classOf } from "./palette";
import { ownNumber, type Part, partOf, traceOf } from "./parts";
import type { TimelineState } from "./state";
import { follow } from "./follow";

const TYPING_MS = 120;
const SETTLED_MS = 150;
const MOST_FLOWS = 400;

export function criticalPath(part: Part): string {
	return `${part.address}/timeline/critical-path`;
}

export function useBackground(state: TimelineState): void {
	useEffect(() => {
		const stops = [
			effect(() => {
				follow(state.query, state.inArguments);
				return runAfter(TYPING_MS, (signal) => search(state, signal));
			}),
			effect(() => {
				follow(state.shifts);
				const row = state.selected.value?.row;
				state.links.value = [];
				if (row === undefined) return;
				return runAfter(0, async (signal) => {
					const event = await fetchEvent(state, row);
					if (!signal.aborted) state.links.value = event.links;
				});
			}),
			effect(() => {
				follow(state.shifts);
				const row = state.selected.value?.row;
				state.together.value = [];
				if (row === undefined || !state.several) return;
				return runAfter(0, async (signal) => {
					const together = await fetchTogether(state, row);
					if (!signal.aborted) state.together.value = together;
				});
			}),
			effect(() => {
				const { from, to } = state.span.value;
				if (!state.showFlows.value) {
					state.flows.value = [];
					return;
				}
				return runAfter(SETTLED_MS, async (signal) => {
					const flows = await Promise.all(
						state.parts.map(async (part) => {
							const shift = state.shifts.value[part.number]!;
							if (to < shift) return [];
							const query = { from: Math.floor(from - shift), to: Math.ceil(to - shift), limit: Math.ceil(MOST_FLOWS / state.parts.length) };
							const reply = await state.source.json<FlowsReply>(`${part.address}/timeline/flows`, query, signal);
							return reply.flows.map(state.translator(part).flow);
						}),
					);
					state.flows.value = flows.flat();
				});
			}),
			effect(() => {
				follow(state.shifts);
				if (!state.showPath.value) return;
				return runAfter(0, async (signal) => {
					const paths = await Promise.allSettled(state.parts.map((part) => fetchReply<CriticalPathReply>(state.source, criticalPath(part))));
					if (signal.aborted) return;
					state.paths.value = paths.flatMap((each, i) => (each.status === "fulfilled" ? [state.translator(state.parts[i]!).path(each.value)] : []));
				});
			}),
			effect(() => {
				const align = state.align.value;
				const step = state.step.value;
				if (!state.several) return;
				return runAfter(0, async (signal) => {
					const shifts = await findShifts(state.source, state.parts, align, step);
					if (signal.aborted) return;
					state.alignFailed.value = shifts === undefined;
					if (shifts) shiftParts(state, shifts);
				});
			}),
		];
		return () => {
			for (const stop of stops) stop();
		};
	}, [state]);
}

/** Returns the places of a row's collective operation in all parts. */
async function fetchTogether(state: TimelineState, row: number): Promise<Place[]> {
	const { kind, name } = await fetchEvent(state, row);
	if (classOf(kind, name) !== "communication") return [];
	const at = partOf(row);
	const parts = [state.parts[at]!, ...state.parts.filter((each) => each.number !== at)];
	const path = `traces/${parts.map(traceOf).join(",")}/timeline/collective`;
	const { calls } = await fetchReply<CollectiveReply>(state.source, path, { row: ownNumber(row) });
	await Promise.all(calls.map((places, i) => parts[i]!.names.load(places.map((each) => each.name))));
	return calls.flatMap((places, i) => places.map(state.translator(parts[i]!).place));
}

/** Runs an action after a delay, unless it is cancelled. Unavailable data (in a report) is left out of the picture. */
function runAfter(ms: number, act: (signal: AbortSignal) => Promise<void>): () => void {
	const abort = new AbortController();
	const timer = setTimeout(() => {
		act(abort.signal).catch((error: unknown) => {
			if (!isAbort(error)) console.debug(error);
		});
	}, ms);
	return () => {
		clearTimeout(timer);
		abort.abort();
	};
}
