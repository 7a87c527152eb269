// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";

const KEYS: [string, string][] = [
	["W  S", "zoom in and out, at the chosen event or the pointer; also + and −, or Ctrl and the wheel"],
	["A  D", "move left and right; also ← and →, or Shift and the wheel"],
	["↑  ↓", "scroll; also Page up and Page down, or the wheel"],
	["0", "the whole trace; also Home"],
	["F", "fit the chosen range or event into the window; also a double click on an event"],
	["Alt ←  →", "the event before or after the chosen one"],
	["Alt ↑  ↓", "its parent, its first child"],
	["Shift and drag", "choose a range of the tracks under the pointer, from one event's edge to another's; drag on the ruler for all tracks"],
	["M", "set a mark where the pointer is; the tab Marks takes a note"],
	["/", "search"],
	["N  Shift N", "next and previous hit"],
	["Esc", "choose nothing; from the search back to the tracks"],
];

export function Help({ onClose }: { onClose: () => void }) {
	const dialog = useRef<HTMLDialogElement>(null);
	useEffect(() => dialog.current?.showModal(), []);
	return (
		<dialog ref={dialog} class="tl-help" aria-label="Keys of the timeline" onClose={onClose}>
			<h2>Keys</h2>
			<table>
				<tbody>
					{KEYS.map(([keys, text]) => (
						<tr key={keys}>
							<th scope="row">
								<kbd>{keys}</kbd>
							</th>
							<td>{text}</td>
						</tr>
					))}
				</tbody>
			</table>
			<button type="button" onClick={() => dialog.current?.close()}>
				Close
			</button>
		</dialog>
	);
}
