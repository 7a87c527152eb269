// SPDX-License-Identifier: Apache-2.0
//
// Text for a measurement of `opstrobe prove`.
import type { Measured } from "../data/replies";
import { formatPercent } from "./units";

/** "measured: saves 31.2 % of a step (29.0 % to 33.1 %), results equal [fused-optimizer]" */
export function measuredText({ fix, gain_percent: percent, gain_lower_percent: lower, gain_upper_percent: upper, results }: Measured): string {
	const gain =
		lower > 0
			? `saves ${formatPercent(percent)} of a step (${formatPercent(lower)} to ${formatPercent(upper)})`
			: upper < 0
				? `costs ${formatPercent(-percent)} of a step (${formatPercent(-upper)} to ${formatPercent(-lower)})`
				: `no difference found (${formatPercent(lower)} to ${formatPercent(upper)} of a step)`;
	return `measured: ${gain}, results ${results} [${fix}]`;
}
