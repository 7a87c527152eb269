// SPDX-License-Identifier: Apache-2.0
//
// Time by call stack: a flame graph of everything, or callers and callees of one function.
import { useMemo, useState } from "preact/hooks";
import { useParam } from "../app/params";
import type { TraceFacts, ViewProps } from "../app/views";
import type { StacksDiffReply, StacksReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";
import { isModule, moduleName } from "../format/module_name";
import { formatNs, formatPercent, formatUs } from "../format/units";
import { Choice } from "../widgets/choice";
import { Flame } from "../widgets/flame";
import { type CallNode, callNode, type FunctionRow, functionRows, sandwich } from "../widgets/flame_model";
import { useLater } from "../widgets/later";
import { SourceLink, timelineHref } from "../widgets/links";
import { StepView } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import { useModulePaths } from "./module_paths";

const US = 1e-3;

const METRICS = [
	{ id: "self_cpu", title: "CPU time" },
	{ id: "self_device", title: "Device time" },
];
const SAMPLED = { id: "sampled", title: "Sampled stacks" };
const SAMPLED_ABOUT = "Wall-clock time of each thread, running or waiting, by samples of its Python stack";

export function Stacks({ source, trace }: ViewProps) {
	const [wanted, setMetric] = useParam("metric", "self_cpu");
	const metric = wanted === "self_device" || wanted === "sampled" ? wanted : "self_cpu";
	const [placed, setPlaced] = useParam("backward", "under_forward");
	const backward = placed === "as_run" ? "as_run" : undefined;
	const [wrappers, setWrappers] = useParam("wrappers");
	const keeps = wrappers === "keep" ? "keep" : undefined;
	const [waits, setWaits] = useParam("waits");
	const keepsWaits = waits === "keep" ? "keep" : undefined;
	const facts = useReply<{ value: TraceFacts }>(source, `traces/${trace.id}/info`);
	const has = facts.state === "ready" ? facts.data.value : undefined;
	const offered: Record<string, boolean> = {
		self_cpu: true,
		self_device: ["kernel", "gpu_memcpy", "gpu_memset"].some((kind) => has?.events_by_kind[kind]),
		sampled: !!has?.metadata?.python_samples,
	};
	const tools = (
		<>
			<Choice
				label="Time"
				options={[...METRICS, SAMPLED].filter(({ id }) => offered[id] === true || id === metric)}
				value={metric}
				onChange={setMetric}
			/>
			{metric === "sampled" && <span class="soft">{SAMPLED_ABOUT}</span>}
			{source.kind === "http" && metric !== "sampled" && (
				<>
					<Choice
						label="Backward pass"
						options={[
							{ id: "under_forward", title: "Backward under its forward" },
							{ id: "as_run", title: "As it ran" },
						]}
						value={backward ?? "under_forward"}
						onChange={setPlaced}
					/>
					<FoldWrappers on={!keeps} onChange={(on) => setWrappers(on ? undefined : "keep")} />
				</>
			)}
			{source.kind === "http" && <LeaveOutWaits on={!keepsWaits} onChange={(on) => setWaits(on ? undefined : "keep")} />}
		</>
	);
	return (
		<StepView<StacksReply> source={source} trace={trace} path="stacks" query={{ metric, backward, wrappers: keeps, waits: keepsWaits }} what="the stacks" tools={tools}>
			{(stacks) => <StackViews source={source} trace={trace.id} stacks={stacks} metric={metric} />}
		</StepView>
	);
}

/** The switch of a flame graph. A report only has graphs with wrappers folded. */
export function FoldWrappers({ on, onChange }: { on: boolean; onChange: (on: boolean) => void }) {
	return (
		<label title="Calls of libraries that only pass on to one other call have no frame; their caller has their self time">
			<input type="checkbox" checked={on} onChange={(event) => onChange(event.currentTarget.checked)} /> Fold wrappers
		</label>
	);
}

/** The switch for waits of helper threads. A report has graphs without them. */
export function LeaveOutWaits({ on, onChange }: { on: boolean; onChange: (on: boolean) => void }) {
	return (
		<label title="Time in which threads of data loaders, loggers or servers only wait for a queue, a lock or a pipe. Waits of threads that have steps always count">
			<input type="checkbox" checked={on} onChange={(event) => onChange(event.currentTarget.checked)} /> Leave out waits of helper threads
		</label>
	);
}

/** How much waiting the graph does not show. */
export function WaitsLeftOut({ stacks }: { stacks: StacksReply }) {
	if (!stacks.waits_ns) return null;
	return <span class="soft">{`Left out: ${formatNs(stacks.waits_ns)} in which helper threads wait`}</span>;
}

/** Returns the frames as a tree, with times in microseconds. A frame comes after its caller. */
export function stackTree(stacks: StacksReply | StacksDiffReply): CallNode {
	const root = callNode("all", 0);
	const base = "base_total_ns" in stacks ? stacks : undefined;
	root.total = stacks.total_ns * US;
	if (base) root.other = { total: base.base_total_ns * US, self: 0 };
	const nodes: CallNode[] = [];
	stacks.parent.forEach((parent, i) => {
		const name = stacks.names[stacks.name[i]!]!;
		const above = nodes[parent] ?? root;
		const node: CallNode = {
			name: name.name,
			file: name.file,
			line: name.line,
			self: stacks.self_ns[i]! * US,
			total: stacks.sum_ns[i]! * US,
			children: [],
			parent: above,
		};
		if (base) node.other = { total: base.base_sum_ns[i]! * US, self: base.base_self_ns[i]! * US };
		above.children.push(node);
		nodes.push(node);
	});
	for (const node of [root, ...nodes]) node.children.sort((a, b) => b.total - a.total);
	root.self = Math.max(0, root.total - root.children.reduce((sum, child) => sum + child.total, 0));
	return root;
}

interface StackViewsProps {
	source: DataSource;
	trace: string;
	stacks: StacksReply;
	metric: string;
}

function StackViews({ source, trace, stacks, metric }: StackViewsProps) {
	const root = useMemo(() => stackTree(stacks), [stacks]);
	useModulePaths(source, useMemo(() => [trace], [trace]), useMemo(() => stacks.names.some((each) => isModule(each.name)), [stacks]));
	const [name, setName] = useParam("function");
	const [find, setFind] = useParam("find");
	const [text, setText] = useLater(find, setFind, 150);
	if (root.children.length === 0) {
		return (
			<>
				<NoStacks metric={metric} />
				<WaitsLeftOut stacks={stacks} />
			</>
		);
	}
	return (
		<>
			<div class="tools">
				<input type="search" class="filter" placeholder="Find in the graph" aria-label="Find in the graph" value={text} onInput={(event) => setText(event.currentTarget.value)} />
				{stacks.left_out > 0 && <span class="soft">{`${stacks.left_out} small frames are not drawn`}</span>}
				<WaitsLeftOut stacks={stacks} />
			</div>
			{name === "" ? <Whole trace={trace} root={root} find={find} onFunction={setName} /> : <Both trace={trace} root={root} name={name} find={find} onFunction={setName} />}
			<Functions trace={trace} root={root} onFunction={setName} />
		</>
	);
}

const NO_STACKS: Record<string, string> = {
	self_cpu: "No CPU events in this trace.",
	self_device: "No device time in the stacks of this trace.",
	sampled: "No sampled stacks in this trace: opstrobe run and the black box record them.",
};

function NoStacks({ metric }: { metric: string }) {
	return (
		<div class="empty">
			<p>{NO_STACKS[metric]}</p>
			{metric !== "sampled" && (
				<p>
					Python functions are recorded with <code>with_stack=True</code> or <code>opstrobe run --with-stack</code>.
				</p>
			)}
		</div>
	);
}

function Whole({ trace, root, find, onFunction }: { trace: string; root: CallNode; find: string; onFunction: (name: string) => void }) {
	const [zoom, setZoom] = useParam("zoom");
	const [picked, setPicked] = useState<CallNode>();
	return (
		<section class="panel">
			<Flame title="Flame graph" root={root} zoom={zoom} onZoom={setZoom} find={find} onPick={setPicked} />
			{picked?.parent && <Picked trace={trace} node={picked} root={root} onFunction={onFunction} />}
		</section>
	);
}

function Picked({ trace, node, root, onFunction }: { trace: string; node: CallNode; root: CallNode; onFunction: (name: string) => void }) {
	return (
		<p class="picked">
			<code class="long">{node.name}</code>
			<span>{`${formatUs(node.total)}, ${formatPercent((node.total / root.total) * 100)}, self ${formatUs(node.self)}`}</span>
			{node.file !== null && <SourceLink trace={trace} file={node.file} line={node.line} />}
			<a href={timelineHref(trace, { find: node.name })}>in the timeline</a>
			<button type="button" class="small" onClick={() => onFunction(node.name)}>
				Callers and callees
			</button>
		</p>
	);
}

function Both({ trace, root, name, find, onFunction }: { trace: string; root: CallNode; name: string; find: string; onFunction: (name: string | undefined) => void }) {
	const { callers, callees } = useMemo(() => sandwich(root, name), [root, name]);
	const [up, setUp] = useState("");
	const [down, setDown] = useState("");
	const share = root.total > 0 ? (callees.total / root.total) * 100 : 0;
	return (
		<section class="panel sandwich">
			<div class="tools">
				<h2 class="long mono">{name}</h2>
				<span class="soft">{`${formatUs(callees.total)}, ${formatPercent(share)} of the total`}</span>
				<span class="tools-space" />
				<a href={timelineHref(trace, { find: name })}>in the timeline</a>
				<button type="button" onClick={() => onFunction(undefined)}>
					Back to the graph
				</button>
			</div>
			{callees.total === 0 ? (
				<p class="soft">This function has no time in the graph.</p>
			) : (
				<>
					<Flame title="What calls it" root={callers} zoom={up} onZoom={(path) => setUp(path ?? "")} find={find} inverted />
					<Flame title="What it calls" root={callees} zoom={down} onZoom={(path) => setDown(path ?? "")} find={find} />
				</>
			)}
		</section>
	);
}

const FUNCTIONS: Column<FunctionRow>[] = [
	{ id: "name", title: "Function", kind: "text", wide: true, value: (row) => row.name, shown: (row) => moduleName(row.name) },
	{ id: "self", title: "Self", kind: "us", bar: true, value: (row) => row.self },
	{ id: "total", title: "Total", kind: "us", bar: true, value: (row) => row.total, about: "With the functions that it calls; recursive calls count once" },
	{ id: "places", title: "Stacks", kind: "count", value: (row) => row.places, about: "Number of stacks that contain it" },
];

function Functions({ trace, root, onFunction }: { trace: string; root: CallNode; onFunction: (name: string) => void }) {
	const rows = useMemo(() => functionRows(root), [root]);
	return (
		<section class="panel">
			<h2>Functions</h2>
			<Table
				id="functions"
				label="Functions"
				columns={FUNCTIONS}
				rows={rows}
				sort="-self"
				href={(row) => timelineHref(trace, { find: row.name })}
				detail={(row) => (
					<>
						<h3 class="long mono">{row.name}</h3>
						<button type="button" onClick={() => onFunction(row.name)}>
							Callers and callees
						</button>
					</>
				)}
				lines={12}
			/>
		</section>
	);
}
