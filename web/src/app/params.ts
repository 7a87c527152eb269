// SPDX-License-Identifier: Apache-2.0
//
// Component state that is stored in the page's address.
import { route, setParams } from "./route";

/** A parameter of the view, and the function to change it. The value `normal` is omitted from the address. */
export function useParam(name: string, normal = ""): [string, (value: string | undefined) => void] {
	const value = route.value.params.get(name) ?? normal;
	return [value, (next) => setParams({ [name]: next === normal ? undefined : next })];
}

/** A set of words, stored as "a,b" in the address. */
export function useListParam(name: string): [ReadonlySet<string>, (value: ReadonlySet<string>) => void] {
	const text = route.value.params.get(name) ?? "";
	const set = new Set(text ? text.split(",").map(unescapeComma) : []);
	return [set, (next) => setParams({ [name]: [...next].map(escapeComma).join(",") || undefined })];
}

function escapeComma(text: string): string {
	return text.replaceAll("~", "~0").replaceAll(",", "~1");
}

function unescapeComma(text: string): string {
	return text.replaceAll("~1", ",").replaceAll("~0", "~");
}
