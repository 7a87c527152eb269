// SPDX-License-Identifier: Apache-2.0
// Lists by key.

/** Appends to the list of a key, which begins with its first value. */
export function addTo<K, V>(groups: Map<K, V[]>, key: K, value: V): void {
	const group = groups.get(key);
	if (group) group.push(value);
	else groups.set(key, [value]);
}
