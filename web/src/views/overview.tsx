// SPDX-License-Identifier: Apache-2.0
//
// The overview: how the time of a step is spent, what to change, and how busy the devices are.
import type { TraceEntry } from "../data/api";
import type { TraceFacts, ViewProps } from "../app/views";
import { useParam } from "../app/params";
import { routeHref } from "../app/route";
import type { AdviceReply, Device, Gpu, MemoryReply, OperatorsReply, OverviewReply, TimelineReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";
import type { NotExplained } from "../data/tables";
import { formatBytes, formatCount, formatShare, formatUs } from "../format/units";
import { Await } from "../widgets/await";
import { Bars } from "../widgets/bars";
import { Card, Cards, Meter } from "../widgets/cards";
import { Choice } from "../widgets/choice";
import { LineChart } from "../widgets/line_chart";
import { timelineHref } from "../widgets/links";
import { stepsText, useOpening } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import { Breakdown } from "./breakdown";
import { FindingLine, noFindings, Places } from "./finding";
import { deviceTitle } from "./memory_words";
import { PHASES, PhaseTime } from "./phases";
import { SlowSteps } from "./slow_steps";
import { stepParts, usedParts } from "./step_parts";
import { placesOfSteps } from "./steps";

const PARTS = "trace_events,lost_events,profiler_start_ts,flags,devices,queued_before,graph_work,steps,gpus,tensor_cores";

export function Overview({ source, trace }: ViewProps) {
	const reply = useReply<OverviewReply>(source, `traces/${trace.id}/views`, { parts: PARTS });
	return (
		<Await reply={reply} what="the overview">
			{(views) => (
				<div class="view">
					<BusyMachine views={views} />
					<Figures source={source} trace={trace} views={views} />
					<div class="columns">
						<TopAdvice source={source} trace={trace} />
						<div class="column">
							<StepTime views={views} />
							{views.steps.phases && <PhaseTime views={views} phases={views.steps.phases} />}
						</div>
					</div>
					{views.steps.from !== "none" && <Steps source={source} trace={trace} views={views} />}
					{views.gpus.length > 0 && <Gpus gpus={views.gpus} devices={views.devices} />}
					<TopOperators source={source} trace={trace} />
				</div>
			)}
		</Await>
	);
}

/** A warning that readers must see before any figure. */
function BusyMachine({ views }: { views: OverviewReply }) {
	const waited = views.steps.waited_for_cpu;
	if (!waited?.much) return null;
	return (
		<div class="banner" role="alert">
			<strong>
				{views.steps.from === "none" ? "The recording waited for a CPU for " : "Steps waited for a CPU for "}
				{`${percent(waited.ratio)} of ${views.steps.from === "none" ? "its" : "their"} time`}
			</strong>
			, because {waited.had_by} had it. Times are too long: record
			again on an idle machine.
		</div>
	);
}

function Figures({ source, trace, views }: { source: DataSource; trace: TraceEntry; views: OverviewReply }) {
	const { breakdown, apart, rows, median, p95, from, kinds, waited_for_cpu: waited, outside_ratio } = views.steps;
	const { average } = breakdown;
	const first = apart === null ? "" : `; median, mean and p95 leave out the first, ${formatUs(rows[0]!.total)}`;
	const step = from === "iterations" ? "iteration" : "step";
	const outside = outside_ratio > 0.5 ? `; ${percent(outside_ratio)} of the time of operators is in none` : "";
	const busy = average.total > 0 ? (average.kernel + average.memcpy + average.memset + average.communication) / average.total : 0;
	const gpus = views.gpus.length > 1 ? `any of ${views.gpus.length} GPUs` : deviceName(views, views.gpus[0]?.id);
	return (
		<Cards>
			{from === "none" || rows.length < 2 ? (
				<Card title={from === "none" ? "Whole recording" : from === "iterations" ? "Iteration" : "Step"} figure={formatUs(average.total)} note={from === "none" ? "no steps in the trace" : "the only step"} />
			) : (
				<Card
					title={`Median ${step}`}
					figure={formatUs(median ?? 0)}
					note={`of ${rows.length} ${step}s: mean ${formatUs(average.total)}, p95 ${formatUs(p95 ?? 0)}, ${range(rows.map((row) => row.total))}${first}${outside}`}
				/>
			)}
			{kinds.map(({ kind, count, median, p95 }) => (
				<Card key={kind} title={`Median ${kind}`} figure={formatUs(median)} note={`of ${count}: p95 ${formatUs(p95)}`} about="Iterations of a server of this kind" />
			))}
			{waited && (
				<Card
					title="Waited for a CPU"
					figure={percent(waited.ratio)}
					share={waited.ratio}
					note={from === "none" ? formatUs(waited.average) : `${formatUs(waited.average)} a step`}
					tone={waited.much ? "bad" : undefined}
					about="The share of that time in which the thread was ready to run, but other threads had the CPUs"
				/>
			)}
			<PeakMemory source={source} trace={trace} />
			{views.gpus.length > 0 && (
				<Card
					title="GPU busy"
					figure={percent(busy)}
					share={busy}
					note={`of the ${wholeOf(views).toLowerCase()}, idle ${percent(1 - busy)}${gpus ? `; ${gpus}` : ""}`}
					tone={busy < 0.5 ? "warn" : undefined}
					about="Busy: kernels, communication, memory copies or memory sets run. Idle: none of them"
				/>
			)}
			{views.tensor_cores.used_ratio !== null && views.flags.has_kernel && (
				<Card
					title="Tensor cores"
					figure={percent(views.tensor_cores.used_ratio)}
					share={views.tensor_cores.used_ratio}
					note={`operators with ${percent(views.tensor_cores.eligible_ops_kernel_ratio)} of kernel time could use them`}
				/>
			)}
			{!views.flags.has_kernel && <Card title="Device" figure="CPU" note="No GPU activity" />}
			{views.queued_before.count > 0 && (
				<Card title="Launched before" figure={formatUs(views.queued_before.time)} note={`${formatCount(views.queued_before.count)} kernels, memory copies and memory sets, in no step`} about="Device work that was launched before the recording" />
			)}
			{views.graph_work.count > 0 && (
				<Card
					title="Launched by graphs"
					figure={formatCount(views.graph_work.count)}
					note={`${formatCount(views.graph_work.with_capture)} with operator and line of the capture`}
					about="Kernels, memory copies and memory sets that CUDA graphs launched"
				/>
			)}
			{views.lost_events > 0 && (
				<Card title="Lost events" figure={formatCount(views.lost_events)} tone="bad" note="the recorder ran out of memory; figures are too low" />
			)}
		</Cards>
	);
}

/** The peak of the device that holds most. */
function PeakMemory({ source, trace }: { source: DataSource; trace: TraceEntry }) {
	const reply = useReply<MemoryReply>(source, `traces/${trace.id}/memory`);
	const facts = useReply<{ value: TraceFacts }>(source, `traces/${trace.id}/info`);
	// Without records, the memory view estimates sizes from the tensors of operators, which may live shorter.
	if (facts.state !== "ready" || facts.data.value.memory_records === 0) return null;
	if (reply.state !== "ready" || reply.data.devices.length === 0) return null;
	const device = reply.data.devices.reduce((most, each) => (each.peak.bytes > most.peak.bytes ? each : most));
	return <Card title="Memory at the peak" figure={<a href={routeHref("memory", trace.id)}>{formatBytes(device.peak.bytes)}</a>} note={`on ${deviceTitle(device.device)}`} />;
}

function range(values: number[]): string {
	return `${formatUs(Math.min(...values))} to ${formatUs(Math.max(...values))}`;
}

function percent(ratio: number | null): string {
	return ratio === null ? "–" : formatShare(ratio);
}

function deviceName(views: OverviewReply, id: number | undefined): string | undefined {
	return views.devices.find((device) => device.id === id)?.name;
}

/** Returns the name of the time that the breakdown is about. */
function wholeOf({ steps: { from, rows } }: OverviewReply): string {
	if (from === "none") return "Whole recording";
	const single = from === "iterations" ? "Iteration" : "Step";
	return rows.length > 1 ? `Mean ${single.toLowerCase()}` : single;
}

function StepTime({ views }: { views: OverviewReply }) {
	return (
		<section class="panel" aria-label="Where the time goes">
			<h2>{views.steps.from === "none" ? "Where the time goes" : "Where a step’s time goes"}</h2>
			<Breakdown parts={usedParts(stepParts, views.steps.breakdown.rows)} average={views.steps.breakdown.average} percent={views.steps.breakdown.average_pct} whole={wholeOf(views)} />
		</section>
	);
}

function TopAdvice({ source, trace }: { source: DataSource; trace: TraceEntry }) {
	const reply = useReply<AdviceReply>(source, `traces/${trace.id}/advice`);
	return (
		<section class="panel" aria-label="What to change">
			<h2>What to change</h2>
			<Await reply={reply} what="advice">
				{({ findings, checked, summary, base, not_explained: rest }) => (
					<>
						{findings.length === 0 && <p class="soft">{noFindings(trace, summary)}</p>}
						{findings.length === 0 && rest && <MostTime trace={trace.id} lines={rest.lines} />}
						<ol class="finding-list">
							{findings.slice(0, 4).map((finding, i) => (
								<FindingLine key={i} trace={trace.id} finding={finding} index={i} />
							))}
						</ol>
						{base.text !== "" && <p class="panel-foot soft">{base.text}</p>}
						{checked.length > 0 && (
							<p class="panel-foot">
								<a href={routeHref("advice", trace.id)}>
									{findings.length > 4 ? `All ${findings.length} findings` : findings.length > 0 ? "Evidence, and rules applied" : "Rules applied"}
								</a>
							</p>
						)}
					</>
				)}
			</Await>
		</section>
	);
}

/** The line that takes most of the time. */
function MostTime({ trace, lines }: { trace: string; lines: readonly NotExplained[] }) {
	const most = lines.find((line) => line.file ?? line.module ?? line.operator);
	if (!most) return null;
	return (
		<>
			<h3>Most time</h3>
			<Places trace={trace} asked={[trace]} where={[{ ...most, operator: most.line ? null : most.operator, through: [] }]} />
			<p>{most.text}</p>
		</>
	);
}

const STEPS_BY = [
	{ id: "parts", title: "By what runs" },
	{ id: "phases", title: "By phase", about: "Of the host's part of each step" },
] as const;

function Steps({ source, trace, views }: { source: DataSource; trace: TraceEntry; views: OverviewReply }) {
	const timeline = useReply<TimelineReply>(source, `traces/${trace.id}/timeline`);
	const places = placesOfSteps(timeline);
	const { breakdown, phases } = views.steps;
	const [by, choose] = useParam("by", "parts");
	const byPhase = phases && by === "phases";
	const parts = usedParts(stepParts, breakdown.rows);
	const series = byPhase ? usedParts(PHASES, phases.rows) : parts;
	const bars = breakdown.rows.map((row, i) => {
		const place = places.get(row.name);
		return {
			name: row.name,
			parts: byPhase ? usedParts(PHASES, phases.rows).map((phase) => phases.rows[i]![phase.id]) : parts.map((part) => row[part.id]),
			href: place && timelineHref(trace.id, { from: place.start_ns, to: place.end_ns }),
		};
	});
	return (
		<>
			<SlowSteps trace={trace.id} steps={views.steps} places={places} />
			<section class="panel">
				{phases && (
					<div class="tools">
						<Choice label="Steps by" options={STEPS_BY} value={byPhase ? "phases" : "parts"} onChange={choose} />
					</div>
				)}
				<Bars title="Steps" item="step" about="click a step to open it in the timeline" series={series} bars={bars} kind="us" />
			</section>
		</>
	);
}

const GPU_COLUMNS: Column<Gpu & { device: Device | undefined }>[] = [
	{ id: "id", title: "GPU", kind: "count", value: (gpu) => gpu.id, total: "none" },
	{ id: "name", title: "Name", kind: "text", wide: true, value: (gpu) => gpu.device?.name ?? null },
	{ id: "memory", title: "Memory", kind: "bytes", value: (gpu) => gpu.device?.total_memory ?? null },
	{ id: "capability", title: "Compute capability", kind: "text", value: (gpu) => gpu.device?.compute_capability ?? null },
	{ id: "kernels", title: "Kernels", kind: "share", bar: true, value: (gpu) => gpu.utilization_ratio, about: "The share of the time from the first to the last step in which kernels run" },
	{ id: "sm", title: "SM efficiency", kind: "share", value: (gpu) => gpu.est_sm_efficiency_ratio, about: "Share of the multiprocessors that the blocks of kernels fill, over the steps' time (estimated)" },
	{ id: "occupancy", title: "Occupancy", kind: "pct", value: (gpu) => gpu.est_achieved_occupancy_pct, about: "Share of the possible warps that are active while kernels run (estimated)" },
	{ id: "tensor", title: "Tensor cores", kind: "share", value: (gpu) => gpu.tensor_core_time_ratio, about: "The share of kernel time that is on tensor cores" },
];

function Gpus({ gpus, devices }: { gpus: Gpu[]; devices: Device[] }) {
	const rows = gpus.map((gpu) => ({ ...gpu, device: devices.find((device) => device.id === gpu.id) }));
	return (
		<section class="panel" aria-label="GPUs">
			<h2>GPUs</h2>
			<Table id="gpus" label="GPUs" columns={GPU_COLUMNS} rows={rows} plain />
			{gpus.map((gpu) => (
				<Utilization key={gpu.id} gpu={gpu} />
			))}
		</section>
	);
}

function Utilization({ gpu }: { gpu: Gpu }) {
	const timeline = gpu.utilization_timeline;
	if (!timeline || timeline.values.length < 2) return null;
	const width = (timeline.end - timeline.start) / timeline.values.length;
	const times = timeline.values.map((_, i) => i * width);
	return (
		<LineChart
			title={`Kernels on GPU ${gpu.id} over time`}
			about={`the share of each ${timeline.bucket.replace(/us$/, "µs")}`}
			times={[...times, timeline.end - timeline.start]}
			series={[{ id: "kernels", title: "kernels run", color: "var(--kind-kernel)", stacked: true, values: [...timeline.values, timeline.values[timeline.values.length - 1]!] }]}
			kind="share"
			most={1}
			stepped
			height={150}
		/>
	);
}

/** Like stacks, those of the steps, unless they are nearly all of the trace: the figures above are of steps, too. */
function TopOperators({ source, trace }: { source: DataSource; trace: TraceEntry }) {
	const { loading, steps } = useOpening(source, trace);
	const reply = useReply<OperatorsReply>(source, loading ? undefined : `traces/${trace.id}/views`, { parts: "flags,steps,operators,operators_by_input_shape,call_stacks", steps });
	return (
		<section class="panel" aria-label="Operators with the most time">
			<h2>Operators with the most time</h2>
			<Await reply={reply} what="the operators">
				{({ flags, operators }) => {
					const device = flags.has_kernel || flags.has_memcpy_or_memset;
					const all = operators.rows.reduce((sum, row) => sum + (device ? row.device_self : row.host_self), 0);
					return (
						<>
							<ul class="top-list">
								{operators.rows.slice(0, 8).map((row) => {
									const own = device ? row.device_self : row.host_self;
									return (
										<li key={row.name}>
											<a class="name" title={row.name} href={routeHref("operators", trace.id, { "operators.q": `"${row.name}"`, steps })}>
												{row.name}
											</a>
											<span class="figure">{formatUs(own)}</span>
											<Meter label={`${row.name}, share of ${device ? "device" : "host"} time`} share={all > 0 ? own / all : 0} />
										</li>
									);
								})}
							</ul>
							<p class="panel-foot">
								<a href={routeHref("operators", trace.id, { steps })}>{`All ${operators.distinct} operators`}</a>
								<span class="soft">{`, by ${device ? "time on devices" : "self time on the CPU"}, of ${steps === undefined ? "the whole trace" : stepsText(steps)}`}</span>
							</p>
						</>
					);
				}}
			</Await>
		</section>
	);
}

