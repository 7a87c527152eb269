// SPDX-License-Identifier: Apache-2.0
//
// All workers of a run together: how much communication computation hides, which worker waits for which, and each
// collective operation.
import type { ComponentChildren } from "preact";
import { useParam } from "../app/params";
import { routeHref } from "../app/route";
import type { ViewProps } from "../app/views";
import type { TraceEntry } from "../data/api";
import type { AdviceReply, CommunicationOperation, Distributed as Reply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";
import { formatUs } from "../format/units";
import { Await } from "../widgets/await";
import { rankTitle } from "../timeline/ranks";
import { Bars } from "../widgets/bars";
import type { Series } from "../widgets/chart";
import { Select } from "../widgets/choice";
import { earlyRank } from "../widgets/late_rank";
import { timelineHref } from "../widgets/links";
import { StepChoice, useSteps } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import { Places } from "./finding";
import { isSmallRun, runOf } from "./runs";

const OVERLAP: Series[] = [
	{ id: "computation_only", title: "Computation", color: "var(--kind-kernel)" },
	{ id: "overlap", title: "Overlap", color: "var(--kind-module)" },
	{ id: "communication_only", title: "Communication only", color: "var(--kind-communication)" },
	{ id: "other", title: "Neither", color: "var(--kind-other)" },
];
const WAIT: Series[] = [
	{ id: "data_transfer", title: "Transfer", color: "var(--kind-communication)" },
	{ id: "synchronizing", title: "Waiting for others", color: "var(--kind-memcpy)" },
];

export function Distributed({ source, trace, traces }: ViewProps) {
	const run = runOf(trace, traces);
	const ids = run.map((each) => each.id).join(",");
	const reply = useReply<Reply | null>(source, run.length > 1 ? `traces/${ids}/distributed` : undefined, { steps: useSteps() });
	if (run.length < 2) return <OneWorker />;
	const tools = <StepChoice source={source} trace={trace} />;
	return (
		<div class="view">
			<Await reply={reply} what={`${run.length} traces`}>
				{(data) => (!data?.shown ? <NotTogether workers={run.length} tools={tools} /> : <Together source={source} trace={trace} data={data} run={run} tools={tools} />)}
			</Await>
		</div>
	);
}

function OneWorker() {
	return (
		<div class="empty">
			<p>The run has no other trace.</p>
			<p>
				Traces of several ranks in one directory are shown together: <code>opstrobe serve DIRECTORY</code>.
			</p>
		</div>
	);
}

function NotTogether({ workers, tools }: { workers: number; tools: ComponentChildren }) {
	return (
		<>
			<div class="tools">{tools}</div>
			<div class="empty">
				<p>{`The ${workers} traces of this run do not all have the same collective operations, so they cannot be compared.`}</p>
			</div>
		</>
	);
}

interface TogetherProps {
	source: DataSource;
	trace: TraceEntry;
	data: Reply;
	run: readonly TraceEntry[];
}

function Together({ source, trace, data, run, tools }: TogetherProps & { tools: ComponentChildren }) {
	const steps = Object.keys(data.overlap);
	const [wanted, setStep] = useParam("step", "all");
	const step = steps.includes(wanted) ? wanted : (steps[0] ?? "all");
	const rankOf = (worker: string) => traceOf(data, run, worker)?.rank ?? 0;
	const workers = [...data.workers].sort((a, b) => rankOf(a) - rankOf(b));
	const bars = (of: Record<string, object> | undefined, series: readonly Series[]) =>
		workers.map((name) => {
			const figures = (of?.[name] ?? {}) as Record<string, number>;
			return { name: titleOf(data, run, name), label: `rank ${rankOf(name)}`, parts: series.map((each) => figures[each.id] ?? 0) };
		});
	return (
		<>
			<div class="tools">
				{tools}
				<Select label="Bars of" options={steps.map((each) => ({ id: each, title: each === "all" ? "the average of all" : each }))} value={step} onChange={setStep} />
			</div>
			<LateRank source={source} trace={trace} data={data} run={run} />
			<div class="columns even">
				<section class="panel">
					<Bars title="Computation and communication" item="trace" about="by rank" series={OVERLAP} bars={bars(data.overlap[step], OVERLAP)} kind="us" />
					<p class="soft">All communication in the time of the step.</p>
				</section>
				<section class="panel">
					<Bars title="Transfer and waiting" item="trace" about="by rank" series={WAIT} bars={bars(data.wait[step], WAIT)} kind="us" />
					<p class="soft">Operations that begin and end in the step.</p>
				</section>
			</div>
			<Operations data={data} run={run} />
		</>
	);
}

/** The workers of the reply are in the order of the requested traces. */
function traceOf(data: Reply, run: readonly TraceEntry[], worker: string | undefined): TraceEntry | undefined {
	return run[data.workers.findIndex((each) => each === worker)];
}

/** Returns the name of a worker with its rank. */
function titleOf(data: Reply, run: readonly TraceEntry[], worker: string): string {
	const trace = traceOf(data, run, worker);
	return trace ? rankTitle(trace, run) : worker;
}

/** Returns a window of the timeline around the range of a late rank, including the time in which the others wait, and
 * the range. */
function momentOf({ start, end, wait }: { start: number; end: number; wait: number }) {
	const margin = 0.1 * (end - start + wait);
	return { from: Math.round(1000 * (start - wait - margin)), to: Math.round(1000 * (end + margin)) };
}

/** Names the late rank, with a link to the time on its timeline for which the others wait longest. */
function LateRank({ source, trace: open, data, run }: TogetherProps) {
	const steps = useSteps();
	const overall = data.late_rank.all;
	const worst = Object.entries(data.late_rank)
		.flatMap(([step, late]) => (step !== "all" && late ? [{ step, ...late }] : []))
		.sort((a, b) => b.wait - a.wait)[0];
	const trace = worst && traceOf(data, run, worst.worker);
	const early = worst && traceOf(data, run, earlyRank(data.wait[worst.step] ?? {}, data.workers));
	// Rows and times belong to the trace of the reply, which is not that of the timeline if steps are selected.
	const late = worst && !steps ? data.late[worst.step]?.[worst.worker] : undefined;
	const named = (worker: string) => titleOf(data, run, worker);
	const where = early ? `on the timelines of ${named(worst.worker)} and ${rankTitle(early, run)}` : "on its timeline";
	return (
		<section class="panel" aria-label="Late rank">
			<h2>Late rank</h2>
			<p>{overall ? `${named(overall.worker)} is late: the others wait ${formatUs(overall.wait)} longer than it does, in an average step.` : "No rank is late in all steps: all wait about as long."}</p>
			{worst && trace && (
				<p>
					{`Longest in step ${worst.step}, for ${named(worst.worker)}: ${formatUs(worst.wait)}. `}
					<a href={routeHref("timeline", trace.id, { with: early?.id, step: worst.step, ...(late ? { event: late.row, ...momentOf(late) } : {}) })}>
						{late ? `Show ${late.name}, for which they wait ${formatUs(late.wait)}, ${where}` : `Show this step ${where}`}
					</a>
				</p>
			)}
			{worst && <LateReason source={source} trace={trace ?? open} run={run} />}
		</section>
	);
}

/** Names what takes the late rank longer than the others: the evidence and the places of the finding about it. */
function LateReason({ source, trace, run }: Omit<TogetherProps, "data">) {
	const asked = run.map((each) => each.id);
	const path = `traces/${asked.join(",")}/advice`;
	const reply = useReply<AdviceReply>(source, isSmallRun(run) && (source.kind === "http" || source.has(path)) ? path : undefined);
	if (reply.state !== "ready") return null;
	const finding = reply.data.findings.find((each) => each.id === "uneven-ranks");
	if (!finding) return null;
	return (
		<>
			<h3>Why</h3>
			<p>{finding.facts}</p>
			<Places trace={trace.id} asked={asked} where={finding.where} />
		</>
	);
}

type Row = CommunicationOperation & { worker: string; title: string };

const COLUMNS: Column<Row>[] = [
	{ id: "worker", title: "Rank", kind: "text", groups: true, value: (row) => row.title },
	{ id: "name", title: "Operation", kind: "text", wide: true, groups: true, value: (row) => row.name },
	{ id: "calls", title: "Calls", kind: "count", value: (row) => row.calls },
	{ id: "total_bytes", title: "Size", kind: "bytes", value: (row) => row.total_bytes },
	{ id: "avg_bytes", title: "Mean size", kind: "bytes", total: "none", value: (row) => row.avg_bytes },
	{ id: "total_latency", title: "Time", kind: "us", bar: true, value: (row) => row.total_latency, about: "From the start of the operation to its end" },
	{ id: "avg_latency", title: "Mean time", kind: "us", total: "none", value: (row) => row.avg_latency },
	{ id: "data_transfer", title: "Transfer", kind: "us", bar: true, value: (row) => row.data_transfer, about: "The time without waiting for other ranks" },
	{ id: "avg_data_transfer", title: "Mean transfer", kind: "us", total: "none", value: (row) => row.avg_data_transfer },
	{
		id: "waiting",
		title: "Waiting",
		kind: "share",
		value: (row) => (row.total_latency > 0 ? 1 - row.data_transfer / row.total_latency : null),
		about: "The share of the time that is spent waiting for other ranks",
	},
];

function Operations({ data, run }: { data: Reply; run: readonly TraceEntry[] }) {
	const rows = data.workers.flatMap((worker) => (data.ops[worker] ?? []).map((row) => ({ ...row, worker, title: titleOf(data, run, worker) })));
	return (
		<section class="panel">
			<h2>Collective operations</h2>
			<Table
				id="operations"
				label="Collective operations"
				columns={COLUMNS}
				rows={rows}
				sort="-total_latency"
				href={(row) => {
					const trace = traceOf(data, run, row.worker);
					return trace && timelineHref(trace.id, { find: row.name });
				}}
				lines={14}
			/>
		</section>
	);
}
