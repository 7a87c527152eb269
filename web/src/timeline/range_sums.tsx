// SPDX-License-Identifier: Apache-2.0
//
// What ran in a time range, summed by name. This is also the timeline as a table, for readers who cannot see the
// picture.
import { useEffect, useMemo, useState } from "preact/hooks";
import { route, routeHref } from "../app/route";
import { useReplies } from "../data/reply";
import { moduleName } from "../format/module_name";
import { formatCount, formatNs } from "../format/units";
import { Failure } from "../widgets/status";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import type { RangeReply, RangeRow } from "./api";
import { CLASS_TITLES, classOf, isDeviceKind, type KindClass } from "./palette";
import { ownNumber, partOf } from "./parts";
import type { TimelineState } from "./state";

const MOST = 1000;
/** Height of the panel without the lines of the table, and height of a line. */
const FRAME = 128;
const LINE = 28;

interface Props {
	state: TimelineState;
	from: number;
	to: number;
	/** Only these tracks; undefined: all. */
	tracks: readonly number[] | undefined;
	/** Kinds that are excluded. */
	hidden: ReadonlySet<KindClass>;
	/** Height of the panel. */
	height: number;
}

/** A row with its share of all work on its side of its part: the CPU or the devices. */
interface Sum extends RangeRow {
	/** The name of its part, if there are several. */
	rank: string;
	/** null: an annotation on a device. */
	share: number | null;
}

const RANK: Column<Sum> = { id: "rank", title: "Trace", kind: "text", groups: true, value: (row) => row.rank };

const COLUMNS: Column<Sum>[] = [
	{ id: "name", title: "Name", kind: "text", wide: true, value: (row) => row.name, shown: (row) => moduleName(row.name) },
	{ id: "kind", title: "Kind", kind: "text", groups: true, value: (row) => CLASS_TITLES[classOf(row.kind, row.name)] },
	{ id: "count", title: "Calls", kind: "count", value: (row) => row.count },
	{ id: "total", title: "Total", kind: "us", value: (row) => row.total_ns / 1000, about: "Duration within the range" },
	{ id: "self", title: "Self", kind: "us", bar: true, value: (row) => row.self_ns / 1000, about: "Without the events inside it" },
	{ id: "share", title: "", kind: "share", value: (row) => row.share, about: "Share of the self times of all rows on the CPU, summed over the tracks in the selection; for device work, of all rows on devices. Annotations on devices do not count" },
	{ id: "max", title: "Longest", kind: "us", total: "max", value: (row) => row.max_ns / 1000 },
];

/** Returns the columns, of which that of shares says what they are shares of. */
function columnsOf(rows: readonly Sum[]): Column<Sum>[] {
	const device = rows.some((row) => isDeviceKind(row.kind));
	const cpu = rows.some((row) => !isDeviceKind(row.kind));
	const title = device && cpu ? "Of self time on CPU or GPU" : device ? "Of self time on GPUs" : "Of self time on the CPU";
	return COLUMNS.map((column) => (column.id === "share" ? { ...column, title } : column));
}

export function RangeSums({ state, from, to, tracks, hidden, height }: Props) {
	const requests = requestsOf(state, from, to, tracks);
	const reply = useReplies<RangeReply>(state.source, requests);
	// The sums of the previous window stay until those of this one have arrived.
	const [held, setHeld] = useState<RangeReply[]>();
	useEffect(() => {
		if (reply.state === "ready") setHeld(reply.data);
	}, [reply]);
	const data = reply.state === "ready" ? reply.data : held;
	const labels = state.labels.value;
	const rows = useMemo(
		() =>
			(data ?? []).flatMap((each, i) => {
				const { part } = requests[i] ?? {};
				if (!part) return [];
				const translator = state.translator(part);
				return sumsOf(each.rows.filter((row) => !hidden.has(classOf(row.kind, row.name))).map((row) => translator.rangeRow(row)), labels[part.number] ?? "");
			}),
		[data, hidden, labels],
	);
	const columns = useMemo(() => columnsOf(rows), [rows]);
	if (reply.state === "failed") return <Failure error={reply.error} />;
	if (!data) return null;
	const sum = (of: (each: RangeReply) => number): number => data.reduce((all, each) => all + of(each), 0);
	const leftOut = sum((each) => each.left_out);
	const left = leftOut > 0 ? `; ${formatCount(leftOut)} more names are not listed` : "";
	const onTracks = sum((each) => each.tracks.length);
	return (
		<div class="tl-sums">
			<Table
				id="sums"
				label="What runs in this range"
				columns={state.several ? [{ ...RANK, title: state.noun.value }, ...columns] : columns}
				rows={rows}
				sort="-self"
				href={(row) => eventHref(row.longest)}
				lines={Math.max(Math.floor((height - FRAME) / LINE), 2)}
				empty="No events in this range."
				tools={
					<span class="tl-summary">
						{formatNs(to - from)}, {formatCount(sum((each) => each.events))} events on {onTracks} {onTracks === 1 ? "track" : "tracks"}
						{left}
					</span>
				}
			/>
		</div>
	);
}

/** Returns a request for each part that the range touches, in the part's own times. */
function requestsOf(state: TimelineState, from: number, to: number, tracks: readonly number[] | undefined) {
	return state.parts.flatMap((part) => {
		const shift = state.shifts.value[part.number]!;
		const own = tracks?.filter((each) => partOf(each) === part.number).map(ownNumber);
		if (own?.length === 0 || to < shift) return [];
		const query = { from: Math.max(Math.round(from - shift), 0), to: Math.round(to - shift), limit: MOST, tracks: own?.join(",") };
		return [{ part, path: `${part.address}/timeline/range`, query }];
	});
}

const DEVICE_ANNOTATION = "gpu_user_annotation";

/** Ranges of a complete session are not work. Neither are annotations on devices, which contain the work and the gaps in it. */
function sumsOf(rows: readonly RangeRow[], rank: string): Sum[] {
	const work = rows.filter((row) => row.kind !== "Trace");
	const selfOf = (device: boolean): number => work.reduce((sum, row) => sum + (isDeviceKind(row.kind) === device && row.kind !== DEVICE_ANNOTATION ? row.self_ns : 0), 0);
	const self = { cpu: selfOf(false), device: selfOf(true) };
	return work.map((row) => {
		const all = isDeviceKind(row.kind) ? self.device : self.cpu;
		return { ...row, rank, share: row.kind === DEVICE_ANNOTATION ? null : all > 0 ? row.self_ns / all : 0 };
	});
}

/** Returns the address of the current timeline, at an event. */
function eventHref(row: number): string {
	const { view, trace, params } = route.peek();
	return routeHref(view, trace, { ...Object.fromEntries(params), from: undefined, to: undefined, event: row });
}
