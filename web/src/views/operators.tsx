// SPDX-License-Identifier: Apache-2.0
// Operators by name, or by name and the shapes of their inputs.
import { useMemo } from "preact/hooks";
import { routeHref } from "../app/route";
import type { ViewProps } from "../app/views";
import type { Operator, OperatorsReply } from "../data/replies";
import { formatCount, formatUs } from "../format/units";
import { useRowChoice } from "../widgets/choice";
import { timelineHref } from "../widgets/links";
import { StepView } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import { Pairs } from "../widgets/tooltip";

type Row = Operator & { stacks: number | null };

const HOST: Column<Row>[] = [
	{ id: "calls", title: "Calls", kind: "count", value: (row) => row.calls },
	{ id: "host_self", title: "CPU self", kind: "us", bar: true, value: (row) => row.host_self, about: "Time on the CPU without the operators and runtime calls inside" },
	{ id: "host_total", title: "CPU total", kind: "us", value: (row) => row.host_total, total: "none", about: "Time on the CPU with all inside; of calls inside one another each counts" },
];
const DEVICE: Column<Row>[] = [
	{ id: "device_self", title: "Device self", kind: "us", bar: true, value: (row) => row.device_self, about: "Time of the device work that the operator itself started" },
	{ id: "device_total", title: "Device total", kind: "us", value: (row) => row.device_total, total: "none", about: "The same with the operators inside" },
];
const TENSOR: Column<Row>[] = [
	{ id: "tc_eligible", title: "Could use tensor cores", kind: "flag", hidden: true, value: (row) => row.tc_eligible },
	{ id: "tc_self_pct", title: "Tensor cores self", kind: "pct", value: (row) => row.tc_self_pct, about: "The share of its own device time that is on tensor cores" },
	{ id: "tc_total_pct", title: "Tensor cores total", kind: "pct", hidden: true, value: (row) => row.tc_total_pct },
];

function columnsFor(reply: OperatorsReply, byShape: boolean): Column<Row>[] {
	const { flags } = reply;
	const device = flags.has_kernel || flags.has_memcpy_or_memset;
	const columns: Column<Row>[] = [
		{ id: "name", title: "Operator", kind: "text", wide: true, value: (row) => row.name },
		{ id: "family", title: "Family", kind: "text", hidden: true, groups: true, value: (row) => familyOf(row.name) },
	];
	if (byShape) {
		columns[0]!.groups = true;
		columns.push({ id: "input_shape", title: "Input shapes", kind: "text", wide: true, groups: true, value: (row) => row.input_shape ?? null });
	}
	columns.push(...HOST.slice(0, 1), ...(device ? DEVICE : []), ...HOST.slice(1), ...(device ? TENSOR : []));
	if (Object.keys(reply.call_stacks.per_operator).length > 0) {
		columns.push({ id: "stacks", title: "Call stacks", kind: "count", value: (row) => row.stacks, about: "From how many places it is called" });
	}
	return columns;
}

/** "aten" of "aten::add", "autograd" of "AddBackward0". */
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
			query={{ parts: "flags,operators,operators_by_input_shape,call_stacks" }}
			what="the operators"
			tools={rowChoice}
		>
			{(data) => <OperatorTable trace={trace.id} reply={data} byShape={by === "shape"} />}
		</StepView>
	);
}

function OperatorTable({ trace, reply, byShape }: { trace: string; reply: OperatorsReply; byShape: boolean }) {
	const { flags, operators, operators_by_input_shape: shapes, call_stacks: stacks } = reply;
	const columns = useMemo(() => columnsFor(reply, byShape), [reply, byShape]);
	const rows = useMemo<Row[]>(
		() => (byShape ? shapes.rows : operators.rows).map((row) => ({ ...row, stacks: stacks.per_operator[row.name] ?? null })),
		[reply, byShape],
	);
	const device = flags.has_kernel || flags.has_memcpy_or_memset;
	return (
		<>
			{byShape && shapes.distinct > shapes.rows.length && (
				<p class="soft">{`The ${formatCount(shapes.rows.length)} that take most time, of ${formatCount(shapes.distinct)}.`}</p>
			)}
			<Table
				id="operators"
				label={byShape ? "Operators by input shapes" : "Operators"}
				columns={columns}
				rows={rows}
				sort={device ? "-device_self" : "-host_self"}
				href={(row) => timelineHref(trace, { find: row.name })}
				detail={(row) => <OperatorDetail trace={trace} row={row} device={device} />}
				empty="No operators are in the trace: it was recorded without the activity CPU."
				lines={22}
			/>
		</>
	);
}

function OperatorDetail({ trace, row, device }: { trace: string; row: Row; device: boolean }) {
	return (
		<>
			<h3 class="long">{row.name}</h3>
			{row.input_shape !== undefined && <p class="mono long">{row.input_shape}</p>}
			<Pairs
				pairs={[
					["a call, CPU total", formatUs(row.host_total / Math.max(1, row.calls))],
					["a call, CPU self", formatUs(row.host_self / Math.max(1, row.calls))],
					...(device ? [["a call, device", formatUs(row.device_total / Math.max(1, row.calls))] satisfies [string, string]] : []),
				]}
			/>
			<p class="detail-links">
				<a href={timelineHref(trace, { find: row.name })}>Its calls in the timeline</a>
				<a href={routeHref("stacks", trace, { function: row.name })}>What calls it</a>
				{device && <a href={routeHref("kernels", trace, { by: "operator", "kernels.q": `"${row.name}"` })}>Its kernels</a>}
			</p>
		</>
	);
}
