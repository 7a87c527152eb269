// SPDX-License-Identifier: Apache-2.0
import type { ReadonlySignal } from "@preact/signals";

/** Reads signals so that the surrounding effect runs again when one of them changes. */
export function follow(...signals: ReadonlySignal<unknown>[]): void {
	for (const each of signals) each.value; // eslint-disable-line @typescript-eslint/no-unused-expressions
}
