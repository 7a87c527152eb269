// SPDX-License-Identifier: Apache-2.0
//
// The report of an incident: what happened, why, the differences from earlier steps, and where each thread was.
import { routeHref } from "../app/route";
import { views } from "../app/views";
import type { TraceEntry } from "../data/api";
import type { IncidentReply, IncidentThread, MemoryShare, StackFrame, TableReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";
import { moduleName } from "../format/module_name";
import { formatBytes, formatCount, formatNs, formatShare } from "../format/units";
import { Await } from "../widgets/await";
import { baseName, timelineHref } from "../widgets/links";
import { incidentHref } from "./incidents";
import { categoryTitle, deviceTitle } from "./memory_words";
import { named, Shares } from "./peak";
import { MoreThanUsual } from "./slow_steps";

interface IncidentProps {
	source: DataSource;
	id: string;
	/** The trace of the recording before it. */
	trace: TraceEntry | undefined;
}

export function Incident({ source, id, trace }: IncidentProps) {
	const reply = useReply<IncidentReply>(source, `incidents/${encodeURIComponent(id)}`);
	return (
		<div class="view incident">
			<p>
				<a href={incidentHref("")}>All incidents</a>
			</p>
			<Await reply={reply} what="the report">
				{(report) => (
					<>
						<Head report={report} trace={trace} />
						<Difference report={report} trace={trace} />
						<Over report={report} />
						<Sampled report={report} />
						<End report={report} />
						<Threads report={report} />
						<Memory report={report} />
						<Suppressed report={report} />
					</>
				)}
			</Await>
		</div>
	);
}

function Head({ report, trace }: { report: IncidentReply; trace: TraceEntry | undefined }) {
	const { step } = report;
	const facts: [string, string][] = [
		["When", `${new Date(report.time_ns / 1e6).toISOString().replace("T", " ").slice(0, 19)} UTC`],
		["Process", `${report.process} (${report.pid})${report.host ? ` on ${report.host}` : ""}${report.rank === null ? "" : `, rank ${report.rank} of ${report.world_size}`}`],
		["Command", report.command],
	];
	if (step) facts.push(["Step", `${step.number}, ${step.goes_on ? "under way for" : "took"} ${formatNs(step.duration_ns)}${step.usual_ns > 0 ? `, usually ${formatNs(step.usual_ns)}` : ""}`]);
	if (report.overhead_text !== undefined) facts.push(["Overhead", report.overhead_text]);
	if (report.detail_text !== undefined) facts.push(["Detail", report.detail_text]);
	return (
		<section class="panel" aria-label="Cause">
			<h2>{report.title}</h2>
			<p class="incident-cause">
				<strong>Cause:</strong> {report.cause}
			</p>
			<dl class="incident-facts">
				{facts
					.filter(([, text]) => text !== "")
					.map(([name, text]) => (
						<div key={name}>
							<dt>{name}</dt>
							<dd>{text}</dd>
						</div>
					))}
			</dl>
			{trace ? <TraceLinks trace={trace} step={step?.number} /> : <p class="soft">No trace was kept.</p>}
		</section>
	);
}

/** The recording before the incident is a trace like any other. */
function TraceLinks({ trace, step }: { trace: TraceEntry; step: number | undefined }) {
	return (
		<p>
			{"Recorded before it: "}
			{step !== undefined && (
				<>
					<a href={routeHref("timeline", trace.id, { step })}>{`Step ${step} in the timeline`}</a>
					{", "}
				</>
			)}
			{["overview", "timeline", "memory", "stacks"].map((id, i) => (
				<span key={id}>
					{i > 0 && ", "}
					<a href={routeHref(id, trace.id)}>{views.find((view) => view.id === id)?.title}</a>
				</span>
			))}
		</p>
	);
}

function Difference({ report, trace }: { report: IncidentReply; trace: TraceEntry | undefined }) {
	if (!report.difference) return null;
	return (
		<section class="panel" aria-label="More than in other steps">
			<h2>More than in other steps</h2>
			<MoreThanUsual outlier={report.difference} href={(event) => trace && timelineHref(trace.id, { find: `"${event}"` })} />
			{report.difference_text && <p class="panel-foot soft">{`${report.difference_text}.`}</p>}
		</section>
	);
}

function Over({ report }: { report: IncidentReply }) {
	const { over, meanwhile = [], sample_count: samples = 0 } = report;
	if (!over && meanwhile.length === 0) return null;
	return (
		<section class="panel" aria-label="While it was too long">
			<h2>While it was too long</h2>
			{over && (
				<p>{`${formatNs(over.duration_ns)}: its thread ran for ${formatNs(over.ran_ns)}, waited for a CPU for ${formatNs(over.waited_ns)}, and collected garbage for ${formatNs(over.collecting_ns)}. Page faults: ${formatCount(over.major_faults)} from a disk, ${formatCount(over.minor_faults)} others.`}</p>
			)}
			<ul>
				{meanwhile.filter(({ count }) => 200 * count >= samples).slice(0, 5).map(({ count, doing, where }, i) => (
					<li key={i}>
						{`${formatShare(count / Math.max(samples, 1))} ${doing}`}
						{where && (
							<>
								{" at "}
								<Frame frame={where} />
							</>
						)}
					</li>
				))}
			</ul>
		</section>
	);
}

function Sampled({ report: { sampled } }: { report: IncidentReply }) {
	if (!sampled) return null;
	return (
		<section class="panel" aria-label="Sampled stacks of its thread">
			<h2>Sampled stacks of its thread</h2>
			<p class="soft">{`${formatCount(sampled.samples)} samples of the step and ${formatCount(sampled.usual_samples)} of ${formatCount(sampled.usual_steps)} other steps, one each ${formatNs(sampled.period_ns)} of wall-clock time, whether the thread ran or waited`}</p>
			<ul>
				{sampled.places.map(({ doing, where, share, usual_share: usual }, i) => (
					<li key={i}>
						{`${formatShare(share)} (${formatShare(usual)} in other steps) ${doing}`}
						{where && (
							<>
								{" at "}
								<Frame frame={where} />
							</>
						)}
					</li>
				))}
			</ul>
		</section>
	);
}

function End({ report }: { report: IncidentReply }) {
	const stack = (report.signal ?? report.exit ?? report.exception)?.python ?? [];
	if (stack.length === 0) return null;
	return (
		<section class="panel" aria-label="Where it ended">
			<h2>Where it ended</h2>
			<Stack frames={stack} launchers={report.end_launchers} />
		</section>
	);
}

function Threads({ report }: { report: IncidentReply }) {
	const { threads = [], thread_doings: doings = [], thread_launchers: launchers = [], thread_native: native = [], open_events: open } = report;
	if (threads.length === 0) return null;
	return (
		<section class="panel" aria-label="Threads">
			<h2>Threads</h2>
			{threads.map((thread, i) => (
				<Thread key={i} thread={thread} doing={doings[i]} launchers={launchers[i]} native={native[i] ?? []} within={open.filter((event) => event.tid === thread.tid).map((event) => event.name)} open={thread.is_main || threads.length < 3} />
			))}
		</section>
	);
}

function Thread({ thread, doing, launchers, native, within, open }: { thread: IncidentThread; doing: string | undefined; launchers: number | undefined; native: readonly StackFrame[]; within: readonly string[]; open: boolean }) {
	return (
		<details open={open}>
			<summary>
				{[`${thread.tid} ${thread.name}`, thread.is_main && "main", thread.has_gil && "has the GIL"].filter(Boolean).join(", ")}
				{doing && `: ${doing}`}
			</summary>
			{within.length > 0 && (
				<p class="soft">
					{"In "}
					<code>{within.join(" in ")}</code>
				</p>
			)}
			{native.length > 0 && (
				<>
					<p class="soft">C functions</p>
					<Frames frames={native} />
					<p class="soft">Python functions</p>
				</>
			)}
			<Stack frames={thread.python ?? []} launchers={launchers} />
		</details>
	);
}

/** A stack. The outermost frames only start the program or the thread: they are folded. */
function Stack({ frames, launchers = 0 }: { frames: readonly StackFrame[]; launchers?: number | undefined }) {
	const own = frames.length - launchers;
	return (
		<>
			<Frames frames={frames.slice(0, own)} />
			{launchers > 0 && (
				<details>
					<summary class="soft">{`${launchers === 1 ? "1 frame starts" : `${launchers} frames start`} the program or the thread`}</summary>
					<Frames frames={frames.slice(own)} />
				</details>
			)}
		</>
	);
}

function Frames({ frames }: { frames: readonly StackFrame[] }) {
	return (
		<ol class="incident-stack">
			{frames.map((frame, i) => (
				<li key={i}>
					<Frame frame={frame} />
				</li>
			))}
		</ol>
	);
}

function Frame({ frame }: { frame: StackFrame }) {
	return (
		<>
			<code title={frame.file}>{frame.line ? `${baseName(frame.file)}:${frame.line}` : baseName(frame.file)}</code>
			{frame.function && (
				<>
					{" in "}
					<code>{frame.function}</code>
				</>
			)}
		</>
	);
}

const HOLDERS: [by: string, title: string, name: (share: MemoryShare) => string][] = [
	["category", "By category", (share) => categoryTitle(share.name ?? "")],
	["module", "By module", (share) => moduleName(named(share, "outside modules"))],
	["line", "By line", (share) => (share.file ? `${baseName(share.file)}:${share.line ?? ""}` : "unknown")],
	["operator", "By operator", (share) => named(share, "outside operators")],
	["shape", "By shape", (share) => named(share, "unknown")],
];

function Memory({ report }: { report: IncidentReply }) {
	const { memory } = report;
	if (!memory) return null;
	const growth = memory.growth_per_step_bytes;
	return (
		<section class="panel" aria-label="Memory">
			<h2>Memory at the peak</h2>
			{growth !== null && <p>{`A step adds ${formatBytes(growth)} (median).`}</p>}
			{memory.held && <Holders {...memory.held} />}
		</section>
	);
}

function Holders({ table }: TableReply) {
	const at = (name: string) => table.columns.indexOf(name);
	const held = table.rows.map((row) => {
		const [device, by, name, line, bytes, blocks] = ["device", "held_by", "name", "line", "bytes", "blocks"].map((column) => row[at(column)]);
		const share: MemoryShare = { name: String(name ?? ""), bytes: Number(bytes), blocks: Number(blocks), ...(by === "line" && name ? { file: String(name), line: Number(line) } : {}) };
		return { device, by, share };
	});
	return (
		<>
			{held
				.filter((each) => each.by === "all")
				.map(({ device, share: all }) => (
					<div key={device}>
						<h3>{`${deviceTitle(String(device))}: ${formatBytes(all.bytes)}`}</h3>
						<div class="shares">
							{HOLDERS.map(([by, title, name]) => (
								<Shares key={by} title={title} shares={held.filter((each) => each.device === device && each.by === by).map((each) => each.share)} all={all.bytes} name={name} />
							))}
						</div>
					</div>
				))}
		</>
	);
}

function Suppressed({ report }: { report: IncidentReply }) {
	const kinds = Object.entries(report.suppressed ?? {});
	if (kinds.length === 0) return null;
	return <p class="soft">{`Dropped earlier, because there were too many: ${kinds.map(([kind, count]) => `${count} ${kind}`).join(", ")}.`}</p>;
}
