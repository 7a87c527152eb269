// SPDX-License-Identifier: Apache-2.0
//
// Text for a measurement of `opstrobe prove`.
import type { Measured } from "../data/replies";
import { grouped } from "./scale";

/** "measured: saves 31.2 % of a step (29.0 % to 33.1 %), results equal [fused-optimizer]" */
export function measuredText({ fix, gain_percent: percent, gain_lower_percent: lower, gain_upper_percent: upper, results }: Measured): string {
	const share = (value: number) => `${grouped(value, 1)} %`;
	const gain =
		lower > 0
			? `saves ${share(percent)} of a step (${share(lower)} to ${share(upper)})`
			: upper < 0
				? `costs ${share(-percent)} of a step (${share(-upper)} to ${share(-lower)})`
				: `no difference found (${share(lower)} to ${share(upper)} of a step)`;
	return `measured: ${gain}, results ${results} [${fix}]`;
}
