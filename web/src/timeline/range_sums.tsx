// SPDX-License-Identifier: Apache-2.0
// What ran in a stretch of time, summed by name. It is also the timeline as a table, for those who cannot see the picture.
import { useEffect, useState } from "preact/hooks";
import { useReply } from "../data/reply";
import { formatCount, formatNs, formatShare } from "../format/units";
import { Failure } from "../widgets/status";
import type { RangeReply, RangeRow } from "./api";
import { goToRow } from "./choose";
import { classOf } from "./palette";
import type { Stage } from "./stage";
import type { TimelineState } from "./state";

type Key = "name" | "kind" | "count" | "total_ns" | "self_ns" | "max_ns";

const COLUMNS: { key: Key; title: string; number: boolean }[] = [
	{ key: "name", title: "Name", number: false },
	{ key: "kind", title: "Kind", number: false },
	{ key: "count", title: "Count", number: true },
	{ key: "total_ns", title: "Total", number: true },
	{ key: "self_ns", title: "Self", number: true },
	{ key: "max_ns", title: "Longest", number: true },
];
const MOST = 200;

interface Props {
	state: TimelineState;
	stage: Stage | undefined;
	from: number;
	to: number;
}

export function RangeSums({ state, stage, from, to }: Props) {
	const [sort, setSort] = useState<{ key: Key; up: boolean }>({ key: "self_ns", up: false });
	const reply = useReply<RangeReply>(state.source, `${state.address}/timeline/range`, { from, to, limit: MOST });
	// The sums of the window before stay until those of this one are there.
	const [held, setHeld] = useState<RangeReply>();
	useEffect(() => {
		if (reply.state === "ready") setHeld(reply.data);
	}, [reply]);
	if (reply.state === "failed") return <Failure error={reply.error} />;
	const data = reply.state === "ready" ? reply.data : held;
	if (!data) return null;
	const rows = sorted(data.rows, sort.key, sort.up);
	const self = data.rows.reduce((sum, row) => sum + row.self_ns, 0);
	return (
		<>
			<p class="tl-summary" role="status">
				{formatNs(data.to_ns - data.from_ns)}, {formatCount(data.events)} events, on {data.tracks.length} tracks
				{data.left_out > 0 && `; ${formatCount(data.left_out)} more names are not listed`}
			</p>
			<table class="tl-sums" aria-label="What runs in this stretch of time">
				<thead>
					<tr>
						{COLUMNS.map(({ key, title, number }) => (
							<th
								key={key}
								scope="col"
								class={number ? "number" : ""}
								aria-sort={sort.key === key ? (sort.up ? "ascending" : "descending") : "none"}
							>
								<button
									type="button"
									onClick={() => setSort({ key, up: sort.key === key ? !sort.up : !number })}
								>
									{title}
									{sort.key === key ? (sort.up ? " ▲" : " ▼") : ""}
								</button>
							</th>
						))}
						<th scope="col" class="number">Self of all</th>
					</tr>
				</thead>
				<tbody>
					{rows.map((row) => (
						<Row key={`${row.kind} ${row.name}`} row={row} self={self} go={() => stage && void goToRow(state, stage, row.longest)} />
					))}
				</tbody>
			</table>
		</>
	);
}

function Row({ row, self, go }: { row: RangeRow; self: number; go: () => void }) {
	return (
		<tr>
			<td class="name">
				<i class={`tl-dot kind-${classOf(row.kind, row.name)}`} />
				<button type="button" class="link" title={`${row.name}\nGo to the longest`} onClick={go}>
					{row.name}
				</button>
			</td>
			<td>{row.kind}</td>
			<td class="number">{formatCount(row.count)}</td>
			<td class="number">{formatNs(row.total_ns)}</td>
			<td class="number">{formatNs(row.self_ns)}</td>
			<td class="number">{formatNs(row.max_ns)}</td>
			<td class="number">{self > 0 ? formatShare(row.self_ns / self) : ""}</td>
		</tr>
	);
}

function sorted(rows: readonly RangeRow[], key: Key, up: boolean): RangeRow[] {
	const sign = up ? 1 : -1;
	return [...rows].sort((a, b) => {
		const [x, y] = [a[key], b[key]];
		return sign * (typeof x === "number" && typeof y === "number" ? x - y : x < y ? -1 : x > y ? 1 : 0);
	});
}
