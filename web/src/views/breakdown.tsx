// SPDX-License-Identifier: Apache-2.0
// The average step as one bar, and its parts as a list.
import type { Step, StepBreakdown } from "../data/replies";
import { formatPercent, formatUs } from "../format/units";
import { Swatch } from "../widgets/chart";
import type { StepPart } from "./step_parts";

interface BreakdownProps {
	parts: readonly StepPart[];
	average: Omit<Step, "name">;
	percent: StepBreakdown["average_pct"];
	/** Name of the sum of the parts. */
	whole: string;
}

export function Breakdown({ parts, average, percent, whole }: BreakdownProps) {
	return (
		<>
			<div class="whole" aria-hidden="true">
				{parts.map((part) => (
					<span key={part.id} title={`${part.title}: ${formatPercent(percent[part.id])}`} style={{ flexGrow: percent[part.id] ?? 0, background: part.color }} />
				))}
			</div>
			<table class="list">
				<caption class="visually-hidden">{`The parts of the time: ${whole.toLowerCase()}`}</caption>
				<thead class="visually-hidden">
					<tr>
						<th scope="col">Part</th>
						<th scope="col">Time</th>
						<th scope="col">Share</th>
					</tr>
				</thead>
				<tbody>
					{parts.map((part) => (
						<tr key={part.id} data-part={part.id}>
							<th scope="row" title={part.about}>
								<Swatch color={part.color} /> {part.title}
							</th>
							<td class="figure" title={`${average[part.id]} µs`}>{formatUs(average[part.id])}</td>
							<td class="figure">{formatPercent(percent[part.id])}</td>
						</tr>
					))}
					<tr class="sum" data-part="total">
						<th scope="row">{whole}</th>
						<td class="figure" title={`${average.total} µs`}>{formatUs(average.total)}</td>
						<td class="figure">{formatPercent(percent.total)}</td>
					</tr>
				</tbody>
			</table>
		</>
	);
}
