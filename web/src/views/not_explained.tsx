// SPDX-License-Identifier: Apache-2.0
//
// The time of a step that no finding explains, by line.
import type { NotExplainedTime } from "../data/replies";
import { formatPercent } from "../format/units";
import { Meter } from "../widgets/cards";
import { Places } from "./finding";

/** `asked`: the requested traces. */
export function NotExplained({ trace, asked, time }: { trace: string; asked: readonly string[]; time: NotExplainedTime | null }) {
	if (time === null) return null;
	return (
		<section class="panel not-explained" aria-label="Not explained by a finding">
			<h2>{time.title}</h2>
			<ol>
				{time.lines.map((line, i) => (
					<li key={i}>
						<div class="gain-bar">
							<span class="gain-figure">{formatPercent(line.percent)}</span>
							<Meter label="Share" share={line.percent / 100} />
						</div>
						<Places trace={trace} asked={asked} where={[{ ...line, through: [] }]} />
						<p>{line.text}</p>
					</li>
				))}
			</ol>
			{time.hint !== null && <p class="soft">{time.hint}</p>}
		</section>
	);
}
