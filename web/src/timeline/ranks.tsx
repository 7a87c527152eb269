// SPDX-License-Identifier: Apache-2.0
//
// Selection of the traces in the timeline, their alignment, and the step that begins together in all.
import { signal } from "@preact/signals";
import { go, setParams } from "../app/route";
import type { TraceEntry } from "../data/api";
import type { Distributed } from "../data/replies";
import { fetchReply } from "../data/reply";
import type { DataSource } from "../data/source";
import { earlyRank, latestRank } from "../widgets/late_rank";
import { alignsOf, type Align } from "./align";
import type { Noun, TimelineState } from "./state";

/** More do not fit on a screen. */
export const MOST_PARTS = 8;

/** Returns the traces in the address after the first one: "with=ID,ID". */
export function partsOf(trace: TraceEntry, traces: readonly TraceEntry[], others: string): TraceEntry[] {
	const more = others.split(",").flatMap((id) => traces.find((each) => each.id === id && each !== trace && each.state !== "failed") ?? []);
	return [trace, ...new Set(more)].slice(0, MOST_PARTS);
}

/** Parameters of the address that only apply to the current traces, and are removed when these change. */
export const OF_PARTS = { event: undefined, fold: undefined, pin: undefined, tracks: undefined };

/** Stays open while other traces are loaded, so that several can be selected. */
const open = signal(false);

interface Props {
	source: DataSource;
	/** The traces that can be shown together, including the open one. */
	run: readonly TraceEntry[];
	shown: readonly TraceEntry[];
}

export function RankChoice({ source, run, shown }: Props) {
	if (run.length < 2) return null;
	const first = shown[0]!;
	const noun = nounOf(shown);
	const show = (others: readonly TraceEntry[]): void => {
		setParams({ ...OF_PARTS, with: others.map((each) => each.id).join(",") || undefined });
	};
	const flip = (trace: TraceEntry): void => {
		show(shown.includes(trace) ? shown.filter((each) => each !== trace && each !== first) : run.filter((each) => each !== first && (each === trace || shown.includes(each))));
	};
	return (
		<details class="menu" open={open.value} onToggle={(event) => (open.value = event.currentTarget.open)}>
			<summary>{shown.length > 1 ? `${noun}s: ${shown.length} of ${run.length}` : `${noun}s`}</summary>
			<div class="menu-items">
				{noun === "Rank" && (
					<button type="button" onClick={() => void showLate(source, run).catch(() => undefined)}>
						Late and early rank
					</button>
				)}
				{run.length <= MOST_PARTS && (
					<button type="button" onClick={() => show(run.filter((each) => each !== first))}>
						All ranks
					</button>
				)}
				{run.map((each) => (
					<label key={each.id} title={each.path}>
						<input
							type="checkbox"
							checked={shown.includes(each)}
							disabled={each === first || (shown.length >= MOST_PARTS && !shown.includes(each))}
							onChange={() => flip(each)}
						/>{" "}
						{rankTitle(each, run)}
					</label>
				))}
			</div>
		</details>
	);
}

/** Traces that state distinct ranks are called ranks. */
export function nounOf(shown: readonly TraceEntry[]): Noun {
	const ranks = new Set(shown.map((each) => each.rank));
	return !ranks.has(null) && ranks.size === shown.length ? "Rank" : "Trace";
}

/** Returns the worker of a trace, and its rank if the worker's name does not contain it. */
export function rankTitle(trace: TraceEntry, traces: readonly TraceEntry[]): string {
	const shared = traces.some((each) => each !== trace && each.worker === trace.worker);
	const name = shared || trace.worker === "" ? trace.name : trace.worker;
	const elsewhere = shared && traces.some((each) => each !== trace && each.name === trace.name) && trace.run !== "";
	const full = elsewhere ? `${trace.run}/${name}` : name;
	return trace.rank === null || new RegExp(`(?<!\\d)${trace.rank}(?!\\d)`).test(full) ? full : `rank ${trace.rank} (${full})`;
}

/** Opens the rank that waits least, since the others wait for it, with the one that waits longest below it. */
async function showLate(source: DataSource, run: readonly TraceEntry[]): Promise<void> {
	const found = await fetchReply<Distributed | null>(source, `traces/${run.map((each) => each.id).join(",")}/distributed`);
	const wait = found?.wait.all ?? {};
	const workers = found?.workers ?? [];
	const traceOf = (worker: string | undefined) => run.find((each) => each.worker === worker);
	const late = traceOf(latestRank(wait, workers)) ?? run[0]!;
	const early = traceOf(earlyRank(wait, workers)) ?? run.find((each) => each !== late);
	go("timeline", late.id, { with: early?.id });
}

const ALIGN_TITLES: Record<Align, string> = {
	clock: "by clock",
	step: "by step",
	collective: "by first common collective",
	start: "by first event",
};

export function AlignChoice({ state }: { state: TimelineState }) {
	if (!state.several) return null;
	const offered = alignsOf(state.source, state.parts.map((each) => each.timeline));
	return (
		<>
			<label class="tl-color">
				Aligned{" "}
				<select value={state.align.value} onChange={(event) => (state.align.value = event.currentTarget.value as Align)}>
					{offered.map((each) => (
						<option key={each} value={each}>
							{ALIGN_TITLES[each]}
						</option>
					))}
				</select>
			</label>
			{state.alignFailed.value && (
				<span class="tl-hits" role="status">
					No collective operation is in all traces.
				</span>
			)}
		</>
	);
}
