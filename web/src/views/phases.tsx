// SPDX-License-Identifier: Apache-2.0
//
// Phases of training: what the host does in a step, and the device work that it launches in each phase.
import type { OverviewReply, Phases, PhaseTimes } from "../data/replies";
import { formatPercent, formatUs } from "../format/units";
import { Swatch } from "../widgets/chart";
import { type PartOf, usedParts } from "./step_parts";

export type Phase = PartOf<keyof PhaseTimes>;

export const PHASES: readonly Phase[] = [
	{ id: "data_loading", title: "Data loading", color: "var(--kind-annotation)", about: "The step waits for its batch" },
	{ id: "forward", title: "Forward", color: "var(--kind-operator)", about: "Modules and operators that have a backward pass" },
	{ id: "backward", title: "Backward", color: "var(--kind-module)", about: "The autograd engine runs" },
	{ id: "optimizer", title: "Optimizer", color: "var(--kind-runtime)", about: "Optimizer.step and Optimizer.zero_grad" },
	{ id: "other", title: "Other", color: "var(--kind-other)", about: "None of these" },
];

export function PhaseTime({ views, phases }: { views: OverviewReply; phases: Phases }) {
	const { average, average_pct, average_operators, average_device } = phases;
	const used = usedParts(PHASES, phases.rows);
	const devices = used.some((phase) => average_device[phase.id] > 0);
	return (
		<section class="panel" aria-label="Phases">
			<h2>{views.steps.from === "none" ? "Phases, on the host" : "Phases of a step, on the host"}</h2>
			<div class="whole" aria-hidden="true">
				{used.map((phase) => (
					<span key={phase.id} title={`${phase.title}: ${formatPercent(average_pct[phase.id])}`} style={{ flexGrow: average_pct[phase.id], background: phase.color }} />
				))}
			</div>
			<table class="list phases">
				<caption class="visually-hidden">The phases of an average step</caption>
				<thead>
					<tr>
						<th scope="col">Phase</th>
						<th class="figure" scope="col">
							Time
						</th>
						<th class="figure" scope="col">
							Share
						</th>
						<th class="figure" scope="col" title="The time in which an operator runs">
							Operators
						</th>
						{devices && (
							<th class="figure" scope="col" title="The device work that is launched in the phase, whenever it runs">
								Launched
							</th>
						)}
					</tr>
				</thead>
				<tbody>
					{used.map((phase) => (
						<tr key={phase.id} data-phase={phase.id}>
							<th scope="row" title={phase.about}>
								<Swatch color={phase.color} /> {phase.title}
							</th>
							<td class="figure" title={`${average[phase.id]} µs`}>
								{formatUs(average[phase.id])}
							</td>
							<td class="figure">{formatPercent(average_pct[phase.id])}</td>
							<td class="figure">{formatUs(average_operators[phase.id])}</td>
							{devices && <td class="figure">{formatUs(average_device[phase.id])}</td>}
						</tr>
					))}
				</tbody>
			</table>
			{views.flags.has_kernel && <p class="panel-foot soft">A device may work after the host’s part of a step has ended.</p>}
		</section>
	);
}
