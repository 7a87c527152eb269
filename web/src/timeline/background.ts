// SPDX-License-Identifier: Apache-2.0
// What is asked for because something else changed: hits of a search, arrows, the critical path.
import { effect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchReply } from "../data/reply";
import { isAbort } from "../data/source";
import type { CriticalPathReply, FlowsReply } from "./api";
import { fetchEvent } from "./choose";
import { search } from "./find";
import type { TimelineState } from "./state";
import { follow } from "./follow";

const TYPING_MS = 120;
const SETTLED_MS = 150;
const MOST_FLOWS = 400;

export function criticalPath(state: TimelineState): string {
	return `${state.address}/timeline/critical-path`;
}

export function useBackground(state: TimelineState): void {
	useEffect(() => {
		const stops = [
			effect(() => {
				follow(state.query, state.inArguments);
				return soon(TYPING_MS, (signal) => search(state, signal));
			}),
			effect(() => {
				const row = state.selected.value?.row;
				state.links.value = [];
				if (row === undefined) return;
				return soon(0, async (signal) => {
					const { links } = await fetchEvent(state, row);
					if (!signal.aborted) state.links.value = links;
				});
			}),
			effect(() => {
				const { from, to } = state.span.value;
				if (!state.showFlows.value) {
					state.flows.value = [];
					return;
				}
				const query = { from: Math.floor(from), to: Math.ceil(to), limit: MOST_FLOWS };
				return soon(SETTLED_MS, async (signal) => {
					const reply = await state.source.json<FlowsReply>(`${state.address}/timeline/flows`, query, signal);
					state.flows.value = reply.flows;
				});
			}),
			effect(() => {
				if (!state.showPath.value) return;
				return soon(0, async () => {
					state.path.value = await fetchReply<CriticalPathReply>(state.source, criticalPath(state));
				});
			}),
		];
		return () => {
			for (const stop of stops) stop();
		};
	}, [state]);
}

/** Does something after a while, unless it is called off. What cannot be had (in a report) is left out of the picture. */
function soon(ms: number, act: (signal: AbortSignal) => Promise<void>): () => void {
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
