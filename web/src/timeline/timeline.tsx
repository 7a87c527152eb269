// SPDX-License-Identifier: Apache-2.0
import type { ViewProps } from "../app/views";

export function Timeline({ trace }: ViewProps) {
	return <p class="note">{trace.name}</p>;
}
