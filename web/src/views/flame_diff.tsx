// SPDX-License-Identifier: Apache-2.0
//
// The flame graphs of two traces as one, per step: widths are those of one trace, colours show the change.
import { useMemo } from "preact/hooks";
import { useParam } from "../app/params";
import type { TraceEntry } from "../data/api";
import type { StacksDiffReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";
import { changeText, formatUs } from "../format/units";
import { Await } from "../widgets/await";
import { Legend, type Series } from "../widgets/chart";
import { Choice } from "../widgets/choice";
import { Flame } from "../widgets/flame";
import type { CallNode } from "../widgets/flame_model";
import { FoldWrappers, LeaveOutWaits, stackTree, WaitsLeftOut } from "./stacks";

const METRICS = [
	{ id: "self_cpu", title: "CPU time" },
	{ id: "self_device", title: "Device time" },
];
const SIDES = [
	{ id: "now", title: "Width: new" },
	{ id: "before", title: "Width: base" },
];
const COLORS: Series[] = [
	{ id: "more", title: "more self time in the new trace", color: "var(--flame-more)" },
	{ id: "less", title: "less", color: "var(--flame-less)" },
];

/** Full colour is a change by a fiftieth of the longer step, as in the picture of `opstrobe diff --flame`. */
const FULL = 50;

interface Props {
	source: DataSource;
	base: TraceEntry;
	now: TraceEntry;
	steps: string | undefined;
}

export function FlameDiff({ source, base, now, steps }: Props) {
	const [metric, setMetric] = useParam("flame", "self_cpu");
	const [wrappers, setWrappers] = useParam("wrappers");
	const keeps = wrappers === "keep";
	const [waits, setWaits] = useParam("waits");
	const keepsWaits = waits === "keep";
	const reply = useReply<StacksDiffReply>(source, `traces/${now.id}/stacks/diff`, { base: base.id, metric, steps, wrappers: keeps ? "keep" : undefined, waits: keepsWaits ? "keep" : undefined });
	const tools = (
		<>
			<Choice label="Time of the flame graph" options={METRICS} value={metric} onChange={setMetric} />
			<FoldWrappers on={!keeps} onChange={(on) => setWrappers(on ? undefined : "keep")} />
			<LeaveOutWaits on={!keepsWaits} onChange={(on) => setWaits(on ? undefined : "keep")} />
		</>
	);
	return (
		<section class="panel">
			<Await reply={reply} what="the flame graph">
				{(stacks) => <Graph stacks={stacks} tools={tools} />}
			</Await>
		</section>
	);
}

function Graph({ stacks, tools }: { stacks: StacksDiffReply; tools: preact.ComponentChildren }) {
	const [side, setSide] = useParam("widths", "now");
	const [zoom, setZoom] = useParam("zoom");
	const isNow = side !== "before";
	const root = useMemo(() => sideTree(stacks, isNow), [stacks, isNow]);
	const whole = Math.max(root.total, root.other?.total ?? 0);
	const choices = (
		<>
			{tools}
			<Choice label="Widths" options={SIDES} value={side} onChange={setSide} />
			<WaitsLeftOut stacks={stacks} />
		</>
	);
	if (whole === 0) {
		return (
			<>
				<div class="tools">{choices}</div>
				<p class="soft">No time of this kind in the stacks of steps.</p>
			</>
		);
	}
	return (
		<>
			<Flame
				title="Flame graph of the difference"
				root={root}
				zoom={zoom}
				onZoom={setZoom}
				colorOf={(node) => colorOf(timesOf(node, isNow), whole)}
				pairsOf={(node) => pairsOf(timesOf(node, isNow))}
				tools={choices}
			/>
			<Legend series={COLORS} />
		</>
	);
}

/** Returns the tree with the widths of one side; each frame also has the other side's times. */
export function sideTree(stacks: StacksDiffReply, isNow: boolean): CallNode {
	if (isNow) return stackTree(stacks);
	const { total_ns, base_total_ns, self_ns, base_self_ns, sum_ns, base_sum_ns } = stacks;
	const swapped = { total_ns: base_total_ns, base_total_ns: total_ns, self_ns: base_self_ns, base_self_ns: self_ns, sum_ns: base_sum_ns, base_sum_ns: sum_ns };
	return stackTree({ ...stacks, ...swapped });
}

interface Times {
	before: { total: number; self: number };
	now: { total: number; self: number };
}

function timesOf(node: CallNode, isNow: boolean): Times {
	const other = node.other ?? { total: 0, self: 0 };
	return isNow ? { before: other, now: node } : { before: node, now: other };
}

/** Returns red for more self time, blue for less. */
export function colorOf({ before, now }: Times, whole: number): string {
	const shade = Math.max(-1, Math.min(1, (FULL * (now.self - before.self)) / whole));
	const ink = shade > 0 ? "var(--flame-more)" : "var(--flame-less)";
	return `color-mix(in srgb, ${ink} ${(Math.abs(shade) * 100).toFixed(1)}%, var(--flame-same))`;
}

function pairsOf({ before, now }: Times): [string, string][] {
	return [
		["a step", change(before.total, now.total)],
		["self", change(before.self, now.self)],
	];
}

function change(before: number, now: number): string {
	const relative = changeText(before, now);
	return `${formatUs(before)} → ${formatUs(now)}${relative && ` (${relative})`}`;
}
