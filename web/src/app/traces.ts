// SPDX-License-Identifier: Apache-2.0
// The list of traces, kept as it is on the server: directories are watched, and reading a trace takes a while.
import { useEffect, useState } from "preact/hooks";
import type { TraceList } from "../data/api";
import type { Reply } from "../data/reply";
import type { DataSource } from "../data/source";

const WATCH_MS = 5000;
const READ_MS = 500;

export function useTraces(source: DataSource): Reply<TraceList> {
	const [list, setList] = useState<Reply<TraceList>>({ state: "loading" });
	useEffect(() => {
		let timer: ReturnType<typeof setTimeout> | undefined;
		let wanted = true;
		let text = "";
		const ask = (): void => {
			source.json<TraceList>("traces").then(
				(data) => {
					if (!wanted) return;
					const now = JSON.stringify(data);
					if (now !== text) setList({ state: "ready", data });
					text = now;
					const reading = data.traces.some((each) => each.state === "reading");
					if (reading || data.watching) timer = setTimeout(ask, reading ? READ_MS : WATCH_MS);
				},
				(error: unknown) => {
					if (!wanted) return;
					// What was listed stays on the screen while the server is away.
					if (text === "") setList({ state: "failed", error: error as Error });
					timer = setTimeout(ask, WATCH_MS);
				},
			);
		};
		ask();
		return () => {
			wanted = false;
			clearTimeout(timer);
		};
	}, [source]);
	return list;
}
