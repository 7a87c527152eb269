// SPDX-License-Identifier: Apache-2.0
//
// Steps that take much longer than the median, and the figures in which they exceed the others.
import type { Outlier, OverviewReply } from "../data/replies";
import { formatCount, formatNumber, formatUs } from "../format/units";
import { timelineHref } from "../widgets/links";
import type { StepPlace } from "./steps";

interface SlowStepsProps {
	trace: string;
	steps: OverviewReply["steps"];
	places: ReadonlyMap<string, StepPlace>;
}

export function SlowSteps({ trace, steps, places }: SlowStepsProps) {
	if (steps.outliers.length === 0) return null;
	const more = steps.outlier_count - steps.outliers.length;
	return (
		<section class="panel" aria-label="Slow steps">
			<h2>Slow steps, and what they have more of</h2>
			<ul class="slow-steps">
				{steps.outliers.map((outlier) => (
					<SlowStep key={outlier.name} trace={trace} outlier={outlier} place={places.get(outlier.name)} />
				))}
			</ul>
			{more > 0 && <p class="panel-foot soft">{`and ${formatCount(more)} more slow ${more === 1 ? "step" : "steps"}`}</p>}
		</section>
	);
}

function SlowStep({ trace, outlier, place }: { trace: string; outlier: Outlier; place: StepPlace | undefined }) {
	const name = `Step ${outlier.name}`;
	return (
		<li>
			{place ? <a href={timelineHref(trace, { from: place.start_ns, to: place.end_ns })}>{name}</a> : name}
			{`: ${formatUs(outlier.total)}, ${formatUs(outlier.over_median)} more than the median${outlier.kind ? ` ${outlier.kind}` : ""}`}
			<MoreThanUsual outlier={outlier} href={(event) => timelineHref(trace, { ...(place && { from: place.start_ns, to: place.end_ns }), find: `"${event}"` })} />
		</li>
	);
}

/** The figures in which a step exceeds the others. */
export function MoreThanUsual({ outlier, href }: { outlier: Pick<Outlier, "causes" | "events">; href: (event: string) => string | undefined }) {
	return (
		<ul>
			{outlier.causes.map(({ what, title, is_count, value, typical }) => {
				const text = is_count ? formatNumber : formatUs;
				return <li key={what}>{`${title} +${text(value - typical)} (${text(value)}, usually ${text(typical)})`}</li>;
			})}
			{outlier.events.map(({ name, self, typical_self, calls, typical_calls }) => (
				<li key={name}>
					<a class="name" href={href(name)}>
						{name}
					</a>
					{` +${formatUs(self - typical_self)} (${formatCount(calls)} ${calls === 1 ? "call" : "calls"}, usually ${formatNumber(typical_calls)})`}
				</li>
			))}
		</ul>
	);
}
