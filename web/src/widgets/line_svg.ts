// SPDX-License-Identifier: Apache-2.0
//
// A line chart as an SVG file: the contents of the canvas as shapes.
import { cssColor } from "../app/theme";
import { axisScale, type Kind, tickText } from "../format/scale";
import { ticks } from "./chart";
import { drawOrder, type LineSeries, resolveColor } from "./line_chart";

interface LineSvg {
	times: readonly number[];
	series: readonly LineSeries[];
	/** As drawn: stacked series summed up. */
	sums: readonly (readonly (number | null)[])[];
	kind: Kind;
	stepped?: boolean;
	most: number;
	width: number;
	height: number;
}

const LEFT = 80;
const BOTTOM = 24;
const TOP = 26;

export function lineSvg(chart: LineSvg): string {
	const { times, series, sums, width, height } = chart;
	const first = times[0] ?? 0;
	const last = Math.max(times[times.length - 1] ?? 1, first + 1e-9);
	const top = chart.most > 0 ? chart.most * 1.05 : 1;
	const x = (time: number) => LEFT + ((time - first) / (last - first)) * (width - LEFT - 12);
	const y = (value: number) => height - BOTTOM - (value / top) * (height - TOP - BOTTOM);
	const scale = axisScale(chart.kind, chart.most);
	const clock = axisScale("us", last);
	const soft = cssColor("--text-soft");
	const parts = [`<rect width="100%" height="100%" fill="${escape(cssColor("--surface"))}"/>`];
	const label = (at: [number, number], anchor: string, text: string) =>
		parts.push(`<text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" text-anchor="${anchor}" font-family="sans-serif" font-size="11" fill="${escape(soft)}">${escape(text)}</text>`);
	for (const mark of ticks(chart.kind, chart.most, 4).filter((each) => each <= top)) {
		parts.push(`<line x1="${LEFT}" x2="${width - 12}" y1="${y(mark).toFixed(1)}" y2="${y(mark).toFixed(1)}" stroke="${escape(cssColor("--line"))}"/>`);
		label([LEFT - 8, y(mark) + 4], "end", tickText(scale, mark));
	}
	for (let i = 0; i <= 4; i++) {
		const time = first + ((last - first) * i) / 4;
		label([x(time), height - 8], i === 4 ? "end" : "middle", tickText(clock, time));
	}
	for (const k of drawOrder(series)) {
		const each = series[k]!;
		const color = escape(resolveColor(each.color));
		const line = linePath(times, sums[k] ?? [], x, y, chart.stepped ?? false);
		if (!each.stacked) parts.push(`<path d="${line}" fill="none" stroke="${color}" stroke-width="1.75"/>`);
		else if (line) parts.push(`<path d="${line}V${y(0).toFixed(1)}H${x(first).toFixed(1)}Z" fill="${color}"/>`);
	}
	let left = LEFT;
	for (const each of series) {
		parts.push(`<rect x="${left}" y="7" width="10" height="10" rx="2" fill="${escape(resolveColor(each.color))}"/>`);
		label([left + 14, 16], "start", each.title);
		left += 30 + each.title.length * 6.5;
	}
	return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${parts.join("")}</svg>`;
}

function linePath(
	times: readonly number[],
	values: readonly (number | null)[],
	x: (time: number) => number,
	y: (value: number) => number,
	stepped: boolean,
): string {
	let path = "";
	let pen = false;
	times.forEach((time, i) => {
		const value = values[i] ?? null;
		if (value === null) {
			pen = false;
			return;
		}
		const [left, up] = [x(time).toFixed(1), y(value).toFixed(1)];
		path += pen ? (stepped ? `H${left}V${up}` : `L${left} ${up}`) : `M${left} ${up}`;
		pen = true;
	});
	return path;
}

export function escape(text: string): string {
	return text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);
}
