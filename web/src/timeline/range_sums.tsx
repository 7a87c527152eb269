// SPDX-License-Identifier: Apache-2.0
// What ran in a range of time, summed by name. It is also the timeline as a table, for those who cannot see the picture.
import { useEffect, useMemo, useState } from "preact/hooks";
import { route, routeHref } from "../app/route";
import { useReply } from "../data/reply";
import { moduleName } from "../format/module_name";
import { formatCount, formatNs } from "../format/units";
import { Failure } from "../widgets/status";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import type { RangeReply, RangeRow } from "./api";
import { CLASS_TITLES, classOf, isDeviceKind, type KindClass } from "./palette";
import type { TimelineState } from "./state";

const MOST = 1000;
/** Of the panel, what is not lines of the table; and a line. */
const FRAME = 128;
const LINE = 28;

interface Props {
	state: TimelineState;
	from: number;
	to: number;
	/** Only these; undefined: all. */
	tracks: readonly number[] | undefined;
	/** Kinds that are left out. */
	hidden: ReadonlySet<KindClass>;
	/** Of the panel. */
	height: number;
}

/** A row with its share of the work of all of its side: the CPU or the devices. */
interface Sum extends RangeRow {
	share: number;
}

const COLUMNS: Column<Sum>[] = [
	{ id: "name", title: "Name", kind: "text", wide: true, value: (row) => row.name, shown: (row) => moduleName(row.name) },
	{ id: "kind", title: "Kind", kind: "text", groups: true, value: (row) => CLASS_TITLES[classOf(row.kind, row.name)] },
	{ id: "count", title: "Count", kind: "count", value: (row) => row.count },
	{ id: "total", title: "Total", kind: "us", value: (row) => row.total_ns / 1000, about: "From begin to end, cut at the ends of the range" },
	{ id: "self", title: "Self", kind: "us", bar: true, value: (row) => row.self_ns / 1000, about: "Without what ran inside it" },
	{ id: "share", title: "Share", kind: "share", value: (row) => row.share, about: "Of the self times on the CPU, or, for work on a device, on devices" },
	{ id: "max", title: "Longest", kind: "us", total: "max", value: (row) => row.max_ns / 1000 },
];

export function RangeSums({ state, from, to, tracks, hidden, height }: Props) {
	const reply = useReply<RangeReply>(state.source, `${state.address}/timeline/range`, { from, to, limit: MOST, tracks: tracks?.join(",") });
	// The sums of the window before stay until those of this one are there.
	const [held, setHeld] = useState<RangeReply>();
	useEffect(() => {
		if (reply.state === "ready") setHeld(reply.data);
	}, [reply]);
	const data = reply.state === "ready" ? reply.data : held;
	const rows = useMemo(() => sumsOf((data?.rows ?? []).filter((row) => !hidden.has(classOf(row.kind, row.name)))), [data, hidden]);
	if (reply.state === "failed") return <Failure error={reply.error} />;
	if (!data) return null;
	const left = data.left_out > 0 ? `; ${formatCount(data.left_out)} more names are not listed` : "";
	return (
		<div class="tl-sums">
			<Table
				id="sums"
				label="What runs in this range"
				columns={COLUMNS}
				rows={rows}
				sort="-self"
				href={(row) => eventHref(row.longest)}
				lines={Math.max(Math.floor((height - FRAME) / LINE), 2)}
				empty="Nothing runs here."
				tools={
					<span class="tl-summary">
						{formatNs(data.to_ns - data.from_ns)}, {formatCount(data.events)} events on {data.tracks.length}{" "}
						{data.tracks.length === 1 ? "track" : "tracks"}
						{left}
					</span>
				}
			/>
		</div>
	);
}

/** Spans of a whole session are no work of their own. */
function sumsOf(rows: readonly RangeRow[]): Sum[] {
	const work = rows.filter((row) => row.kind !== "Trace");
	const selfOf = (device: boolean): number => work.reduce((sum, row) => sum + (isDeviceKind(row.kind) === device ? row.self_ns : 0), 0);
	const self = { cpu: selfOf(false), device: selfOf(true) };
	return work.map((row) => {
		const all = isDeviceKind(row.kind) ? self.device : self.cpu;
		return { ...row, share: all > 0 ? row.self_ns / all : 0 };
	});
}

/** The timeline as it is, at an event. */
function eventHref(row: number): string {
	const { view, trace, params } = route.peek();
	return routeHref(view, trace, { ...Object.fromEntries(params), from: undefined, to: undefined, event: row });
}
