// SPDX-License-Identifier: Apache-2.0
//
// The options of an analysis as a form. Values other than the defaults are stored in the address, as "arg.NAME".
import { useState } from "preact/hooks";
import { route, setParams } from "../app/route";
import type { Analysis, AnalysisOption, JsonValue } from "../data/replies";

const PREFIX = "arg.";

/** Options for output directories do not apply to a page. */
function isOffered(option: AnalysisOption): boolean {
	return !/output_dir|output_/.test(option.name);
}

/** Returns the selected options in the form that the server accepts. */
export function argsOf(analysis: Analysis, params: ReadonlyMap<string, string>): Record<string, JsonValue> {
	const args: Record<string, JsonValue> = {};
	for (const option of analysis.options.filter(isOffered)) {
		const text = params.get(PREFIX + option.name);
		if (text === undefined) continue;
		const value = valueOf(text, option);
		if (value !== undefined) args[option.name] = value;
	}
	return args;
}

/** "5" is a number unless the option is a text; "0,1" is a list if the option accepts one. */
export function valueOf(text: string, option: AnalysisOption): JsonValue | undefined {
	if (typeof option.default === "string") return text;
	try {
		return JSON.parse(text) as JsonValue;
	} catch {
		if (/^-?\d+(\s*,\s*-?\d+)+$/.test(text)) return text.split(",").map(Number);
		return text;
	}
}

function defaultText(option: AnalysisOption): string {
	return typeof option.default === "string" ? option.default : option.default === null ? "" : JSON.stringify(option.default);
}

export function AnalysisForm({ analysis }: { analysis: Analysis }) {
	const options = analysis.options.filter(isOffered);
	if (options.length === 0) return null;
	return (
		<details class="options" open={options.some((option) => route.value.params.has(PREFIX + option.name))}>
			<summary>{`Options (${options.length})`}</summary>
			<div class="fields">
				{options.map((option) => (
					<Field key={option.name} option={option} />
				))}
			</div>
		</details>
	);
}

function Field({ option }: { option: AnalysisOption }) {
	const name = PREFIX + option.name;
	const now = route.value.params.get(name) ?? defaultText(option);
	const [text, setText] = useState(now);
	const apply = (value: string) => setParams({ [name]: value === defaultText(option) ? undefined : value });
	if (typeof option.default === "boolean") {
		return (
			<label class="field" title={option.name}>
				<input type="checkbox" checked={now === "true"} onChange={(event) => apply(String(event.currentTarget.checked))} /> {option.summary}
			</label>
		);
	}
	return (
		<label class="field" title={option.name}>
			<span>{option.summary}</span>
			<input
				type="text"
				value={text}
				placeholder={option.default === null ? "–" : ""}
				onInput={(event) => setText(event.currentTarget.value)}
				onChange={(event) => apply(event.currentTarget.value)}
			/>
		</label>
	);
}
