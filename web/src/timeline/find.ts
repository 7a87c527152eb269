// SPDX-License-Identifier: Apache-2.0
//
// Search: all hits of a text, and the next or previous one. With several parts, those of the first come first.
import { isAbort } from "../data/source";
import type { HitsReply, Place } from "./api";
import { ownNumber, type Part, partOf } from "./parts";
import type { TimelineState } from "./state";

/** Number of bins of the minimap's marks. */
const BINS = 1024;
const LAST_ROW = 0xfffffffe;

type Query = Record<string, number>;

async function ask(state: TimelineState, part: Part, query: Query, signal?: AbortSignal): Promise<HitsReply> {
	const inArguments = state.inArguments.value ? { arguments: true } : {};
	const all = { q: state.query.value, limit: 1, ...inArguments, ...query };
	const reply = await state.source.json<HitsReply>(`${part.address}/timeline/search`, all, signal);
	return state.translator(part).hits(reply);
}

export async function search(state: TimelineState, signal: AbortSignal): Promise<void> {
	const q = state.query.value;
	if (q === "") {
		state.hits.value = undefined;
		return;
	}
	try {
		const hits = await Promise.all(state.parts.map((part) => ask(state, part, { bins: BINS }, signal)));
		if (state.query.value === q) state.hits.value = hits;
	} catch (error) {
		if (isAbort(error)) return;
		state.hits.value = [];
	}
}

/** Returns the number of hits. */
export function hitsOf(state: TimelineState): number {
	return (state.hits.value ?? []).reduce((sum, each) => sum + each.total, 0);
}

/** Returns the hit after (or before) the selected event, or in the window. Wraps around at the end. */
export async function neighbourHit(state: TimelineState, forward: boolean): Promise<Place | undefined> {
	if (state.query.value === "") return undefined;
	const selected = state.selected.value;
	const at = selected ? partOf(selected.row) : forward ? 0 : state.parts.length - 1;
	const first = async (part: Part, query: Query): Promise<Place | undefined> => (await ask(state, part, query)).hits[0];
	const start = (part: Part): Query => {
		const around = Math.max(Math.floor(state.span.value.from - state.shifts.value[part.number]!), 0);
		if (selected) return forward ? { after: ownNumber(selected.row) } : { before: ownNumber(selected.row) };
		return forward ? { from: around } : { before: LAST_ROW, to: around };
	};
	const here = await first(state.parts[at]!, start(state.parts[at]!));
	if (here) return here;
	for (let i = 1; i <= state.parts.length; i++) {
		const next = (at + (forward ? i : -i) + state.parts.length) % state.parts.length;
		const hit = await first(state.parts[next]!, forward ? {} : { before: LAST_ROW });
		if (hit) return hit;
	}
	return undefined;
}

/** Returns the index among the hits, from 1, of an event that begins at this time. */
export async function hitNumber(state: TimelineState, row: number, start: number): Promise<number> {
	const at = partOf(row);
	const before = (state.hits.value ?? []).slice(0, at).reduce((sum, each) => sum + each.total, 0);
	const own = start - state.shiftOf(row);
	return own === 0 ? before + 1 : before + (await ask(state, state.parts[at]!, { to: own })).total + 1;
}
