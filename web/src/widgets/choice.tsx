// SPDX-License-Identifier: Apache-2.0
//
// A choice between a few options: a row of buttons, one of which is pressed.
import type { VNode } from "preact";
import { useParam } from "../app/params";

export interface Option<T extends string> {
	id: T;
	title: string;
	about?: string;
}

interface ChoiceProps<T extends string> {
	label: string;
	options: readonly Option<T>[];
	value: T;
	onChange: (value: T) => void;
}

export function Choice<T extends string>({ label, options, value, onChange }: ChoiceProps<T>) {
	return (
		<div class="choice" role="group" aria-label={label}>
			{options.map((option) => (
				<button key={option.id} type="button" title={option.about} aria-pressed={option.id === value} onClick={() => onChange(option.id)}>
					{option.title}
				</button>
			))}
		</div>
	);
}

/** Selects what the rows of a table represent. In the address as "by"; the default is the first option. */
export function useRowChoice<T extends string>(options: readonly Option<T>[]): [T, VNode] {
	const first = options[0]!.id;
	const [wanted, choose] = useParam("by", first);
	const by = options.find((option) => option.id === wanted)?.id ?? first;
	return [by, <Choice key="by" label="A row for each" options={options} value={by} onChange={choose} />];
}

/** The same for many options. */
export function Select<T extends string>({ label, options, value, onChange }: ChoiceProps<T>) {
	return (
		<label>
			{label}{" "}
			<select value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
				{options.map((option) => (
					<option key={option.id} value={option.id}>
						{option.title}
					</option>
				))}
			</select>
		</label>
	);
}
