// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { Reply } from "../data/reply";
import { Failure, Loading } from "./status";

/** Shows a reply, that it is loading, or why it failed. */
export function Await<T>({ reply, what, children }: { reply: Reply<T>; what: string; children: (data: T) => ComponentChildren }) {
	if (reply.state === "loading") return <Loading what={what} />;
	if (reply.state === "failed") return <Failure error={reply.error} />;
	return <>{children(reply.data)}</>;
}
