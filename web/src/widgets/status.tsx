// SPDX-License-Identifier: Apache-2.0
//
// Placeholders for figures that are loading or could not be loaded.
import { beingRead } from "../app/traces";
import { ReadingBars, useProgress } from "./reading";

export function Loading({ what }: { what: string }) {
	useProgress();
	return (
		<div class="note">
			<p role="status">Loading {what} …</p>
			<ReadingBars traces={beingRead.value} />
		</div>
	);
}

export function Failure({ error }: { error: Error }) {
	return (
		<p class="note failure" role="alert">
			{error.message}
		</p>
	);
}
