// SPDX-License-Identifier: Apache-2.0
//
// Comparison of two traces: whether a step takes longer, which part of it, and which operators.
import { useMemo } from "preact/hooks";
import { useParam } from "../app/params";
import { setParams } from "../app/route";
import type { ViewProps } from "../app/views";
import type { TraceEntry } from "../data/api";
import type { DiffCosts, DiffReply } from "../data/replies";
import { useReply } from "../data/reply";
import { formatChange, formatShare, formatUs } from "../format/units";
import { Await } from "../widgets/await";
import { Card, Cards } from "../widgets/cards";
import { Choice, Select } from "../widgets/choice";
import { Diagnostics } from "../widgets/diagnostics";
import { Pairing, type Pair } from "../widgets/pairing";
import { timelinesHref } from "../widgets/links";
import { StepChoice, useSteps } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import { FlameDiff } from "./flame_diff";
import type { Column } from "../widgets/table_model";
import { deviceTitle } from "./memory_words";
import { sidesOf } from "./runs";

export function Diff({ source, trace, traces }: ViewProps) {
	const readable = traces.filter((each) => each.state !== "failed");
	const [wantedBase] = useParam("base");
	const [wantedTo] = useParam("to");
	const { base, now } = sidesOf(trace, readable, wantedBase, wantedTo);
	const steps = useSteps();
	const reply = useReply<DiffReply>(source, base && now && `traces/${now.id}/diff`, base && { base: base.id, steps });
	if (!base || !now) {
		return (
			<div class="empty">
				<p>No other trace to compare with.</p>
				<p>
					Two traces are opened with <code>opstrobe serve BASE NEW</code>.
				</p>
			</div>
		);
	}
	const offered = (other: TraceEntry) => readable.filter((each) => each !== other).map((each) => ({ id: each.id, title: title(each, traces) }));
	return (
		<div class="view">
			<div class="tools">
				<Select label="Base" options={offered(now)} value={base.id} onChange={(id) => setParams({ base: id, to: now.id })} />
				<Select label="New" options={offered(base)} value={now.id} onChange={(id) => setParams({ base: base.id, to: id })} />
				<button type="button" onClick={() => setParams({ base: now.id, to: base.id })}>
					Swap
				</button>
				<a href={timelinesHref(base.id, now.id)}>Timelines</a>
				<span class="tools-space" />
				<StepChoice source={source} trace={now} all="All steps" />
			</div>
			{[base, now].map((side) => side.id !== trace.id && <Diagnostics key={side.id} trace={side} name={title(side, traces)} />)}
			<Await reply={reply} what="the difference">
				{(diff) => <Difference diff={diff} />}
			</Await>
			{source.kind === "http" && <FlameDiff source={source} base={base} now={now} steps={steps} />}
		</div>
	);
}

/** Returns the name of a trace, with its run if two traces share the name. */
function title(trace: TraceEntry, traces: readonly TraceEntry[]): string {
	const twice = traces.some((each) => each !== trace && each.name === trace.name);
	return twice && trace.run ? `${trace.run}/${trace.name}` : trace.name;
}

function Difference({ diff }: { diff: DiffReply }) {
	return (
		<>
			<Waits steps={diff.steps} />
			<Verdict steps={diff.steps} />
			<PerStep diff={diff} />
			<Parts diff={diff} />
			<Modules diff={diff} />
			<Operators diff={diff} />
			<Kernels diff={diff} />
			<Memory diff={diff} />
		</>
	);
}

function Waits({ steps: { left, right } }: { steps: DiffReply["steps"] }) {
	const sides = [
		{ when: "in the base", ratio: left.waited_ratio },
		{ when: "in the new trace", ratio: right.waited_ratio },
	].flatMap(({ when, ratio }) => (ratio === null ? [] : [{ when, ratio }]));
	if (!left.waited_much && !right.waited_much) return null;
	return (
		<p class="banner">
			<strong>Steps waited for a CPU</strong>
			{`: ${sides.map(({ when, ratio }) => `${formatShare(ratio)} of their time ${when}`).join(", ")}. Times are too long.`}
		</p>
	);
}

function Verdict({ steps }: { steps: DiffReply["steps"] }) {
	const { left, right, change_ratio: change, noise_ratio: noise } = steps;
	const beyond = !steps.undecided && Math.abs(change) > noise;
	const word = !beyond ? "within the noise" : change > 0 ? "slower" : "faster";
	const note = steps.undecided ? `no verdict: ${steps.no_verdict}` : `${word}; the noise is ${formatShare(noise)}`;
	return (
		<Cards>
			<Card title="Median step, base" figure={formatUs(left.median)} note={stepsText(left)} />
			<Card title="Median step, new" figure={formatUs(right.median)} note={stepsText(right)} />
			<Card
				title="Change"
				figure={formatChange(change * 100)}
				note={note}
				tone={steps.regression ? "bad" : beyond && change < 0 ? "good" : undefined}
				about="The noise is two standard errors of the difference of the medians, from step to step"
			/>
		</Cards>
	);
}

function stepsText(side: DiffReply["steps"]["left"]): string {
	return side.steps > 1 ? `${side.steps} steps, ± ${formatUs(side.deviation)}` : `${side.steps} ${side.steps === 1 ? "step" : "steps"}`;
}

const METRICS = [
	{ id: "total_duration", title: "Total", about: "Device time if there is any, else CPU time" },
	{ id: "host_duration", title: "CPU" },
	{ id: "device_duration", title: "Device" },
] as const;

/** Returns times per step, as in the text of the command. */
function partsOf(diff: DiffReply, metric: (typeof METRICS)[number]["id"]): Pair[] {
	return diff.parts.map(({ name, left, right }) => ({ name, left: left?.per_step[metric] ?? 0, right: right?.per_step[metric] ?? 0 }));
}

function Parts({ diff }: { diff: DiffReply }) {
	const [wanted, setMetric] = useParam("metric", "total_duration");
	const metric = METRICS.find((each) => each.id === wanted)?.id ?? "total_duration";
	const pairs = useMemo(() => partsOf(diff, metric), [diff, metric]);
	if (pairs.length === 0) return null;
	return (
		<section class="panel">
			<Pairing
				title="The parts of a step"
				pairs={pairs}
				tools={<Choice label="Time" options={METRICS} value={metric} onChange={setMetric} />}
			/>
		</section>
	);
}

type Row = DiffReply["operators"][number];

const NONE = { calls: 0, host_total: 0, host_self: 0, device_total: 0, device_self: 0 };
const ZERO: DiffCosts = { ...NONE, per_step: NONE };

const OPERATOR_METRICS = [
	{ id: "host_self", title: "Self CPU" },
	{ id: "host_total", title: "CPU total" },
	{ id: "device_self", title: "Self device" },
	{ id: "device_total", title: "Device total" },
] as const;

/** A name with figures of both sides: times per step, and of all steps. */
interface Compared {
	name: string;
	left: object | null;
	right: object | null;
}

interface Figures {
	calls: number;
	time: number;
	total: number;
}

function columnsOf<Of extends Compared>(title: string, figures: (row: Of, side: "left" | "right") => Figures): Column<Of>[] {
	const before = (row: Of) => figures(row, "left");
	const now = (row: Of) => figures(row, "right");
	const change = (row: Of) => now(row).time - before(row).time;
	return [
		{ id: "name", title, kind: "text", wide: true, value: (row) => row.name },
		{ id: "what", title: "What", kind: "text", groups: true, value: (row) => (row.left === null ? "new" : row.right === null ? "gone" : "in both") },
		{ id: "calls_before", title: "Base calls", kind: "number", value: (row) => before(row).calls },
		{ id: "calls_now", title: "New calls", kind: "number", value: (row) => now(row).calls },
		{ id: "before", title: "Base", kind: "us", bar: true, value: (row) => before(row).time },
		{ id: "now", title: "New", kind: "us", bar: true, value: (row) => now(row).time },
		{ id: "delta", title: "Change", kind: "us", signed: true, value: change },
		{ id: "size", title: "Size of change", kind: "us", hidden: true, value: (row) => Math.abs(change(row)) },
		{ id: "ratio", title: "Relative", kind: "share", signed: true, value: (row) => (before(row).time > 0 ? now(row).time / before(row).time - 1 : null) },
		{ id: "total_before", title: "Base total", kind: "us", hidden: true, value: (row) => before(row).total },
		{ id: "total_now", title: "New total", kind: "us", hidden: true, value: (row) => now(row).total },
	];
}

function PerStep({ diff }: { diff: DiffReply }) {
	const { left, right } = diff.steps;
	if (left.steps === 0 && right.steps === 0) return <p class="soft">Times and calls are totals of the traces, which have no steps.</p>;
	return <p class="soft">{`Times and calls are per step: totals divided by ${left.per_step_divisor} for the base and by ${right.per_step_divisor} for the new trace.`}</p>;
}

function Operators({ diff }: { diff: DiffReply }) {
	const device = diff.operators.some((row) => (row.left?.device_total ?? 0) + (row.right?.device_total ?? 0) > 0);
	const offered = OPERATOR_METRICS.filter((each) => device || each.id.startsWith("host"));
	const [wanted, setMetric] = useParam("time", device ? "device_self" : "host_self");
	const metric = offered.find((each) => each.id === wanted)?.id ?? "host_self";
	const columns = useMemo(
		() =>
			columnsOf<Row>("Operator", (row, side) => {
				const costs = row[side] ?? ZERO;
				return { calls: costs.per_step.calls, time: costs.per_step[metric], total: costs[metric] };
			}),
		[metric],
	);
	return (
		<section class="panel">
			<h2>Operators</h2>
			<Table
				id="diff"
				label="Operators of both traces"
				columns={columns}
				rows={diff.operators}
				sort="-size"
				tools={<Choice label="Time" options={offered} value={metric} onChange={setMetric} />}
				lines={18}
			/>
		</section>
	);
}

const KERNEL_COLUMNS = columnsOf<DiffReply["kernels"][number]>("Kernel", (row, side) => {
	const costs = row[side];
	return { calls: costs?.per_step.calls ?? 0, time: costs?.per_step.total ?? 0, total: costs?.total ?? 0 };
});

function Kernels({ diff }: { diff: DiffReply }) {
	if (diff.kernels.length === 0) return null;
	return (
		<section class="panel">
			<h2>Kernels</h2>
			<Table id="diff-kernels" label="Kernels of both traces" columns={KERNEL_COLUMNS} rows={diff.kernels} sort="-size" lines={18} />
		</section>
	);
}

const MODULE_COLUMNS = columnsOf<DiffReply["modules"][number]>("Module", (row, side) => {
	const sum = row[side];
	return { calls: sum?.per_step.calls ?? 0, time: sum?.per_step.total_duration ?? 0, total: sum?.total_duration ?? 0 };
});

function Modules({ diff }: { diff: DiffReply }) {
	if (diff.modules.length === 0) return null;
	return (
		<section class="panel">
			<h2>Modules</h2>
			<Table id="diff-modules" label="Modules of both traces" columns={MODULE_COLUMNS} rows={diff.modules} sort="-size" lines={18} />
		</section>
	);
}

type MemoryRow = DiffReply["memory"][number];

const MEMORY_COLUMNS: Column<MemoryRow>[] = [
	{ id: "device", title: "Device", kind: "text", value: (row) => deviceTitle(row.device) },
	{ id: "peak_before", title: "Base peak", kind: "bytes", total: "none", value: (row) => row.left.peak },
	{ id: "peak_now", title: "New peak", kind: "bytes", total: "none", value: (row) => row.right.peak },
	{ id: "peak_change", title: "Change", kind: "bytes", signed: true, total: "none", value: (row) => row.right.peak - row.left.peak },
	{ id: "allocated_before", title: "Base allocated", kind: "bytes", about: "In a step", value: (row) => row.left.allocated_per_step },
	{ id: "allocated_now", title: "New allocated", kind: "bytes", about: "In a step", value: (row) => row.right.allocated_per_step },
];

function Memory({ diff }: { diff: DiffReply }) {
	if (diff.memory.length === 0) return null;
	return (
		<section class="panel">
			<h2>Memory</h2>
			<Table id="diff-memory" label="Memory of both traces" columns={MEMORY_COLUMNS} rows={diff.memory} plain />
		</section>
	);
}
