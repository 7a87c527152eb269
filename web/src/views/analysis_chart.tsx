// SPDX-License-Identifier: Apache-2.0
//
// A chart for results that are clearer as one: a bar for each rank or stream.
import type { AnswerReply } from "../data/replies";
import { type BarItem, Bars } from "../widgets/bars";
import { isTable } from "../widgets/answer";
import type { Series } from "../widgets/chart";

interface Drawing {
	title: string;
	item: string;
	/** Columns that name a bar. */
	by: string[];
	/** A part for each of these columns … */
	parts?: Series[];
	/** … or for each value of one column, with its size from another. */
	split?: { column: string; size: string; colors: Record<string, string> };
}

const DRAWINGS: Record<string, Drawing> = {
	temporal_breakdown: {
		title: "Time of each rank",
		item: "rank",
		by: ["rank"],
		parts: [
			{ id: "compute_time(us)", title: "Computation", color: "var(--kind-kernel)" },
			{ id: "non_compute_time(us)", title: "Other work", color: "var(--kind-memcpy)" },
			{ id: "idle_time(us)", title: "Idle", color: "var(--kind-other)" },
		],
	},
	idle_time_breakdown: {
		title: "Why streams are idle",
		item: "rank, stream",
		by: ["rank", "stream"],
		split: {
			column: "idle_category",
			size: "idle_time",
			colors: { host_wait: "var(--kind-memcpy)", kernel_wait: "var(--kind-kernel)", other: "var(--kind-other)" },
		},
	},
};

export function AnalysisChart({ id, answer }: { id: string; answer: AnswerReply }) {
	const drawing = DRAWINGS[id];
	if (!drawing || !isTable(answer)) return null;
	const drawn = barsOf(drawing, answer.table.columns, answer.table.rows);
	if (!drawn || drawn.bars.length === 0) return null;
	return <Bars title={drawing.title} item={drawing.item} series={drawn.series} bars={drawn.bars} kind="us" height={200} />;
}

type Cells = (string | number | boolean | null)[];

export function barsOf(drawing: Drawing, columns: readonly string[], rows: readonly Cells[]): { series: Series[]; bars: BarItem[] } | undefined {
	const place = (name: string) => columns.indexOf(name);
	const figure = (row: Cells, name: string) => {
		const cell = row[place(name)];
		return typeof cell === "number" ? Math.max(0, cell) : 0;
	};
	const split = drawing.split;
	const series: Series[] = drawing.parts ?? Object.entries(split?.colors ?? {}).map(([id, color]) => ({ id, title: id.replaceAll("_", " "), color }));
	const wanted = split ? [split.column, split.size] : series.map((each) => each.id);
	if ([...drawing.by, ...wanted].some((name) => place(name) < 0)) return undefined;
	const bars = new Map<string, BarItem>();
	for (const row of rows) {
		const name = drawing.by.map((each) => (drawing.by.length > 1 ? `${each} ${row[place(each)]}` : String(row[place(each)]))).join(", ");
		let bar = bars.get(name);
		if (!bar) bars.set(name, (bar = { name, parts: series.map(() => 0) }));
		const parts = bar.parts;
		series.forEach((each, k) => {
			if (!split) parts[k]! += figure(row, each.id);
			else if (row[place(split.column)] === each.id) parts[k]! += figure(row, split.size);
		});
	}
	return { series, bars: [...bars.values()] };
}
