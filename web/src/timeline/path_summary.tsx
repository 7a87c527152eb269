// SPDX-License-Identifier: Apache-2.0
// What the critical path is of, and what bounds it, above the tracks while it is shown.
import { useReply } from "../data/reply";
import { formatNs, formatShare } from "../format/units";
import type { CriticalPathReply } from "./api";
import { criticalPath } from "./background";
import type { Stage } from "./stage";
import type { TimelineState } from "./state";
import { fitSpan } from "./viewport";

export function PathSummary({ state, stage }: { state: TimelineState; stage: Stage | undefined }) {
	const reply = useReply<CriticalPathReply>(state.source, criticalPath(state));
	if (reply.state === "loading") return <p class="tl-path" role="status">Looking for the critical path …</p>;
	if (reply.state === "failed") return <p class="tl-path" role="status">No critical path: {reply.error.message}</p>;
	const { region, start_ns, end_ns, bounds } = reply.data;
	const shares = Object.entries(bounds).sort(([, a], [, b]) => b - a);
	return (
		<p class="tl-path" role="status">
			Critical path of{" "}
			<button
				type="button"
				class="link"
				onClick={() => stage?.show(fitSpan({ from: start_ns, to: end_ns }, state.whole))}
			>
				{region || "the trace"}
			</button>
			, {formatNs(end_ns - start_ns)}: {shares.map(([name, share]) => `${name.replaceAll("_", " ")} ${formatShare(share)}`).join(", ")}
		</p>
	);
}
