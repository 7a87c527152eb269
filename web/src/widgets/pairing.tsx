// SPDX-License-Identifier: Apache-2.0
//
// Two figures per name, before and after, as bars below one another.
import { useRef } from "preact/hooks";
import { changeText, formatUs } from "../format/units";
import { Chart, Legend, saveOf, type Series } from "./chart";
import { shorten } from "./flame";
import { useWidth } from "./size";

export interface Pair {
	name: string;
	/** Microseconds. */
	left: number;
	right: number;
}

const SERIES: Series[] = [
	{ id: "before", title: "before", color: "var(--kind-other)" },
	{ id: "now", title: "now", color: "var(--kind-operator)" },
];
const SLOT = 34;
const NAME = 230;
const FIGURES = 225;
const SHOWN = 60;

export function Pairing({ title, pairs, tools }: { title: string; pairs: readonly Pair[]; tools?: preact.ComponentChildren }) {
	const svg = useRef<SVGSVGElement>(null);
	const [room, width] = useWidth<HTMLDivElement>();
	const shown = pairs.slice(0, SHOWN);
	const most = Math.max(...shown.flatMap((pair) => [pair.left, pair.right]), 1e-9);
	const length = (value: number) => Math.max(0, (value / most) * Math.max(60, width - NAME - FIGURES));
	return (
		<Chart title={title} about={pairs.length > SHOWN ? `the first ${SHOWN} of ${pairs.length}` : undefined} save={saveOf(svg)} tools={tools}>
			<Legend series={SERIES} />
			<div class="chart-room" ref={room}>
				<svg ref={svg} width={width} height={shown.length * SLOT + 4} role="list" aria-label={title}>
					{shown.map((pair, i) => {
						const y = i * SLOT;
						const figures = `${formatUs(pair.left)} → ${formatUs(pair.right)}`;
						const change = changeText(pair.left, pair.right);
						return (
							<g key={i} role="listitem" aria-label={`${pair.name}: ${figures} ${change}`}>
								<title>{pair.name}</title>
								<text class="label" x={NAME - 10} y={y + 20} text-anchor="end">
									{shorten(pair.name, 32)}
								</text>
								<rect style={{ fill: SERIES[0]!.color }} x={NAME} y={y + 4} width={length(pair.left)} height={11} />
								<rect style={{ fill: SERIES[1]!.color }} x={NAME} y={y + 16} width={length(pair.right)} height={11} />
								<text class="label" x={NAME + Math.max(length(pair.left), length(pair.right)) + 8} y={y + 20}>
									{figures} {change}
								</text>
							</g>
						);
					})}
				</svg>
			</div>
		</Chart>
	);
}
