// SPDX-License-Identifier: Apache-2.0
// Search: all hits of a text, and the one after or before.
import { isAbort } from "../data/source";
import type { HitsReply, Place } from "./api";
import type { TimelineState } from "./state";

/** Bins of the minimap's marks. */
const BINS = 1024;
const LAST_ROW = 0xfffffffe;

function argumentsOf(state: TimelineState): { arguments?: boolean } {
	return state.inArguments.value ? { arguments: true } : {};
}

export async function search(state: TimelineState, signal: AbortSignal): Promise<void> {
	const q = state.query.value;
	if (q === "") {
		state.hits.value = undefined;
		return;
	}
	try {
		const reply = await state.source.json<HitsReply>(
			`${state.address}/timeline/search`,
			{ q, limit: 1, bins: BINS, ...argumentsOf(state) },
			signal,
		);
		if (state.query.value === q) state.hits.value = reply;
	} catch (error) {
		if (isAbort(error)) return;
		state.hits.value = { total: 0, names: [], hits: [], bins: null };
	}
}

/** The hit after (or before) the event that is selected, or in the window; at the end, from the other end again. */
export async function neighbourHit(state: TimelineState, forward: boolean): Promise<Place | undefined> {
	const q = state.query.value;
	if (q === "") return undefined;
	const first = async (query: Record<string, number>): Promise<Place | undefined> => {
		const reply = await state.source.json<HitsReply>(`${state.address}/timeline/search`, { q, limit: 1, ...argumentsOf(state), ...query });
		return reply.hits[0];
	};
	const selected = state.selected.value;
	const around = Math.floor(state.span.value.from);
	if (forward) return (await first(selected ? { after: selected.row } : { from: around })) ?? (await first({}));
	return (await first(selected ? { before: selected.row } : { before: LAST_ROW, to: around })) ?? first({ before: LAST_ROW });
}

/** Which of the hits begins at a moment, from 1. */
export async function hitNumber(state: TimelineState, start: number): Promise<number> {
	if (start === 0) return 1;
	const query = { q: state.query.value, limit: 1, to: start, ...argumentsOf(state) };
	const reply = await state.source.json<HitsReply>(`${state.address}/timeline/search`, query);
	return reply.total + 1;
}
