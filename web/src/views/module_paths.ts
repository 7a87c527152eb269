// SPDX-License-Identifier: Apache-2.0
//
// Paths of modules, for views whose events have other names.
import { useEffect } from "preact/hooks";
import type { ModulesReply } from "../data/replies";
import { fetchReply } from "../data/reply";
import type { DataSource } from "../data/source";
import { modulePaths } from "../format/module_name";

/** Loads the paths of the modules of these traces, if `wanted`. A name that two modules share is not replaced. */
export function useModulePaths(source: DataSource, traces: readonly string[], wanted: boolean): void {
	useEffect(() => {
		modulePaths.value = new Map();
		if (!wanted) return;
		let current = true;
		Promise.all(traces.map((trace) => fetchReply<ModulesReply>(source, `traces/${trace}/modules`))).then(
			(replies) => {
				if (current) modulePaths.value = pathsOf(replies.flatMap(({ modules }) => modules));
			},
			() => undefined, // names are not replaced
		);
		return () => {
			current = false;
		};
	}, [source, traces, wanted]);
}

export function pathsOf(modules: ModulesReply["modules"]): Map<string, string> {
	const paths = new Map<string, string>();
	const shared = new Set<string>();
	for (const { name, path } of modules) {
		if (path === "" || name === "") continue;
		if (paths.has(name) && paths.get(name) !== path) shared.add(name);
		paths.set(name, path);
	}
	for (const name of shared) paths.delete(name);
	return paths;
}
