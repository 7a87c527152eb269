// SPDX-License-Identifier: Apache-2.0
//
// The archive that is served: how a metric changes, the steps of all ranks of a run, and all traces by job and run. A
// trace is opened by its id in the archive: the server makes its file.
import { useEffect, useMemo, useState } from "preact/hooks";
import { askForTraces } from "../app/traces";
import { useParam } from "../app/params";
import { go, route, routeHref } from "../app/route";
import type { TraceEntry } from "../data/api";
import { addTo } from "../data/groups";
import type { TableReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";
import { TABLES } from "../data/tables";
import type { Kind } from "../format/scale";
import { Await } from "../widgets/await";
import { Choice, Select } from "../widgets/choice";
import { HeatMap } from "../widgets/heat_map";
import { Failure, Loading } from "../widgets/status";
import { Table } from "../widgets/table";
import type { Cell, Column } from "../widgets/table_model";
import { TrendChart } from "../widgets/trend_chart";

/** The name of the page in the address. An id of a trace in the archive replaces the trace in the address. */
export const ARCHIVE = "archive";

type Row = Record<string, Cell>;

function rowsOf({ table }: TableReply): Row[] {
	return table.rows.map((row) => Object.fromEntries(table.columns.map((name, i) => [name, row[i] ?? null])));
}

/** Returns the traces of the server's archive. Undefined until the server has replied. */
export function useArchive(source: DataSource): readonly Row[] | undefined {
	const [rows, setRows] = useState<readonly Row[]>();
	useEffect(() => {
		if (source.kind !== "http") {
			setRows([]);
			return;
		}
		source.json<TableReply>("archive").then(
			(reply) => setRows(rowsOf(reply)),
			() => setRows([]),
		);
	}, [source]);
	return rows;
}

/** Metrics of trends, with the factor from their unit to that of the kind. */
const METRICS: { id: string; title: string; kind: Kind; factor: number }[] = [
	{ id: "step_ms", title: "Median step", kind: "us", factor: 1e3 },
	{ id: "data_loading_ms", title: "Data loading of a step", kind: "us", factor: 1e3 },
	{ id: "kernel_ms", title: "Device work of a step", kind: "us", factor: 1e3 },
	{ id: "collective_ms", title: "Collectives of a step", kind: "us", factor: 1e3 },
	{ id: "operators", title: "Operators of a step", kind: "count", factor: 1 },
	{ id: "peak_mb", title: "Memory peak", kind: "bytes", factor: 1e6 },
];
const BY = [
	{ id: "commit", title: "Commit" },
	{ id: "date", title: "Date" },
	{ id: "run", title: "Run" },
] as const;

interface ArchiveProps {
	source: DataSource;
	rows: readonly Row[];
	traces: readonly TraceEntry[];
	/** Id of a trace to open; "": the page. */
	id: string;
}

export function Archive({ source, rows, traces, id }: ArchiveProps) {
	if (id !== "") return <Opening key={id} source={source} id={id} traces={traces} />;
	return <Shown source={source} rows={rows} />;
}

/** Shows the trace when the server has made its file and the list has it. */
function Opening({ source, id, traces }: { source: DataSource; id: string; traces: readonly TraceEntry[] }) {
	const reply = useReply<{ id: string }>(source, `archive/traces/${encodeURIComponent(id)}`);
	const made = reply.state === "ready" ? reply.data.id : undefined;
	const listed = made !== undefined && traces.some((trace) => trace.id === made);
	useEffect(() => {
		if (made !== undefined && !listed) askForTraces();
	}, [made, listed]);
	useEffect(() => {
		if (made === undefined || !listed) return;
		const range = Object.fromEntries(["from", "to"].flatMap((name) => (route.value.params.has(name) ? [[name, route.value.params.get(name)!]] : [])));
		go(range.from === undefined ? "overview" : "timeline", made, range);
	}, [made, listed]);
	if (reply.state === "failed") return <Failure error={reply.error} />;
	return <Loading what="the trace of the archive" />;
}

function Shown({ source, rows }: { source: DataSource; rows: readonly Row[] }) {
	const jobs = useMemo(() => [...new Set(rows.map((row) => String(row.job)))], [rows]);
	const [wanted, setJob] = useParam("job", jobs[0] ?? "");
	const job = jobs.includes(wanted) ? wanted : (jobs[0] ?? "");
	const runs = useMemo(() => [...new Set(rows.filter((row) => row.job === job).map((row) => String(row.run)))], [rows, job]);
	const [wantedRun, setRun] = useParam("run", runs[0] ?? "");
	const run = runs.includes(wantedRun) ? wantedRun : (runs[0] ?? "");
	return (
		<div class="view">
			<div class="tools">
				<Select label="Job" options={jobs.map((each) => ({ id: each, title: each }))} value={job} onChange={setJob} />
			</div>
			<Trend source={source} job={job} hasCommits={rows.some((row) => row.job === job && row.commit !== null)} />
			<section class="panel" aria-label="Steps of a run">
				<div class="tools">
					<Select label="Run" options={runs.map((each) => ({ id: each, title: each }))} value={run} onChange={setRun} />
				</div>
				<Steps source={source} job={job} run={run} />
			</section>
			<Traces rows={rows} />
		</div>
	);
}

function Trend({ source, job, hasCommits }: { source: DataSource; job: string; hasCommits: boolean }) {
	const [metricId, setMetric] = useParam("metric", "step_ms");
	const [byId, setBy] = useParam("by", hasCommits ? "commit" : "run");
	const metric = METRICS.find((each) => each.id === metricId) ?? METRICS[0]!;
	const by = BY.find((each) => each.id === byId) ?? BY[0];
	const query = { metric: metric.id, by: by.id, job };
	const empty = by.id === "commit" && !hasCommits ? "No trace of this job has a commit." : "The archive has no values of this metric.";
	const reply = useReply<TableReply>(source, "archive/trend", query);
	return (
		<section class="panel" aria-label="Trend">
			<div class="tools">
				<Select label="Metric" options={METRICS} value={metric.id} onChange={setMetric} />
				<Choice label="By" options={BY} value={by.id} onChange={setBy} />
			</div>
			<Await reply={reply} what="the trend">
				{(data) => <Points source={source} query={query} points={rowsOf(data)} metric={metric} item={by.title} empty={empty} />}
			</Await>
		</section>
	);
}

interface PointsProps {
	source: DataSource;
	query: Record<string, string>;
	points: readonly Row[];
	metric: (typeof METRICS)[number];
	item: string;
	/** The text that replaces a trend without points. */
	empty: string;
}

function Points({ source, query, points, metric, item, empty }: PointsProps) {
	const changed = points.filter((point) => point.noise !== null);
	const causes = useReply<TableReply>(source, changed.length > 0 ? "archive/causes" : undefined, query);
	if (points.length === 0) return <div class="empty">{empty}</div>;
	const trend = points.map((point) => ({
		name: String(point.key).slice(0, 10),
		value: Number(point.value) * metric.factor,
		level: Number(point.level) * metric.factor,
		traces: Number(point.traces),
		change: point.noise === null ? undefined : point.change === null ? null : Number(point.change),
	}));
	const figures = (name: string) => (row: Row) => (row[name] === null ? null : Number(row[name]) * metric.factor);
	const columns: Column<Row>[] = [
		{ id: "key", title: item, kind: "text", value: (row) => row.key! },
		{ id: "change", title: "Change", kind: "pct", signed: true, total: "none", value: (row) => row.change! },
		{ id: "before", title: "Level before", kind: metric.kind, total: "none", value: figures("before") },
		{ id: "level", title: "Level after", kind: metric.kind, total: "none", value: figures("level") },
		{ id: "noise", title: "Noise", kind: metric.kind, total: "none", about: TABLES.archive_trend.noise.about, value: figures("noise") },
	];
	return (
		<>
			<TrendChart title={metric.title} item={item.toLowerCase()} points={trend} kind={metric.kind} />
			{changed.length === 0 ? <p class="soft">The level does not change.</p> : <Table id="changes" label="Changes" columns={columns} rows={changed} plain />}
			{changed.length > 0 && (
				<Await reply={causes} what="what explains the changes">
					{(data) => <Table id="causes" label="What changed most" columns={CAUSES} rows={rowsOf(data)} plain />}
				</Await>
			)}
		</>
	);
}

const CAUSES: Column<Row>[] = [
	{ id: "key", title: "Changed at", kind: "text", value: (row) => row.key! },
	{ id: "kind", title: "Kind", kind: "text", about: TABLES.archive_causes.kind.about, value: (row) => row.kind! },
	{ id: "name", title: "Name", kind: "text", wide: true, value: (row) => row.name! },
	...(["before_ms", "after_ms", "difference_ms"] as const).map<Column<Row>>((name) => ({
		id: name,
		title: TABLES.archive_causes[name].title,
		kind: "us",
		total: "none",
		signed: name === "difference_ms",
		value: (row) => Number(row[name]) * 1e3,
	})),
];

function Steps({ source, job, run }: { source: DataSource; job: string; run: string }) {
	const reply = useReply<TableReply>(source, "archive/steps", { job, run });
	return (
		<Await reply={reply} what="the steps">
			{(data) => {
				const cells = rowsOf(data).map((row) => {
					const [start, duration] = [Number(row.start_us), Number(row.dur_us)];
					const range = { from: Math.max(0, Math.round(1e3 * (start - 0.1 * duration))), to: Math.round(1e3 * (start + 1.1 * duration)) };
					return { row: Number(row.rank ?? 0), column: Number(row.step), value: duration, href: routeHref(ARCHIVE, String(row.trace), range) };
				});
				if (cells.length === 0) return <div class="empty">The traces of this run have no steps.</div>;
				return <HeatMap title="Steps of each rank" row="rank" column="step" figure="duration" kind="us" cells={cells} />;
			}}
		</Await>
	);
}

/** A trace, or the traces of a run. */
interface Node {
	rows: Row[];
	children: Node[];
}

function Traces({ rows }: { rows: readonly Row[] }) {
	const nodes = useMemo(() => {
		const runs = new Map<string, Row[]>();
		for (const row of rows) addTo(runs, `${row.job}\n${row.run}`, row);
		return [...runs.values()].map<Node>((each) => ({ rows: each, children: each.length > 1 ? each.map((row) => ({ rows: [row], children: [] })) : [] }));
	}, [rows]);
	return <Table id="archive" label="Archive" columns={COLUMNS} rows={nodes} children={(node) => node.children} openDepth={0} sort="-start" lines={20} />;
}

const one = (name: string) => (node: Node) => node.rows[0]![name] ?? null;

function largest(name: string): (node: Node) => Cell {
	return (node) => {
		const known = node.rows.flatMap((row) => (typeof row[name] === "number" ? [row[name]] : []));
		return known.length > 0 ? Math.max(...known) : null;
	};
}

const NAMES = TABLES.archive_traces;
const COLUMNS: Column<Node>[] = [
	{ id: "run", title: NAMES.run.title, kind: "text", wide: true, about: NAMES.run.about, value: one("run"), link: (node) => routeHref(ARCHIVE, String(node.rows[0]!.trace)) },
	{ id: "job", title: NAMES.job.title, kind: "text", value: one("job") },
	{ id: "rank", title: "Ranks", kind: "text", value: (node) => (node.children.length > 0 ? String(node.rows.length) : node.rows[0]!.rank === null ? null : `rank ${node.rows[0]!.rank}`) },
	{ id: "commit", title: NAMES.commit.title, kind: "text", about: NAMES.commit.about, value: one("commit") },
	{ id: "start", title: NAMES.start.title, kind: "text", about: NAMES.start.about, value: one("start") },
	{ id: "duration", title: NAMES.duration_us.title, kind: "us", total: "none", value: largest("duration_us") },
	{ id: "steps", title: NAMES.steps.title, kind: "count", total: "none", value: largest("steps") },
	{ id: "step", title: NAMES.step_us.title, kind: "us", total: "none", about: "For several ranks, that of the slowest", value: largest("step_us") },
	{ id: "path", title: NAMES.path.title, kind: "text", hidden: true, wide: true, about: NAMES.path.about, value: one("path") },
];
