// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";

/** The value of a text field, updated immediately, and reported after the user has stopped typing for `wait`
 * milliseconds. */
export function useLater(value: string, report: (value: string) => void, wait: number): [string, (value: string) => void] {
	const [text, setText] = useState(value);
	const reported = useRef(value);
	const timer = useRef<ReturnType<typeof setTimeout>>();
	useEffect(() => {
		if (value === reported.current) return; // caused by our own change
		reported.current = value;
		setText(value);
	}, [value]);
	useEffect(() => () => clearTimeout(timer.current), []);
	const change = (next: string) => {
		setText(next);
		clearTimeout(timer.current);
		timer.current = setTimeout(() => {
			reported.current = next;
			report(next);
		}, wait);
	};
	return [text, change];
}
