// SPDX-License-Identifier: Apache-2.0
// What ran on devices: by kernel, or by kernel, operator and launch.
import { useMemo } from "preact/hooks";
import { routeHref } from "../app/route";
import type { ViewProps } from "../app/views";
import type { Kernel, KernelByOperator, KernelsReply } from "../data/replies";
import { TABLES } from "../data/tables";
import { grouped } from "../format/scale";
import { formatCount, formatUs } from "../format/units";
import { Card, Cards } from "../widgets/cards";
import { useRowChoice } from "../widgets/choice";
import { timelineHref } from "../widgets/links";
import { StepView } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";

type Row = Kernel & Partial<KernelByOperator>;

const TEXTS = TABLES.kernels;

const FIGURES: Column<Row>[] = [
	{ ...TEXTS.calls, id: "calls", value: (row) => row.calls },
	{ ...TEXTS.total_us, id: "total", bar: true, value: (row) => row.total },
	{ ...TEXTS.mean_us, id: "mean", total: "none", value: (row) => row.mean },
	{ ...TEXTS.max_us, id: "max", total: "max", value: (row) => row.max },
	{ ...TEXTS.min_us, id: "min", total: "none", value: (row) => row.min, hidden: true },
	{ ...TEXTS.blocks_per_sm, id: "mean_blocks_per_sm", value: (row) => row.mean_blocks_per_sm },
	{ ...TEXTS.occupancy_percent, id: "mean_est_occupancy_pct", value: (row) => row.mean_est_occupancy_pct },
	{ ...TEXTS.tensor_cores, id: "tensor_cores", kind: "flag", groups: true, value: (row) => row.tensor_cores },
];
const BY_NAME: Column<Row>[] = [
	{ ...TEXTS.name, id: "name", wide: true, value: (row) => row.name },
	{ id: "family", title: "Family", kind: "text", hidden: true, groups: true, value: (row) => kernelFamily(row.name), about: "The name without templates and arguments" },
	...FIGURES,
];
const BY_OPERATOR: Column<Row>[] = [
	{ ...TEXTS.name, id: "name", wide: true, groups: true, value: (row) => row.name },
	{ ...TEXTS.operator, id: "operator", groups: true, value: (row) => row.operator ?? null },
	{ ...TEXTS.grid, id: "grid", value: (row) => row.grid ?? null },
	{ ...TEXTS.block, id: "block", value: (row) => row.block ?? null },
	{ id: "registers", title: "Registers", kind: "count", total: "none", value: (row) => row.registers_per_thread ?? null, about: "Registers of each thread" },
	{ id: "shared_memory", title: "Shared memory", kind: "bytes", total: "none", value: (row) => row.shared_memory ?? null, about: "Bytes of each block" },
	...FIGURES,
	{ id: "op_tc_eligible", title: "Could use tensor cores", kind: "flag", hidden: true, value: (row) => row.op_tc_eligible ?? null },
];

/** "at::native::reduce_kernel" of "void at::native::reduce_kernel<512, …>(…)". */
export function kernelFamily(name: string): string {
	const plain = name.replace(/^(?:void|std::enable_if<.*>::type) /, "").replaceAll("(anonymous namespace)::", "");
	return /^[^<(]+/.exec(plain)?.[0].trim() ?? name;
}

export function Kernels({ source, trace }: ViewProps) {
	const [by, rowChoice] = useRowChoice([
		{ id: "name", title: "By kernel" },
		{ id: "operator", title: "By operator and launch" },
	]);
	return (
		<StepView<KernelsReply> source={source} trace={trace} path="views" query={{ parts: "flags,tensor_cores,kernels,kernels_by_op" }} what="the kernels" tools={rowChoice}>
			{(data) => <KernelTable trace={trace.id} reply={data} byOperator={by === "operator"} />}
		</StepView>
	);
}

function KernelTable({ trace, reply, byOperator }: { trace: string; reply: KernelsReply; byOperator: boolean }) {
	const { kernels, kernels_by_op: byOp, tensor_cores: tensor } = reply;
	const rows = useMemo<Row[]>(() => (byOperator ? (byOp?.rows ?? []) : (kernels?.rows ?? [])), [reply, byOperator]);
	if (!kernels) {
		return (
			<div class="empty">
				<p>No kernels are in the trace.</p>
				<p>They are recorded where work runs on a GPU and the profiler’s activities include the device.</p>
			</div>
		);
	}
	return (
		<>
			<Cards>
				<Card title="Kernel time" figure={formatUs(kernels.total)} note={`${formatCount(kernels.calls)} launches of ${kernels.distinct} kernels`} />
				{tensor.used_ratio !== null && (
					<Card
						title="On tensor cores"
						figure={`${grouped(tensor.used_ratio * 100, 1)} %`}
						share={tensor.used_ratio}
						note={tensor.eligible_ops_kernel_ratio === null ? undefined : `operators with ${grouped(tensor.eligible_ops_kernel_ratio * 100, 1)} % of kernel time could use them`}
					/>
				)}
			</Cards>
			{byOperator && byOp && byOp.distinct > byOp.rows.length && (
				<p class="soft">{`The ${formatCount(byOp.rows.length)} that take most time, of ${formatCount(byOp.distinct)}.`}</p>
			)}
			<Table
				id="kernels"
				label={byOperator ? "Kernels by operator" : "Kernels"}
				columns={byOperator ? BY_OPERATOR : BY_NAME}
				rows={rows}
				sort="-total"
				href={(row) => timelineHref(trace, { find: row.name })}
				detail={(row) => <KernelDetail trace={trace} row={row} />}
				lines={20}
			/>
		</>
	);
}

function KernelDetail({ trace, row }: { trace: string; row: Row }) {
	return (
		<>
			<h3 class="long mono">{row.name}</h3>
			<p class="detail-links">
				<a href={timelineHref(trace, { find: row.name })}>Its launches in the timeline</a>
				{row.operator && <a href={routeHref("operators", trace, { "operators.q": `"${row.operator}"` })}>{row.operator}</a>}
			</p>
		</>
	);
}
