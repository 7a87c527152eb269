// SPDX-License-Identifier: Apache-2.0
//
// Links from a figure to its place in the timeline, and in the program.
import { hosted, openInHost } from "../app/host";
import { routeHref } from "../app/route";

/** A place in the timeline: a range in ns since the origin, an event by its row, or all events of a name. */
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

/** Returns the address of the timelines of two traces below one another, aligned step by step. */
export function timelinesHref(first: string, other: string): string {
	return routeHref("timeline", first, { with: other, align: "step" });
}

export function sourceHref(trace: string, file: string, line?: number | null): string {
	return routeHref("source", trace, { file, line: line ?? undefined });
}

/** "train.py:12" with a link to that line: in the source view, or in the editor that shows the viewer. `shown` replaces this text.
 * Code that was in no file, such as that of "<string>", has no link. */
export function SourceLink({ trace, file, line, shown }: { trace: string; file: string; line: number | null; shown?: string }) {
	const text = (
		<>
			{shown ?? baseName(file)}
			<wbr />
			{shown === undefined && line !== null && `:${line}`}
		</>
	);
	if (file.startsWith("<")) return <span title={file}>{text}</span>;
	const openThere = (event: Event) => {
		if (!hosted.value) return;
		event.preventDefault();
		openInHost(file, line);
	};
	return (
		<a class="source-link" href={sourceHref(trace, file, line)} title={line === null ? file : `${file}:${line}`} onClick={openThere}>
			{text}
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
