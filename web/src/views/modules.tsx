// SPDX-License-Identifier: Apache-2.0
// Modules with their time, FLOPs and memory: as a tree, by class, and as an icicle.
import { useMemo } from "preact/hooks";
import { useParam } from "../app/params";
import type { ViewProps } from "../app/views";
import type { Module, ModuleCosts, ModulesReply } from "../data/replies";
import { moduleName } from "../format/module_name";
import { Select, useRowChoice } from "../widgets/choice";
import { Flame } from "../widgets/flame";
import { type CallNode, callNode } from "../widgets/flame_model";
import { timelineHref } from "../widgets/links";
import { StepView } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";

const US = 1e-3;

type Cost = keyof ModuleCosts;

function us(id: string, title: string, of: "total" | "self", cost: Cost, about: string): Column<Module> {
	return { id, title, kind: "us", about, value: (row) => row[of][cost] * US, bar: of === "total" && (cost === "host_ns" || cost === "device_ns") };
}

const COLUMNS: Column<Module>[] = [
	{ id: "name", title: "Module", kind: "text", wide: true, value: (row) => moduleName(row.name) },
	{ id: "class", title: "Class", kind: "text", value: (row) => row.class.replace(/^torch\.nn\.modules\.\w+\./, "") },
	{ id: "calls", title: "Calls", kind: "count", value: (row) => row.calls },
	us("forward", "Forward", "total", "host_ns", "Time of the calls on their thread"),
	us("forward_self", "Forward self", "self", "host_ns", "The same without calls of other modules inside"),
	us("backward", "Backward", "total", "backward_ns", "Time of the backward pass of what ran inside"),
	us("device", "Device", "total", "device_ns", "Device work that the calls started"),
	us("device_backward", "Device backward", "total", "backward_device_ns", "Device work that their backward pass started"),
	{ id: "flops", title: "FLOPs", kind: "count", value: (row) => row.total.flops },
	{ id: "cpu_allocated", title: "Allocated", kind: "bytes", value: (row) => row.total.cpu_allocated_bytes, about: "Memory of the CPU that the calls allocated" },
	{ id: "cpu_peak", title: "Peak", kind: "bytes", total: "max", value: (row) => row.cpu_peak_bytes, about: "By how much memory in use rose in a call, at most" },
	{ id: "device_allocated", title: "Device allocated", kind: "bytes", value: (row) => row.total.device_allocated_bytes },
	{ id: "device_peak", title: "Device peak", kind: "bytes", total: "max", value: (row) => row.device_peak_bytes },
	{ id: "parameters", title: "Parameters", kind: "count", value: (row) => row.parameter_count },
	{ id: "parameter_bytes", title: "Parameter size", kind: "bytes", value: (row) => row.parameter_bytes, hidden: true },
];

const METRICS = [
	{ id: "host_ns", title: "Forward" },
	{ id: "backward_ns", title: "Backward" },
	{ id: "device_ns", title: "Device" },
	{ id: "flops", title: "FLOPs" },
	{ id: "cpu_allocated_bytes", title: "Allocated memory" },
] as const;

type Metric = (typeof METRICS)[number]["id"];

export function Modules({ source, trace }: ViewProps) {
	const [by, rowChoice] = useRowChoice([
		{ id: "tree", title: "Tree" },
		{ id: "class", title: "By class" },
	]);
	return (
		<StepView<ModulesReply> source={source} trace={trace} path="modules" what="the modules" tools={rowChoice}>
			{({ modules, classes }) =>
				modules.length === 0 ? (
					<NoModules />
				) : (
					<>
						<ModuleTable trace={trace.id} modules={by === "class" ? classes : modules} tree={by !== "class"} />
						<Icicle modules={modules} />
					</>
				)
			}
		</StepView>
	);
}

function NoModules() {
	return (
		<div class="empty">
			<p>No calls of modules are in the trace.</p>
			<p>
				They are recorded with <code>with_modules=True</code> or <code>with_stack=True</code>:{" "}
				<code>opstrobe.profile(with_modules=True)</code>.
			</p>
		</div>
	);
}

/** Columns without any figure are left out. */
function usedColumns(modules: readonly Module[]): Column<Module>[] {
	return COLUMNS.filter((column) => column.kind === "text" || modules.some((row) => column.value(row) !== 0));
}

function childrenOf(modules: readonly Module[]): { roots: Module[]; below: Map<Module, Module[]> } {
	const roots: Module[] = [];
	const below = new Map<Module, Module[]>(modules.map((each) => [each, []]));
	for (const each of modules) {
		const above = each.parent === null ? undefined : modules[each.parent];
		if (above && above !== each) below.get(above)!.push(each);
		else roots.push(each);
	}
	return { roots, below };
}

function ModuleTable({ trace, modules, tree }: { trace: string; modules: readonly Module[]; tree: boolean }) {
	const columns = useMemo(() => usedColumns(modules), [modules]);
	const { roots, below } = useMemo(() => childrenOf(modules), [modules]);
	return (
		<Table
			id="modules"
			label={tree ? "Modules" : "Classes of modules"}
			columns={columns}
			rows={tree ? roots : modules}
			{...(tree ? { children: (row: Module) => below.get(row) ?? [], openDepth: 3 } : { sort: "-forward" })}
			href={(row) => timelineHref(trace, { find: row.name })}
			lines={16}
		/>
	);
}

function Icicle({ modules }: { modules: readonly Module[] }) {
	const offered = METRICS.filter((metric) => modules.some((row) => row.total[metric.id] > 0));
	const [wanted, setMetric] = useParam("metric", offered[0]?.id ?? "host_ns");
	const metric: Metric = offered.find((each) => each.id === wanted)?.id ?? "host_ns";
	const [zoom, setZoom] = useParam("zoom");
	const root = useMemo(() => moduleTree(modules, metric), [modules, metric]);
	if (offered.length === 0) return null;
	return (
		<section class="panel">
			<Flame
				title="Modules by what they cost"
				root={root}
				zoom={zoom}
				onZoom={setZoom}
				tools={<Select label="As wide as" options={offered} value={metric} onChange={(id) => setMetric(id)} />}
				colorOf={() => "var(--kind-module)"}
				kind={metric === "flops" ? "count" : metric.endsWith("bytes") ? "bytes" : "us"}
			/>
		</section>
	);
}

/** The modules as a tree of boxes, the largest first. What a module spends itself is not below it. */
export function moduleTree(modules: readonly Module[], metric: Metric): CallNode {
	const unit = metric.endsWith("_ns") ? US : 1;
	const nodes = modules.map((row) => callNode(moduleName(row.name), 0));
	const root = callNode("all modules", 0);
	for (let i = modules.length - 1; i >= 0; i--) {
		const row = modules[i]!;
		const node = nodes[i]!;
		node.total = Math.max(row.total[metric] * unit, node.total); // of a list that is not called, what is in it
		node.self = Math.max(0, row.self[metric] * unit);
		node.children.sort((a, b) => b.total - a.total);
		const above = (row.parent === null ? undefined : nodes[row.parent]) ?? root;
		node.parent = above;
		above.children.push(node);
		above.total += node.total;
	}
	root.children.sort((a, b) => b.total - a.total);
	return root;
}
