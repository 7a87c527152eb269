// SPDX-License-Identifier: Apache-2.0
//
// Finds the local file that a trace refers to. The trace has paths as the recorded program used them: relative to its
// working directory, or in a directory of another machine.

/** Returns how many components two paths share at their ends, starting with the file name. */
export function sharedNames(one: string, other: string): number {
	const a = names(one);
	const b = names(other);
	let shared = 0;
	while (shared < a.length && shared < b.length && a[a.length - 1 - shared] === b[b.length - 1 - shared]) shared++;
	return shared;
}

/** Returns whether the absolute `path` may be the file that the trace calls `recordedPath`: the paths are equal, `path` ends in
 * the complete relative path `recordedPath`, or file and parent directory have the same names. */
export function mayBe(recordedPath: string, path: string): boolean {
	if (recordedPath === path) return true;
	const shared = sharedNames(recordedPath, path);
	return shared > 0 && (isAbsolute(recordedPath) ? shared >= 2 : shared === names(recordedPath).length);
}

/** Returns the path that best matches the path in the trace. */
export function bestFit(recordedPath: string, paths: readonly string[]): string | undefined {
	const fitting = paths.filter((path) => mayBe(recordedPath, path));
	if (fitting.includes(recordedPath)) return recordedPath;
	return fitting.reduce<string | undefined>((best, path) => (best === undefined || sharedNames(recordedPath, path) > sharedNames(recordedPath, best) ? path : best), undefined);
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
