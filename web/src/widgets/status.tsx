// SPDX-License-Identifier: Apache-2.0
// What stands where figures will be, or where they could not be had.
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
