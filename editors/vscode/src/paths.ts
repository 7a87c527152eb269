// SPDX-License-Identifier: Apache-2.0
// Which file of this machine a trace means. It names files as the program that was recorded knew them: relative to where
// that ran, or below a folder of another machine.

/** How many names at the end two paths share, from the file's on. */
export function sharedNames(one: string, other: string): number {
	const a = names(one);
	const b = names(other);
	let shared = 0;
	while (shared < a.length && shared < b.length && a[a.length - 1 - shared] === b[b.length - 1 - shared]) shared++;
	return shared;
}

/** Whether `path`, an absolute one, may be what the trace calls `told`: the same, or with all of a relative one at its end,
 * or with the same file in the same folder. */
export function mayBe(told: string, path: string): boolean {
	if (told === path) return true;
	const shared = sharedNames(told, path);
	return shared > 0 && (isAbsolute(told) ? shared >= 2 : shared === names(told).length);
}

/** The path that fits best to what the trace says. */
export function bestFit(told: string, paths: readonly string[]): string | undefined {
	const fitting = paths.filter((path) => mayBe(told, path));
	if (fitting.includes(told)) return told;
	return fitting.reduce<string | undefined>((best, path) => (best === undefined || sharedNames(told, path) > sharedNames(told, best) ? path : best), undefined);
}

export function isAbsolute(path: string): boolean {
	return /^([/\\]|[A-Za-z]:[/\\])/.test(path);
}

export function baseName(path: string): string {
	return names(path).at(-1) ?? "";
}

function names(path: string): string[] {
	return path.split(/[/\\]/).filter((name) => name !== "" && name !== ".");
}
