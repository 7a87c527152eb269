// SPDX-License-Identifier: Apache-2.0
//
// Names that are too long for their column are truncated at the end of what they share with another name, so that what
// differs stays visible: "cutlass::Kernel2<cutlass_80_te…bf16_s16816gemm_relu". Labels of charts only have what differs.

import { addTo } from "../data/groups";

/** A shorter beginning is not worth its dots. */
const LEAST = 12;
/** The characters of a truncated name that are seen at least: of its beginning, and from the split on. */
const START_SEEN = 6;
const END_SEEN = 12;
/** The most characters from a split to where the names differ. */
const NEAR = 8;
/** With more names, looking for beginnings takes too long. */
const NAMES_MOST = 5000;

/** Sentences are truncated at their ends. */
const SENTENCE = /^[A-Z][a-z]+ [a-z]+ /;

/** Returns how many characters of each name another name begins with, up to the last word; without names that share few. */
export function sharedBeginnings(names: Iterable<string>): Map<string, number> {
	const sorted = [...new Set(names)].filter((name) => !SENTENCE.test(name)).sort();
	const splits = new Map<string, number>();
	if (sorted.length > NAMES_MOST) return splits;
	for (const [i, name] of sorted.entries()) {
		const shared = Math.max(sharedLength(name, sorted[i - 1]), sharedLength(name, sorted[i + 1]));
		const split = wordBefore(name, shared);
		if (split >= LEAST && split < name.length) splits.set(name, split);
	}
	separateAlike(sorted, splits);
	return splits;
}

/** Splits names earlier that would look alike when truncated: "at::native::|elementwise_kernel" and
 * "at::native::vectorized_|elementwise_kernel". */
function separateAlike(names: readonly string[], splits: Map<string, number>): void {
	const alike = new Map<string, string[]>();
	for (const name of names) {
		const split = splits.get(name);
		if (split !== undefined) addTo(alike, name.slice(0, START_SEEN) + name.slice(split, split + END_SEEN), name);
	}
	for (const group of alike.values()) {
		const least = Math.min(...group.map((name) => splits.get(name)!));
		for (const name of group) splits.set(name, least);
	}
}

function sharedLength(name: string, other: string | undefined): number {
	let size = 0;
	while (other !== undefined && size < name.length && name[size] === other[size]) size++;
	return size;
}

/** Returns the start of the word that contains the position; of the last one if the position is the end. In long words of several,
 * such as "CausalVarSeqQ128", that of the part, so that the position is near. */
function wordBefore(name: string, position: number): number {
	const last = Math.min(position, name.length - 1);
	let at = last;
	while (at > 0 && /\w/.test(name[at - 1]!) && name[at - 1] !== "_") at--;
	if (last - at <= NEAR) return at;
	at = last;
	while (at > last - NEAR && !/[a-z\d][A-Z]/.test(name.slice(at - 1, at + 1))) at--;
	return at;
}

/** Returns the names without the words that all of them begin and end with: "3" and "12" for "host-a_rank3.local" and
 * "host-a_rank12.local". */
export function differingParts(names: readonly string[]): string[] {
	const words = names.map((name) => name.match(/[A-Za-z]+|\d+|[^A-Za-z\d]/g) ?? []);
	const least = words.reduce((least, each) => Math.min(least, each.length), Infinity);
	if (names.length < 2) return [...names];
	const first = words[0]!;
	const isShared = (place: number) => words.every((each) => each.at(place) === first.at(place));
	let [before, after] = [0, 0];
	while (before < least - 1 && isShared(before)) before++;
	while (before + after < least - 1 && isShared(-1 - after)) after++;
	return words.map((each) => each.slice(before, each.length - after).join(""));
}
