// SPDX-License-Identifier: Apache-2.0
//
// The state of a reply in a component: loading, complete, or failed. Replies are kept as long as the page exists, since
// a trace does not change.
import { useEffect, useState } from "preact/hooks";
import { address, type DataSource, isAbort, type Query } from "./source";

export type Reply<T> = { state: "loading" } | { state: "ready"; data: T } | { state: "failed"; error: Error };

const kept = new WeakMap<DataSource, Map<string, Promise<unknown>>>();

/** Returns the reply of a path, which is requested once. A failed request is repeated the next time. */
export function fetchReply<T>(source: DataSource, path: string, query?: Query): Promise<T> {
	const key = address(path, query);
	let replies = kept.get(source);
	if (!replies) {
		replies = new Map<string, Promise<unknown>>();
		kept.set(source, replies);
	}
	let reply = replies.get(key) as Promise<T> | undefined;
	if (!reply) {
		reply = source.json<T>(path, query);
		replies.set(key, reply);
		const all = replies;
		reply.catch(() => all.delete(key));
	}
	return reply;
}

export interface Request {
	path: string;
	query?: Query;
}

/** Requests a reply, and renders again when it arrives. Requests nothing while the path is undefined. */
export function useReply<T>(source: DataSource, path: string | undefined, query?: Query): Reply<T> {
	return useAnswer(source, path === undefined ? undefined : address(path, query), () => fetchReply<T>(source, path!, query));
}

/** Returns several replies, once all have arrived. */
export function useReplies<T>(source: DataSource, requests: readonly Request[]): Reply<T[]> {
	const key = requests.map(({ path, query }) => address(path, query)).join("\n");
	return useAnswer(source, key, () => Promise.all(requests.map(({ path, query }) => fetchReply<T>(source, path, query))));
}

function useAnswer<T>(source: DataSource, key: string | undefined, ask: () => Promise<T>): Reply<T> {
	const [held, hold] = useState<{ key: string | undefined; reply: Reply<T> }>();
	useEffect(() => {
		if (key === undefined) return;
		let wanted = true;
		ask().then(
			(data) => {
				if (wanted) hold({ key, reply: { state: "ready", data } });
			},
			(error: unknown) => {
				if (wanted && !isAbort(error)) hold({ key, reply: { state: "failed", error: error as Error } });
			},
		);
		return () => {
			wanted = false;
		};
	}, [source, key]);
	return held && held.key === key ? held.reply : { state: "loading" };
}
