// SPDX-License-Identifier: Apache-2.0
// What stands where figures will be, or where they could not be had.

export function Loading({ what }: { what: string }) {
	return (
		<p class="note" role="status">
			Loading {what} …
		</p>
	);
}

export function Failure({ error }: { error: Error }) {
	return (
		<p class="note failure" role="alert">
			{error.message}
		</p>
	);
}
