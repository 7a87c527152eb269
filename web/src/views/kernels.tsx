// SPDX-License-Identifier: Apache-2.0
// What ran on devices: by kernel, by kernel, operator and launch, or by category.
import { useMemo } from "preact/hooks";
import { routeHref } from "../app/route";
import type { ViewProps } from "../app/views";
import type { Kernel, KernelByOperator, KernelCategory, KernelsReply } from "../data/replies";
import { TABLES } from "../data/tables";
import { kernelNames } from "../format/kernel_name";
import type { DataSource } from "../data/source";
import { formatCount, formatShare, formatUs } from "../format/units";
import { Calls } from "../widgets/calls";
import { Card, Cards } from "../widgets/cards";
import { useRowChoice } from "../widgets/choice";
import { timelineHref } from "../widgets/links";
import { StepView } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";

type Row = Kernel & Partial<KernelByOperator> & { share: number; shown: string };

const shownName = (row: Row) => row.shown;

const TEXTS = TABLES.kernels;

const FIGURES: Column<Row>[] = [
	{ ...TEXTS.calls, id: "calls", value: (row) => row.calls },
	{ ...TEXTS.total_us, id: "total", bar: true, value: (row) => row.total },
	{ ...TEXTS.percent, id: "share", kind: "share", total: "sum", value: (row) => row.share },
	{ ...TEXTS.step_us, id: "step_total", value: (row) => row.step_total },
	{ ...TEXTS.step_calls, id: "step_calls", hidden: true, value: (row) => row.step_calls },
	{ ...TEXTS.mean_us, id: "mean", total: "none", value: (row) => row.mean },
	{ ...TEXTS.max_us, id: "max", total: "max", value: (row) => row.max },
	{ ...TEXTS.min_us, id: "min", total: "none", value: (row) => row.min, hidden: true },
	{ ...TEXTS.blocks_per_sm, id: "mean_blocks_per_sm", value: (row) => row.mean_blocks_per_sm },
	{ ...TEXTS.occupancy_percent, id: "mean_est_occupancy_pct", value: (row) => row.mean_est_occupancy_pct },
	{ ...TEXTS.tensor_cores, id: "tensor_cores", kind: "flag", groups: true, value: (row) => row.tensor_cores },
];
const BY_NAME: Column<Row>[] = [
	{ ...TEXTS.name, id: "name", wide: true, value: (row) => row.name, shown: shownName },
	{ id: "family", title: "Family", kind: "text", hidden: true, groups: true, value: (row) => row.short_name, about: "The name without template arguments" },
	...FIGURES,
];
/** Next to the columns of a launch there is no room for these, so they are only in the menu of columns. */
const MORE: ReadonlySet<string> = new Set(["step_total", "mean_blocks_per_sm"]);
const BY_OPERATOR: Column<Row>[] = [
	{ ...TEXTS.name, id: "name", wide: true, groups: true, value: (row) => row.name, shown: shownName },
	{ ...TEXTS.operator, id: "operator", groups: true, value: (row) => row.operator ?? null },
	{ ...TEXTS.grid, id: "grid", value: (row) => row.grid ?? null },
	{ ...TEXTS.block, id: "block", value: (row) => row.block ?? null },
	{ id: "registers", title: "Registers", kind: "count", total: "none", hidden: true, value: (row) => row.registers_per_thread ?? null, about: "Registers of each thread" },
	{ id: "shared_memory", title: "Shared memory", kind: "bytes", total: "none", hidden: true, value: (row) => row.shared_memory ?? null, about: "Bytes of each block" },
	...FIGURES.map((column) => (MORE.has(column.id) ? { ...column, hidden: true } : column)),
	{ id: "op_tc_eligible", title: "Could use tensor cores", kind: "flag", hidden: true, value: (row) => row.op_tc_eligible ?? null },
];

const CATEGORY_TEXTS = TABLES.kernel_categories;
const BY_CATEGORY: Column<KernelCategory>[] = [
	{ ...CATEGORY_TEXTS.category, id: "category", wide: true, value: (row) => row.category, shown: (row) => row.category.replace("_", " ") },
	{ ...CATEGORY_TEXTS.calls, id: "calls", value: (row) => row.calls },
	{ ...CATEGORY_TEXTS.total_us, id: "total", bar: true, value: (row) => row.total },
	{ ...CATEGORY_TEXTS.percent, id: "share", kind: "share", total: "sum", value: (row) => row.share },
	{ ...CATEGORY_TEXTS.step_us, id: "step_total", value: (row) => row.step_total },
	{ ...CATEGORY_TEXTS.step_calls, id: "step_calls", value: (row) => row.step_calls },
];

export function Kernels({ source, trace }: ViewProps) {
	const [by, rowChoice] = useRowChoice([
		{ id: "name", title: "By kernel" },
		{ id: "operator", title: "By operator and launch" },
		{ id: "category", title: "By category" },
	]);
	return (
		<StepView<KernelsReply> source={source} trace={trace} path="views" query={{ parts: "flags,steps,tensor_cores,kernels,kernels_by_op,kernels_by_category" }} what="the kernels" tools={rowChoice}>
			{(data) => <KernelTable source={source} trace={trace.id} reply={data} by={by} />}
		</StepView>
	);
}

function KernelTable({ source, trace, reply, by }: { source: DataSource; trace: string; reply: KernelsReply; by: string }) {
	const byOperator = by === "operator";
	const { kernels, kernels_by_op: byOp, tensor_cores: tensor } = reply;
	const rows = useMemo<Row[]>(() => {
		const all = kernels?.total ?? 0;
		const names = kernelNames(kernels?.rows ?? []);
		return (byOperator ? (byOp?.rows ?? []) : (kernels?.rows ?? [])).map((row) => ({
			...row,
			share: all > 0 ? row.total / all : 0,
			shown: names.get(row.name) ?? row.short_name,
		}));
	}, [reply, byOperator]);
	if (!kernels) {
		return (
			<div class="empty">
				<p>No GPU activity.</p>
				<p>Kernels are recorded if the program uses a GPU and the profiler’s activities include the device.</p>
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
						figure={formatShare(tensor.used_ratio)}
						share={tensor.used_ratio}
						note={tensor.eligible_ops_kernel_ratio === null ? undefined : `operators with ${formatShare(tensor.eligible_ops_kernel_ratio)} of kernel time could use them`}
					/>
				)}
			</Cards>
			{byOperator && byOp && byOp.distinct > byOp.rows.length && (
				<p class="soft">{`The ${formatCount(byOp.rows.length)} with the most time, of ${formatCount(byOp.distinct)}.`}</p>
			)}
			{by === "category" ? (
				<CategoryTable reply={reply} />
			) : (
				<Table
					id="kernels"
					label={byOperator ? "Kernels by operator" : "Kernels"}
					columns={(byOperator ? BY_OPERATOR : BY_NAME).filter((column) => column.id !== "step_total" || reply.steps.rows.length > 1)}
					rows={rows}
					sort="-total"
					href={(row) => timelineHref(trace, { find: row.name })}
					detail={(row) => <KernelDetail source={source} trace={trace} row={row} />}
					lines={20}
				/>
			)}
		</>
	);
}

function CategoryTable({ reply }: { reply: KernelsReply }) {
	const steps = reply.steps.rows.length > 1;
	return (
		<Table
			id="categories"
			label="Device work by category"
			columns={BY_CATEGORY.filter((column) => steps || !column.id.startsWith("step_"))}
			rows={reply.kernels_by_category ?? []}
			sort="-total"
			lines={20}
		/>
	);
}

function KernelDetail({ source, trace, row }: { source: DataSource; trace: string; row: Row }) {
	return (
		<>
			<h3 class="long mono">{row.name}</h3>
			<Calls source={source} trace={trace} of={{ name: row.name }} />
			<p class="detail-links">
				<a href={timelineHref(trace, { find: row.name })}>Its launches in the timeline</a>
				{row.operator && <a href={routeHref("operators", trace, { "operators.q": `"${row.operator}"` })}>{row.operator}</a>}
			</p>
		</>
	);
}
