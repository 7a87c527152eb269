// SPDX-License-Identifier: Apache-2.0
// How far the server has come with reading traces. A trace of some gigabytes takes a while.
import { useEffect } from "preact/hooks";
import { askForTraces, beingRead } from "../app/traces";
import type { TraceEntry } from "../data/api";
import type { DataSource } from "../data/source";
import { formatBytes, formatCount } from "../format/units";

/** What takes so long may wait for a trace to be read. */
const LONG_MS = 300;

/** While this is on the screen, the list of traces is to tell of those that are read. */
export function useProgress(): void {
	useEffect(() => {
		const timer = setTimeout(askForTraces, LONG_MS);
		return () => clearTimeout(timer);
	}, []);
}

/** Has a trace read that nothing can be shown of before. */
export function Reading({ source, trace }: { source: DataSource; trace: TraceEntry }) {
	useEffect(() => {
		const off = new AbortController();
		// It is answered when the trace is there. If it cannot be read, the list says why.
		source.json(`traces/${trace.id}/info`, {}, off.signal).then(askForTraces, () => {
			if (!off.signal.aborted) askForTraces();
		});
		return () => off.abort();
	}, [source, trace.id]);
	useProgress();
	const others = beingRead.value.filter((each) => each.id !== trace.id);
	return (
		<div class="note">
			<p role="status">Loading the trace … What it shows comes up here by itself.</p>
			<ReadingBars traces={[trace, ...others]} />
		</div>
	);
}

/** As many as are worth a look. */
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

/** Without a value the bar says that it takes its time. */
function shareOf({ progress }: TraceEntry): { value?: number } {
	const share = progress?.share ?? null;
	return share === null ? {} : { value: share };
}

/** Progress in words. */
export function tellProgress({ progress, bytes }: TraceEntry): string {
	if (!progress) return "waits";
	const events = `${formatCount(progress.events)} events`;
	if (progress.share === 1) return `all read; ${events} are put in order`;
	const parts = progress.share === null ? [formatBytes(progress.bytes)] : [`${Math.floor(progress.share * 100)} %`, `${formatBytes(progress.bytes)} of ${formatBytes(bytes)}`];
	parts.push(events);
	if (progress.notes > 0) parts.push(`${formatCount(progress.notes)} ${progress.notes === 1 ? "note" : "notes"}`);
	return parts.join(" · ");
}
