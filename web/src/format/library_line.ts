// SPDX-License-Identifier: Apache-2.0
//
// How a line of a library is written, in the viewer and in the extension for VS Code.
import type { Through } from "../data/replies";

/** Returns "lightning/pytorch/loops/loop.py:12 in run". */
export function libraryLine({ path, line, function: name }: Through): string {
	return `${path}:${line} in ${name}`;
}
