// SPDX-License-Identifier: Apache-2.0
//
// Single allocations, and the allocations of each operator.
import type { TraceEntry } from "../data/api";
import type { Block, BlocksReply, MemoryStatistic, MemoryViewReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";
import { moduleName } from "../format/module_name";
import { formatCount } from "../format/units";
import { Await } from "../widgets/await";
import { baseName, SourceLink, timelineHref } from "../widgets/links";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import { categoryTitle, type Stretch } from "./memory_words";

const BLOCKS_MAX = 10_000;

interface TableProps {
	source: DataSource;
	trace: TraceEntry;
	device: string;
}

const BLOCKS: Column<Block>[] = [
	{ id: "operator", title: "Operator", kind: "text", wide: true, groups: true, value: (row) => row.operator },
	{ id: "bytes", title: "Size", kind: "bytes", bar: true, value: (row) => row.bytes },
	{ id: "shape", title: "Shape", kind: "text", groups: true, value: (row) => row.shape, about: "Of the first tensor that fills the allocation" },
	{ id: "category", title: "Category", kind: "text", groups: true, value: (row) => categoryTitle(row.category) },
	{ id: "start", title: "Allocated at", kind: "us", total: "none", value: (row) => micro(row.start_ns), about: "– : before the recording" },
	{ id: "end", title: "Freed at", kind: "us", total: "none", hidden: true, value: (row) => micro(row.end_ns), about: "– : not within the recording" },
	{ id: "life", title: "Held for", kind: "us", total: "none", value: (row) => (row.start_ns === null || row.end_ns === null ? null : micro(row.end_ns - row.start_ns)) },
	{ id: "module", title: "Module", kind: "text", groups: true, value: (row) => row.module && moduleName(row.module) },
	{ id: "line", title: "Line", kind: "text", groups: true, value: (row) => placeOf(row, row.file), shown: (row) => placeOf(row, row.file && baseName(row.file)) ?? "" },
	{ id: "name", title: "Name", kind: "text", value: (row) => row.name, about: "Name in the program, of a parameter or its gradient" },
];

function placeOf({ line }: Block, file: string | null): string | null {
	return file === null || line === null ? file : `${file}:${line}`;
}

function micro(ns: number | null): number | null {
	return ns === null ? null : ns / 1e3;
}

export function MemoryBlocks({ source, trace, device, stretch }: TableProps & { stretch: Stretch }) {
	const reply = useReply<BlocksReply>(source, `traces/${trace.id}/memory/blocks`, { device, ...stretch, limit: BLOCKS_MAX });
	return (
		<Await reply={reply} what="the allocations">
			{({ blocks, total }) => (
				<>
					{total > blocks.length && <p class="soft">{`The ${formatCount(blocks.length)} largest of ${formatCount(total)}.`}</p>}
					<Table
						id="blocks"
						label="Allocations"
						columns={BLOCKS.filter((column) => column.kind !== "text" || blocks.some((block) => column.value(block)))}
						rows={blocks}
						sort="-bytes"
						href={(block) => blockHref(trace.id, block)}
						detail={(block) => (
							<>
								<h3>{`${formatCount(block.bytes)} bytes`}</h3>
								<p>{[block.operator, block.module && moduleName(block.module), block.name].filter(Boolean).join(", ")}</p>
								{block.file !== null && <SourceLink trace={trace.id} file={block.file} line={block.line} />}
							</>
						)}
						empty="No allocations in this range."
						lines={14}
					/>
				</>
			)}
		</Await>
	);
}

function blockHref(trace: string, block: Block): string | undefined {
	if (block.row !== null) return timelineHref(trace, { row: block.row });
	if (block.start_ns === null) return undefined;
	return timelineHref(trace, { from: Math.max(0, block.start_ns - 50_000), to: block.start_ns + 50_000 });
}

const STATISTICS: Column<MemoryStatistic>[] = [
	{ id: "name", title: "Operator", kind: "text", wide: true, value: (row) => row.name },
	{ id: "calls", title: "Calls", kind: "count", value: (row) => row.calls },
	{ id: "self_increase", title: "Self increase", kind: "bytes", bar: true, value: (row) => row.self_increase, about: "What it allocated itself less what it freed" },
	{ id: "increase", title: "Increase", kind: "bytes", total: "none", value: (row) => row.increase, about: "With the operators inside" },
	{ id: "self_alloc_count", title: "Self allocations", kind: "count", value: (row) => row.self_alloc_count },
	{ id: "alloc_count", title: "Allocations", kind: "count", total: "none", value: (row) => row.alloc_count },
	{ id: "self_alloc_size", title: "Self allocated", kind: "bytes", value: (row) => row.self_alloc_size },
	{ id: "alloc_size", title: "Allocated", kind: "bytes", total: "none", value: (row) => row.alloc_size },
];

/** The views name devices "CPU", "GPU0" and "XPU0"; torch's names are "cpu", "cuda:0" and "xpu:0". */
function viewDevice(device: string): string {
	return device.toUpperCase().replace("CUDA", "GPU").replace(":", "");
}

export function MemoryStatistics({ source, trace, device, steps }: TableProps & { steps: string | undefined }) {
	const reply = useReply<MemoryViewReply>(source, `traces/${trace.id}/views`, { parts: "memory", steps });
	return (
		<Await reply={reply} what="the operators">
			{({ memory }) => (
				<Table
					id="memory"
					label="Memory by operator"
					columns={STATISTICS}
					rows={memory?.stats.rows[viewDevice(device)] ?? []}
					sort="-self_increase"
					href={(row) => timelineHref(trace.id, { find: row.name })}
					empty="No operator allocates on this device."
					lines={14}
				/>
			)}
		</Await>
	);
}
