// SPDX-License-Identifier: Apache-2.0
//
// A banner above views: which trace has inaccurate figures, and why.
import type { TraceEntry } from "../data/api";
import { formatCount } from "../format/units";

export function Diagnostics({ trace, name }: { trace: TraceEntry; name: string }) {
	if (trace.diagnostics.length === 0) return null;
	return (
		<div class="banner" role="alert">
			<strong>{`Figures of ${name} are incomplete or inexact.`}</strong>
			<ul>
				{trace.diagnostics.map((each) => (
					<li key={each.kind}>
						{each.message} {each.byte === null ? `(${formatCount(each.count)})` : `(${formatCount(each.count)} ×, first at byte ${formatCount(each.byte)})`}
					</li>
				))}
			</ul>
		</div>
	);
}
