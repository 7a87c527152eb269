// SPDX-License-Identifier: Apache-2.0
// Ways from a figure to its place: in the timeline, and in the program.
import { hosted, openInHost } from "../app/host";
import { routeHref } from "../app/route";

/** A place in the timeline: a stretch in ns since the origin, an event by its row, or all events of a name. */
export interface Place {
	from?: number;
	to?: number;
	row?: number;
	find?: string;
}

export function timelineHref(trace: string, place: Place): string {
	const { from, to, row, find } = place;
	return routeHref("timeline", trace, { from, to, event: row, q: find });
}

/** The timelines of two traces below one another, aligned step by step. */
export function timelinesHref(first: string, other: string): string {
	return routeHref("timeline", first, { with: other, align: "step" });
}

export function sourceHref(trace: string, file: string, line?: number | null): string {
	return routeHref("source", trace, { file, line: line ?? undefined });
}

/** "train.py:12", which leads to that line: in the view of the source, or in the editor that the viewer is shown by. */
export function SourceLink({ trace, file, line }: { trace: string; file: string; line: number | null }) {
	const openThere = (event: Event) => {
		if (!hosted.value) return;
		event.preventDefault();
		openInHost(file, line);
	};
	return (
		<a class="source-link" href={sourceHref(trace, file, line)} title={line === null ? file : `${file}:${line}`} onClick={openThere}>
			{baseName(file)}
			{line !== null && `:${line}`}
		</a>
	);
}

export function TimelineLink({ trace, place, children }: { trace: string; place: Place; children: preact.ComponentChildren }) {
	return (
		<a class="place-link" href={timelineHref(trace, place)}>
			{children}
		</a>
	);
}

export function baseName(path: string): string {
	return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}
