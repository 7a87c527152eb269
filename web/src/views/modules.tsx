// SPDX-License-Identifier: Apache-2.0
//
// Modules with their time, FLOPs and memory: as a tree, by class, and as an icicle.
import { useMemo } from "preact/hooks";
import { useParam } from "../app/params";
import type { ViewProps } from "../app/views";
import type { Module, ModuleCosts, ModulesReply } from "../data/replies";
import { TABLES } from "../data/tables";
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

/** Returns the path in the program, "blocks.0.attn"; for the model itself, and in files without paths, the class. */
function pathOf(row: Module): string {
	return row.path !== "" ? row.path : moduleName(row.name) || row.class;
}

const TEXTS = TABLES.modules;

function us(id: string, column: keyof typeof TEXTS, of: "total" | "self", cost: Cost): Column<Module> {
	return { ...TEXTS[column], id, value: (row) => row[of][cost] * US, bar: of === "total" && (cost === "host_ns" || cost === "device_ns") };
}

const COLUMNS: Column<Module>[] = [
	{ id: "name", title: "Module", kind: "text", wide: true, value: pathOf },
	{ ...TEXTS.class, id: "class", value: (row) => row.class.replace(/^torch\.nn\.modules\.\w+\./, "") },
	{ ...TEXTS.calls, id: "calls", value: (row) => row.calls },
	{ ...TEXTS.percent, id: "share", kind: "share", total: "none", value: (row) => row.share },
	{ ...TEXTS.step_us, id: "step_total", hidden: true, total: "none", value: (row) => (row.step_ns === null ? null : row.step_ns * US) },
	us("forward", "host_us", "total", "host_ns"),
	{ ...TEXTS.call_us, id: "per_call", total: "none", value: (row) => (row.calls > 0 ? (row.total.host_ns * US) / row.calls : null) },
	us("forward_self", "self_host_us", "self", "host_ns"),
	us("backward", "backward_us", "total", "backward_ns"),
	us("device", "device_us", "total", "device_ns"),
	us("device_backward", "backward_device_us", "total", "backward_device_ns"),
	{ ...TEXTS.flops, id: "flops", kind: "flops", value: (row) => row.total.flops },
	{ ...TEXTS.cpu_allocated_bytes, id: "cpu_allocated", value: (row) => row.total.cpu_allocated_bytes },
	{ ...TEXTS.cpu_peak_bytes, id: "cpu_peak", hidden: true, total: "max", value: (row) => row.cpu_peak_bytes },
	{ ...TEXTS.device_allocated_bytes, id: "device_allocated", value: (row) => row.total.device_allocated_bytes },
	{ ...TEXTS.device_peak_bytes, id: "device_peak", hidden: true, total: "max", value: (row) => row.device_peak_bytes },
	{ ...TEXTS.parameters, id: "parameters", value: (row) => row.parameter_count },
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
						{by !== "class" && modules.every((row) => row.path === "") && <UnnamedModules />}
						<ModuleTable trace={trace.id} modules={by === "class" ? classes : modules} tree={by !== "class"} />
						<Icicle modules={modules} />
					</>
				)
			}
		</StepView>
	);
}

/** Why names are classes with a number. */
function UnnamedModules() {
	return (
		<p class="soft">
			This trace names modules by class and number, as torch.profiler records them. Recordings of Opstrobe have their paths in the model, such as <code>blocks.0.attn</code>.
		</p>
	);
}

export function NoModules() {
	return (
		<div class="empty">
			<p>No module calls.</p>
			<p>
				Record them with <code>opstrobe run</code> or <code>with_modules=True</code>.
			</p>
		</div>
	);
}

/** Omits columns without any figure, and hides the CPU's memory if devices have some. */
function usedColumns(modules: readonly Module[]): Column<Module>[] {
	const used = COLUMNS.filter((column) => column.kind === "text" || modules.some((row) => column.value(row)));
	const ofDevices = used.some((column) => column.id === "device_allocated");
	return used.map((column) => (ofDevices && column.id === "cpu_allocated" ? { ...column, hidden: true } : column));
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
				title="Modules by cost"
				root={root}
				zoom={zoom}
				onZoom={setZoom}
				tools={<Select label="Width" options={offered} value={metric} onChange={(id) => setMetric(id)} />}
				colorOf={() => "var(--kind-module)"}
				kind={metric === "flops" ? "flops" : metric.endsWith("bytes") ? "bytes" : "us"}
			/>
		</section>
	);
}

/** Returns the modules as a tree of boxes, the largest first. A module's self time has no box below it. */
export function moduleTree(modules: readonly Module[], metric: Metric): CallNode {
	const unit = metric.endsWith("_ns") ? US : 1;
	const nodes = modules.map((row) => callNode(pathOf(row), 0));
	const root = callNode("all modules", 0);
	for (let i = modules.length - 1; i >= 0; i--) {
		const row = modules[i]!;
		const node = nodes[i]!;
		node.total = Math.max(row.total[metric] * unit, node.total); // a list is not called itself, so use its contents
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
