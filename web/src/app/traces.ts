// SPDX-License-Identifier: Apache-2.0
//
// The list of traces, kept in sync with the server: directories are watched, and reading a trace takes a while.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { TraceEntry, TraceList } from "../data/api";
import type { Reply } from "../data/reply";
import { type DataSource, SourceError } from "../data/source";

const WATCH_MS = 5000;
const READ_MS = 300;
const SUMMARY_MS = 1000;

/** Traces that the server is reading. */
export const beingRead = signal<readonly TraceEntry[]>([]);

const wishes = signal(0);

/** The last request for the list failed. */
export const serverGone = signal(false);

/** Requests the list again, because its contents may have changed. */
export function askForTraces(): void {
	wishes.value++;
}

/** `summaries`: "all", or the id of a trace for the traces in its directory. The server reads them in the background. */
export function useTraces(source: DataSource, summaries: string | undefined): Reply<TraceList> {
	const [list, setList] = useState<Reply<TraceList>>({ state: "loading" });
	useEffect(() => {
		let timer: ReturnType<typeof setTimeout> | undefined;
		let asked = 0; // replies to earlier requests are outdated
		let text = "";
		const ask = (): void => {
			clearTimeout(timer);
			const number = ++asked;
			source.json<TraceList>("traces", { summaries }).then(
				(data) => {
					if (number !== asked) return;
					serverGone.value = false;
					const now = JSON.stringify(data);
					const reading = data.traces.filter((each) => each.state === "reading");
					if (now !== text) {
						setList({ state: "ready", data });
						beingRead.value = reading;
					}
					text = now;
					// Also polls where no new traces can appear, to detect that the server is gone.
					if (source.kind === "http") timer = setTimeout(ask, reading.length > 0 ? READ_MS : summaries !== undefined && data.traces.some(isAwaited) ? SUMMARY_MS : WATCH_MS);
				},
				(error: unknown) => {
					if (number !== asked) return;
					// The list stays on the screen while the server is unavailable.
					serverGone.value = text !== "" && error instanceof SourceError && error.status === 0;
					if (text === "") setList({ state: "failed", error: error as Error });
					timer = setTimeout(ask, WATCH_MS);
				},
			);
		};
		const stop = wishes.subscribe(ask); // also called immediately
		return () => {
			stop();
			asked++;
			clearTimeout(timer);
		};
	}, [source, summaries]);
	return list;
}

function isAwaited(trace: TraceEntry): boolean {
	return trace.summary === null && trace.state !== "failed";
}
