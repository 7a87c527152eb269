// SPDX-License-Identifier: Apache-2.0
//
// Operators and kernels compared with the roof: the work that their shapes require, and how close they are to the
// limits of the machine.
import { useMemo } from "preact/hooks";
import { useParam } from "../app/params";
import { routeHref } from "../app/route";
import type { ViewProps } from "../app/views";
import type { Roof, RooflineReply } from "../data/replies";
import { type RooflineRow, TABLES } from "../data/tables";
import { kernelNames } from "../format/kernel_name";
import { formatCount, formatPercent, formatShare, formatUs } from "../format/units";
import { Card, Cards } from "../widgets/cards";
import { useRowChoice } from "../widgets/choice";
import { timelineHref } from "../widgets/links";
import { hasPlace, POINTS_MAX, RooflineChart } from "../widgets/roofline_chart";
import { StepView, useSameSteps } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";

const TEXTS = TABLES.operator_roofline;
const SHAPES: Column<RooflineRow> = { ...TEXTS.input_shapes, id: "input_shapes", wide: true, value: (row) => row.input_shapes };
const FIGURES: Column<RooflineRow>[] = [
	{ ...TEXTS.dtype, id: "dtype", groups: true, value: (row) => row.dtype },
	{ ...TEXTS.processor, id: "processor", groups: true, value: (row) => row.processor },
	{ ...TEXTS.count, id: "count", value: (row) => row.count },
	{ ...TEXTS.time_us, id: "time", bar: true, value: (row) => row.time_us },
	{ ...TEXTS.percent_of_roof, id: "percent", total: "none", value: (row) => row.percent_of_roof },
	{ ...TEXTS.bound, id: "bound", groups: true, value: (row) => row.bound },
	{ ...TEXTS.roof_us, id: "roof", value: (row) => row.roof_us },
	{ ...TEXTS.avoidable_us, id: "avoidable", bar: true, value: (row) => row.avoidable_us },
	{ ...TEXTS.flops, id: "flops", kind: "flops", value: (row) => row.flops },
	{ ...TEXTS.bytes, id: "bytes", value: (row) => row.bytes },
	{ ...TEXTS.flops_per_byte, id: "intensity", total: "none", value: (row) => row.flops_per_byte },
	{ ...TEXTS.gflops_per_second, id: "gflops", total: "none", value: (row) => row.gflops_per_second },
	{ ...TEXTS.gb_per_second, id: "gbps", total: "none", value: (row) => row.gb_per_second },
];

export function Roofline({ source, trace }: ViewProps) {
	const [by, rowChoice] = useRowChoice([
		{ id: "operator", title: "By operator" },
		{ id: "shape", title: "By operator and input shapes" },
		{ id: "kernel", title: "By kernel" },
	]);
	const [roof, setRoof] = useParam("roof");
	return (
		<StepView<RooflineReply>
			source={source}
			trace={trace}
			path="roofline"
			query={{ by, roof: roof === "" ? undefined : roof }}
			what="the roofline"
			tools={
				<>
					{rowChoice}
					{source.kind === "http" && (
						<label title="FLOP/s and bytes/s, instead of the roof that the trace has">
							Roof{" "}
							<input type="text" size={14} placeholder="67T,3.35T" value={roof} onChange={(event) => setRoof(event.currentTarget.value || undefined)} />
						</label>
					)}
				</>
			}
		>
			{(data) => <RooflinePage trace={trace.id} reply={data} by={by} />}
		</StepView>
	);
}

function RooflinePage({ trace, reply, by }: { trace: string; reply: RooflineReply; by: string }) {
	const kernels = useMemo(() => (by === "kernel" ? kernelNames(reply.rows) : undefined), [by, reply]);
	const name: Column<RooflineRow> = { ...TEXTS.name, title: by === "kernel" ? "Kernel" : "Operator", id: "name", wide: true, groups: by === "shape", value: (row) => row.name, shown: (row) => kernels?.get(row.name) ?? row.name };
	const columns = useMemo(() => {
		const mixed = reply.rows.some((row) => row.processor !== reply.rows[0]!.processor); // else the cards say on what all of them ran
		return [name, ...(by === "shape" ? [SHAPES] : []), ...FIGURES.map((column) => (column.id === "processor" && !mixed ? { ...column, hidden: true } : column))];
	}, [by, reply]);
	// The chart shows the processor with most time.
	const first = reply.rows[0]?.processor;
	const drawn = reply.rows.filter((row) => row.processor === first);
	const roof = first === "GPU" && reply.gpu ? reply.gpu : reply.cpu;
	if (!reply.has_shapes) {
		return (
			<div class="empty">
				<p>No shapes were recorded.</p>
				<p>
					Record with <code>record_shapes=True</code> or <code>opstrobe run --record-shapes</code>: FLOPs and bytes follow from the shapes.
				</p>
			</div>
		);
	}
	return (
		<>
			<RoofCards reply={reply} roof={roof} processor={first ?? "CPU"} />
			{drawn.some(hasPlace) && <RooflineChart title="Roofline" roof={roof} rows={drawn} hrefOf={(row) => hrefOf(trace, by, row)} />}
			<Omitted rows={drawn} />
			<Table
				id="roofline"
				label="Roofline"
				columns={columns}
				rows={reply.rows}
				sort="-time"
				href={(row) => timelineHref(trace, { row: row.row })}
				detail={(row) => <RowDetail trace={trace} by={by} row={row} />}
				empty={by === "kernel" ? "No kernels whose work is known." : "No operator’s work is known."}
				lines={16}
			/>
		</>
	);
}

/** Links to the operator or the kernel on its own page. */
function hrefOf(trace: string, by: string, row: RooflineRow): string {
	const filter = `"${row.name}"`;
	return by === "kernel" ? routeHref("kernels", trace, { "kernels.q": filter }) : routeHref("operators", trace, { "operators.q": filter });
}

const SOURCES: Record<Roof["source"], string> = {
	unknown: "unknown",
	measured: "measured by opstrobe roof",
	published: "published peak values",
	given: "as given",
};

function RoofCards({ reply, roof, processor }: { reply: RooflineReply; roof: Roof; processor: string }) {
	const share = reply.bounded_us > 0 ? reply.roof_us / reply.bounded_us : null;
	return (
		<Cards>
			<Card
				title="Of the roof"
				figure={share === null ? "–" : formatShare(share)}
				share={share}
				note={share === null ? undefined : `lower bound of ${formatUs(reply.roof_us)} for ${formatUs(reply.bounded_us)}`}
				about="Lower bound of the time, from FLOPs and bytes, by the time of the rows below"
			/>
			<Card
				title="Work known"
				figure={formatPercent(reply.total_us > 0 ? (reply.known_us / reply.total_us) * 100 : null)}
				note={`of ${formatUs(reply.total_us)} of ${reply.gpu ? "kernels" : "operators"}`}
				about="The part of the time whose FLOPs and bytes follow from shapes"
			/>
			<Card
				title={`Roof of the ${processor}`}
				figure={roof.name || SOURCES[roof.source]}
				note={roof.source === "unknown" ? (processor === "CPU" ? "opstrobe roof measures it, before the recording" : "give FLOP/s and bytes/s above") : roof.name && SOURCES[roof.source]}
			/>
		</Cards>
	);
}

/** Explains what the chart omits. */
function Omitted({ rows }: { rows: readonly RooflineRow[] }) {
	const still = rows.filter((row) => !hasPlace(row)).length;
	const more = rows.length - still - POINTS_MAX;
	const parts = [
		...(still > 0 ? [`${formatCount(still)} that compute nothing and only move data`] : []),
		...(more > 0 ? [`${formatCount(more)} with the least time`] : []),
	];
	return parts.length > 0 ? <p class="soft">{`Not in the chart: ${parts.join("; ")}.`}</p> : null;
}

function RowDetail({ trace, by, row }: { trace: string; by: string; row: RooflineRow }) {
	return (
		<>
			<h3 class="long">{row.name}</h3>
			{row.input_shapes !== null && <p class="mono long">{row.input_shapes}</p>}
			<p class="detail-links">
				<a href={hrefOf(trace, by, row)}>{by === "kernel" ? "The kernel" : "The operator"}</a>
				<a href={timelineHref(trace, { row: row.row })}>Its longest call in the timeline</a>
				<a href={routeHref("stacks", trace, { function: row.name, ...useSameSteps() })}>What calls it</a>
			</p>
		</>
	);
}
