// SPDX-License-Identifier: Apache-2.0
//
// All served traces, grouped by job. Their facts appear as the server reads them.
import { useEffect, useMemo, useState } from "preact/hooks";
import { routeHref } from "../app/route";
import type { TopFinding, TraceEntry, TraceSummary } from "../data/api";
import { addTo } from "../data/groups";
import type { AdviceReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";
import { isWallClock } from "../format/units";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import { isSmallRun } from "./runs";

/** A trace, or several of one job. */
interface Row {
	traces: TraceEntry[];
	children: Row[];
	/** The first finding of the ranks together; null: none. Absent for one trace, before it is known, and if the ranks are too large. */
	finding?: TopFinding | null;
}

export function Start({ source, traces }: { source: DataSource; traces: readonly TraceEntry[] }) {
	const rows = useRunFindings(source, useMemo(() => rowsOf(traces), [traces]));
	const unread = traces.filter((trace) => trace.summary === null && trace.state !== "failed").length;
	const above = useMemo(() => sharedFolder(traces), [traces]);
	const name: Column<Row> = { id: "name", title: "Trace", kind: "text", wide: true, value: (row) => nameOf(row, above), shown: (row) => nameOf(row, above).replace(SUFFIX, ""), link: linkOf };
	const columns = COLUMNS.filter((column) => column.id !== "command" || rows.some((row) => column.value(row) !== null));
	return (
		<div class="view">
			<Table
				id="traces"
				label="Traces"
				columns={[name, ...columns]}
				rows={rows}
				children={(row) => row.children}
				openDepth={0}
				sort="-date"
				lines={28}
				tools={
					unread > 0 && (
						<span class="soft" role="status">
							{`Reading: ${traces.length - unread} of ${traces.length} traces`}
						</span>
					)
				}
			/>
		</div>
	);
}

/** The end of most names, which distinguishes no traces. */
const SUFFIX = /\.pt\.trace\.json(\.gz)?$/;

/** Traces of one job are children of the job's row. */
function rowsOf(traces: readonly TraceEntry[]): Row[] {
	const jobs = new Map<string, TraceEntry[]>();
	for (const trace of traces) {
		const key = trace.job ?? trace.id;
		addTo(jobs, key, trace);
	}
	return [...jobs.values()].map((members) => {
		const ranks = [...members].sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
		return { traces: ranks, children: ranks.length > 1 ? ranks.map((trace) => ({ traces: [trace], children: [] })) : [] };
	});
}

/** Adds the findings of runs, which are requested one after another. */
function useRunFindings(source: DataSource, rows: readonly Row[]): readonly Row[] {
	const [known, setKnown] = useState<ReadonlyMap<string, TopFinding | null | undefined>>(new Map());
	const next = rows.find((row) => hasRunFinding(row) && !known.has(idsOf(row)));
	const ids = next && idsOf(next);
	const reply = useReply<AdviceReply>(source, ids && `traces/${ids}/advice`);
	useEffect(() => {
		if (ids === undefined || reply.state === "loading") return;
		setKnown(new Map(known).set(ids, reply.state === "ready" ? (reply.data.findings[0] ?? null) : undefined));
	}, [reply]);
	return useMemo(
		() =>
			rows.map((row) => {
				const finding = row.children.length > 0 ? known.get(idsOf(row)) : undefined;
				return finding === undefined ? row : { ...row, finding };
			}),
		[rows, known],
	);
}

function idsOf(row: Row): string {
	return row.traces.map((trace) => trace.id).join(",");
}

/** Whether the row is a run whose ranks have been read and are small enough for advice about all of them. */
function hasRunFinding(row: Row): boolean {
	return row.children.length > 0 && isSmallRun(row.traces) && summaries(row).length === row.traces.length;
}

function summaries(row: Row): TraceSummary[] {
	return row.traces.flatMap((trace) => (trace.summary && trace.summary.error === undefined ? [trace.summary] : []));
}

/** Returns the largest known value among the traces of a row; null if none is known. */
function largest(row: Row, value: (summary: TraceSummary) => number | null): number | null {
	const known = summaries(row).flatMap((summary) => value(summary) ?? []);
	return known.length > 0 ? Math.max(...known) : null;
}

/** Returns the common prefix of the directories' names, including its slash. */
function sharedFolder(traces: readonly TraceEntry[]): string {
	let shared = traces[0] ? `${traces[0].run}/` : "";
	for (const { run } of traces) while (!`${run}/`.startsWith(shared)) shared = shared.replace(/[^/]*\/$/, "");
	return shared;
}

function nameOf(row: Row, above: string): string {
	const first = row.traces[0]!;
	const folder = `${first.run}/`.slice(above.length);
	return row.children.length > 0 ? `${folder || above}${row.traces.length} ranks` : folder + first.name;
}

/** If a trace has no date, the time of its file is close to it. */
function dateOf(row: Row): string | null {
	const times = row.traces.flatMap((trace) => {
		const start = trace.summary?.start_ns ?? 0;
		return isWallClock(start) ? start : (trace.changed_ns ?? []);
	});
	if (times.length === 0) return null;
	const date = new Date(Math.min(...times) / 1e6);
	const two = (number: number) => String(number).padStart(2, "0");
	return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function devicesOf(row: Row): string | null {
	const known = summaries(row);
	if (known.length === 0) return null;
	const counts = new Map<string, number>();
	for (const name of known.flatMap((summary) => summary.devices)) counts.set(name, (counts.get(name) ?? 0) + 1);
	return counts.size === 0 ? "CPU" : [...counts].map(([name, count]) => (count > 1 ? `${count} × ${name}` : name)).join(", ");
}

function ranksOf(row: Row): string | null {
	const world = largest(row, (summary) => summary.world_size);
	if (row.children.length > 0) return world === null || world === row.traces.length ? `${row.traces.length}` : `${row.traces.length} of ${world}`;
	const rank = row.traces[0]!.rank;
	if (rank === null) return null;
	return world === null || world === 1 ? `rank ${rank}` : `rank ${rank} of ${world}`;
}

/** Returns the first finding of the run, or the largest one of single ranks, with the name of the rank. */
function findingOf(row: Row): TopFinding | undefined {
	if (row.finding !== undefined) return row.finding ?? undefined;
	const found = row.traces.flatMap(({ rank, name, summary }) => {
		const finding = summary && summary.error === undefined ? summary.top_finding : null;
		return finding ? [row.children.length > 0 ? { ...finding, title: `${rank === null ? name : `rank ${rank}`}: ${finding.title}` } : finding] : [];
	});
	return found.sort((a, b) => (b.predicted_gain_percent ?? 0) - (a.predicted_gain_percent ?? 0))[0];
}

function findingText(row: Row): string | null {
	const [trace] = row.traces;
	if (row.children.length === 0 && trace!.state === "failed") return `Cannot be read: ${trace!.error ?? ""}`;
	if (row.children.length === 0 && trace!.summary?.error !== undefined) return trace!.summary.error;
	if (summaries(row).length === 0) return null;
	const diagnostics = row.traces.flatMap((each) => each.diagnostics);
	if (diagnostics.some(({ kind }) => kind === "sampled")) return "Samples, to which no rule of advice applies";
	const damage = diagnostics[0];
	const finding = findingOf(row);
	const title = finding?.title ?? (damage ? "" : "No problems found");
	return [damage && `Incomplete: ${damage.message}`, title, finding?.predicted_gain_warning].filter(Boolean).join("; ");
}

function linkOf(row: Row): string {
	return row.children.length > 0 ? routeHref("distributed", row.traces[0]!.id) : routeHref("overview", row.traces[0]!.id);
}

const COLUMNS: Column<Row>[] = [
	{ id: "date", title: "Recorded", kind: "text", yields: 6, value: dateOf, shown: (row) => dateOf(row)?.slice(0, 16) ?? "", about: "When the recording started; without that time, when the file was written" },
	{ id: "duration", title: "Duration", kind: "us", total: "none", yields: 5, value: (row) => largest(row, (summary) => summary.duration_us) },
	{ id: "steps", title: "Steps", kind: "count", total: "none", yields: 4, value: (row) => largest(row, (summary) => summary.steps.count) },
	{ id: "median", title: "Median step", kind: "us", total: "none", yields: 1, value: (row) => largest(row, (summary) => summary.steps.median), about: "For several ranks, that of the slowest" },
	{ id: "devices", title: "Devices", kind: "text", yields: 3, value: devicesOf, about: "Devices that ran kernels" },
	{ id: "rank", title: "Ranks", kind: "text", yields: 2, value: ranksOf },
	{ id: "gain", title: "Gain", kind: "pct", total: "none", value: (row) => findingOf(row)?.predicted_gain_percent ?? null, about: "Predicted gain of the top finding, as a share of a step" },
	{ id: "finding", title: "Top finding", kind: "text", wide: true, value: findingText, about: "The first finding of the advice; for several ranks, of the advice for all of them. If they are too large, the largest finding of one of them, with its rank" },
	{ id: "command", title: "Recorded by", kind: "text", wide: true, hidden: true, value: (row) => summaries(row)[0]?.command ?? null, about: "Command line, if Opstrobe recorded the trace" },
	{ id: "host", title: "Host", kind: "text", hidden: true, value: (row) => [...new Set(summaries(row).flatMap((summary) => summary.host ?? []))].join(", ") || null },
	{ id: "size", title: "Size", kind: "bytes", hidden: true, value: (row) => row.traces.reduce((sum, trace) => sum + trace.bytes, 0) },
];
