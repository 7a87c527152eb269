// SPDX-License-Identifier: Apache-2.0
// Operators by name, or by name and the shapes of their inputs.
import { useMemo } from "preact/hooks";
import { routeHref } from "../app/route";
import type { ViewProps } from "../app/views";
import type { Operator, OperatorsReply } from "../data/replies";
import type { DataSource } from "../data/source";
import { formatCount, formatUs } from "../format/units";
import { Calls } from "../widgets/calls";
import { useRowChoice } from "../widgets/choice";
import { baseName, timelineHref } from "../widgets/links";
import { StepView, useSameSteps } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import { Pairs } from "../widgets/tooltip";

type Row = Operator & { stacks: number | null; self: number; share: number };

const CALLS: Column<Row> = { id: "calls", title: "Calls", kind: "count", value: (row) => row.calls };
const HOST: Column<Row>[] = [
	{ id: "host_self", title: "Self CPU", kind: "us", bar: true, value: (row) => row.host_self, about: "Time on the CPU without the operators and runtime calls inside" },
	{ id: "host_total", title: "CPU total", kind: "us", value: (row) => row.host_total, total: "none", about: "Time on the CPU with the calls inside; recursive calls count separately" },
	{ id: "host_mean", title: "Mean", kind: "us", value: (row) => row.host_total / Math.max(1, row.calls), total: "none", about: "CPU total of a call" },
	{ id: "host_min", title: "Shortest", kind: "us", value: (row) => row.host_min, total: "none", hidden: true, about: "CPU total of the shortest call" },
	{ id: "host_max", title: "Longest", kind: "us", value: (row) => row.host_max, total: "max", about: "CPU total of the longest call" },
];
const DEVICE: Column<Row>[] = [
	{ id: "device_self", title: "Self device", kind: "us", bar: true, value: (row) => row.device_self, about: "Time of the device work that the operator itself started" },
	{ id: "device_total", title: "Device total", kind: "us", value: (row) => row.device_total, total: "none", about: "Time of the device work that the operator and those inside it started" },
];
const PER_STEP: Column<Row>[] = [
	{ id: "step_calls", title: "Calls per step", kind: "number", hidden: true, value: (row) => row.step_calls },
	{ id: "step_self", title: "Per step", kind: "us", value: (row) => row.step_self, about: "Mean over the steps of the self time in them, on the device where the trace has one" },
];
const MEMORY: Column<Row>[] = [
	{ id: "memory", title: "Self CPU memory", kind: "bytes", value: (row) => row.self_cpu_memory_bytes, about: "What the calls themselves allocated on the CPU, less what they freed" },
	{ id: "device_memory", title: "Self device memory", kind: "bytes", value: (row) => row.self_device_memory_bytes, about: "What the calls themselves allocated on devices, less what they freed" },
];
const FLOPS: Column<Row>[] = [
	{ id: "flops", title: "FLOPs", kind: "flops", value: (row) => row.flops || null, about: "Floating-point operations, estimated from input shapes" },
	{ id: "flops_per_s", title: "FLOP/s", kind: "flops", total: "none", value: (row) => flopRate(row), about: "FLOPs over the total time, on the device if there is one" },
];
const TENSOR: Column<Row>[] = [
	{ id: "tc_eligible", title: "Could use tensor cores", kind: "flag", hidden: true, value: (row) => row.tc_eligible },
	{ id: "tc_self_pct", title: "Tensor cores", kind: "pct", value: (row) => row.tc_self_pct, about: "Share of its self device time that is on tensor cores" },
	{ id: "tc_total_pct", title: "Tensor cores total", kind: "pct", hidden: true, value: (row) => row.tc_total_pct },
];

function flopRate(row: Row): number | null {
	const us = row.device_total > 0 ? row.device_total : row.host_total;
	return row.flops > 0 && us > 0 ? Math.round((row.flops / us) * 1e6) : null;
}

function columnsFor(reply: OperatorsReply, byShape: boolean): Column<Row>[] {
	const { flags } = reply;
	const device = flags.has_kernel || flags.has_memcpy_or_memset;
	/** With a device there are more columns than fit into a window, so those of the CPU are only in the menu of
	 * columns. */
	const less = (column: Column<Row>): Column<Row> => (device ? { ...column, hidden: true } : column);
	const columns: Column<Row>[] = [
		{ id: "name", title: "Operator", kind: "text", wide: true, value: (row) => row.name },
		{ id: "family", title: "Family", kind: "text", hidden: true, groups: true, value: (row) => familyOf(row.name) },
	];
	if (byShape) {
		columns[0]!.groups = true;
		columns.push({ id: "input_shape", title: "Input shapes", kind: "text", wide: true, groups: true, value: (row) => row.input_shape ?? null });
	}
	if (reply.operators.rows.some((row) => row.line !== null))
		columns.push({ id: "line", title: "Line", kind: "text", value: (row) => row.line, shown: (row) => baseName(row.line ?? "") + (row.lines > 1 ? ` +${row.lines - 1}` : ""), about: "Line with most of the self time; “+2”: two more lines call it. The details of a row list them" });
	const [host_self, ...host] = HOST;
	columns.push(CALLS, device ? DEVICE[0]! : host_self!);
	columns.push({ id: "share", title: "Of operators", kind: "share", value: (row) => row.share, total: "sum", about: `Of the self time of all operators on ${device ? "devices" : "the CPU, on all threads"}` });
	if (device) columns.push(DEVICE[1]!, host_self!);
	columns.push(...host.map(less));
	if (reply.steps.rows.length > 1) columns.push(...PER_STEP);
	const { rows } = reply.operators;
	columns.push(...MEMORY.filter((column) => rows.some((row) => row[column.id === "memory" ? "self_cpu_memory_bytes" : "self_device_memory_bytes"] !== 0)).map(less));
	if (rows.some((row) => row.flops > 0)) columns.push(...FLOPS);
	if (device) columns.push(...TENSOR);
	if (Object.keys(reply.call_stacks.per_operator).length > 0) {
		columns.push({ id: "stacks", title: "Stacks", kind: "count", value: (row) => row.stacks, about: "Number of call stacks that contain it" });
	}
	return columns;
}

/** Returns "aten" for "aten::add", "autograd" for "AddBackward0". */
export function familyOf(name: string): string {
	const space = /^(\w+(?:::\w+)*)::/.exec(name)?.[1];
	if (space) return space;
	if (/Backward\d*$/.test(name)) return "autograd";
	return name.includes(".") ? (/^[^.#]+/.exec(name)?.[0] ?? name) : "other";
}

export function Operators({ source, trace }: ViewProps) {
	const [by, rowChoice] = useRowChoice([
		{ id: "name", title: "By name" },
		{ id: "shape", title: "By name and input shapes" },
	]);
	return (
		<StepView<OperatorsReply>
			source={source}
			trace={trace}
			path="views"
			query={{ parts: "flags,steps,operators,operators_by_input_shape,call_stacks" }}
			what="the operators"
			tools={rowChoice}
		>
			{(data) => <OperatorTable source={source} trace={trace.id} reply={data} byShape={by === "shape"} />}
		</StepView>
	);
}

function OperatorTable({ source, trace, reply, byShape }: { source: DataSource; trace: string; reply: OperatorsReply; byShape: boolean }) {
	const { flags, operators, operators_by_input_shape: shapes, call_stacks: stacks } = reply;
	const columns = useMemo(() => columnsFor(reply, byShape), [reply, byShape]);
	const device = flags.has_kernel || flags.has_memcpy_or_memset;
	const rows = useMemo<Row[]>(() => {
		const self = device ? "device_self" : "host_self";
		const all = operators.rows.reduce((sum, row) => sum + row[self], 0);
		return (byShape ? shapes.rows : operators.rows).map((row) => ({
			...row,
			stacks: stacks.per_operator[row.name] ?? null,
			self: row[self],
			share: all > 0 ? row[self] / all : 0,
		}));
	}, [reply, byShape]);
	return (
		<>
			{byShape && shapes.distinct > shapes.rows.length && (
				<p class="soft">{`The ${formatCount(shapes.rows.length)} with the most time, of ${formatCount(shapes.distinct)}.`}</p>
			)}
			<Table
				id="operators"
				label={byShape ? "Operators by input shapes" : "Operators"}
				columns={columns}
				rows={rows}
				sort={device ? "-device_self" : "-host_self"}
				href={(row) => timelineHref(trace, { find: row.name })}
				detail={(row) => <OperatorDetail source={source} trace={trace} row={row} device={device} />}
				empty="No operators. Record the activity CPU to see them."
				lines={22}
			/>
		</>
	);
}

function OperatorDetail({ source, trace, row, device }: { source: DataSource; trace: string; row: Row; device: boolean }) {
	return (
		<>
			<h3 class="long">{row.name}</h3>
			{row.input_shape !== undefined && <p class="mono long">{row.input_shape}</p>}
			<Pairs
				pairs={[
					["Self CPU, mean", formatUs(row.host_self / Math.max(1, row.calls))],
					...(device ? [["Device total, mean", formatUs(row.device_total / Math.max(1, row.calls))] satisfies [string, string]] : []),
				]}
			/>
			<Calls source={source} trace={trace} of={{ name: row.name }} />
			<p class="detail-links">
				<a href={timelineHref(trace, { find: row.name })}>Its calls in the timeline</a>
				<a href={routeHref("stacks", trace, { function: row.name, ...useSameSteps() })}>What calls it</a>
				{device && <a href={routeHref("kernels", trace, { by: "operator", "kernels.q": `"${row.name}"` })}>Its kernels</a>}
			</p>
		</>
	);
}
