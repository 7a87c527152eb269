// SPDX-License-Identifier: Apache-2.0
//
// Progress of the server in reading traces. A trace of several gigabytes takes a while.
import { useEffect } from "preact/hooks";
import { askForTraces, beingRead } from "../app/traces";
import type { TraceEntry } from "../data/api";
import type { DataSource } from "../data/source";
import { formatBytes, formatCount } from "../format/units";

/** A request that takes this long may be waiting for a trace to be read. */
const LONG_MS = 300;

/** While this is mounted, the list of traces reports progress. */
export function useProgress(): void {
	useEffect(() => {
		const timer = setTimeout(askForTraces, LONG_MS);
		return () => clearTimeout(timer);
	}, []);
}

/** Makes the server read a trace, since nothing can be shown before. */
export function Reading({ source, trace }: { source: DataSource; trace: TraceEntry }) {
	useEffect(() => {
		const off = new AbortController();
		// The reply arrives once the trace has been read. If it cannot be read, the list has the reason.
		source.json(`traces/${trace.id}/info`, {}, off.signal).then(askForTraces, () => {
			if (!off.signal.aborted) askForTraces();
		});
		return () => off.abort();
	}, [source, trace.id]);
	useProgress();
	const others = beingRead.value.filter((each) => each.id !== trace.id);
	return (
		<div class="note">
			<p role="status">Loading the trace … The view opens when it is loaded.</p>
			<ReadingBars traces={[trace, ...others]} />
		</div>
	);
}

/** Limit on the displayed traces. */
const MOST = 8;

export function ReadingBars({ traces }: { traces: readonly TraceEntry[] }) {
	if (traces.length === 0) return null;
	return (
		<ul class="reading">
			{traces.slice(0, MOST).map((trace) => (
				<li key={trace.id}>
					<span class="name">{trace.name}</span>
					<progress aria-label={`Reading ${trace.name}`} max={1} {...shareOf(trace)} />
					<span class="figures">{tellProgress(trace)}</span>
				</li>
			))}
			{traces.length > MOST && <li>{`and ${traces.length - MOST} more`}</li>}
		</ul>
	);
}

/** Without a value the bar is indeterminate. */
function shareOf({ progress }: TraceEntry): { value?: number } {
	const share = progress?.share ?? null;
	return share === null ? {} : { value: share };
}

/** Returns the progress in words. */
export function tellProgress({ progress, bytes }: TraceEntry): string {
	if (!progress) return "waits";
	const events = `${formatCount(progress.events)} events`;
	if (progress.share === 1) return `read completely; sorting ${events}`;
	const parts = progress.share === null ? [formatBytes(progress.bytes)] : [`${Math.floor(progress.share * 100)} %`, `${formatBytes(progress.bytes)} of ${formatBytes(bytes)}`];
	parts.push(events);
	if (progress.notes > 0) parts.push(`${formatCount(progress.notes)} ${progress.notes === 1 ? "note" : "notes"}`);
	return parts.join(" · ");
}
