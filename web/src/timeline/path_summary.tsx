// SPDX-License-Identifier: Apache-2.0
//
// The region of the critical path, and what bounds it, above the tracks while it is shown.
import { useReply } from "../data/reply";
import { formatNs, formatShare } from "../format/units";
import type { CriticalPathReply } from "./api";
import { criticalPath } from "./background";
import type { Part } from "./parts";
import type { Stage } from "./stage";
import type { TimelineState } from "./state";
import { fitSpan } from "./viewport";

interface Props {
	state: TimelineState;
	stage: Stage | undefined;
}

export function PathSummary({ state, stage }: Props) {
	return state.parts.map((part) => <PathOfPart key={part.number} state={state} stage={stage} part={part} />);
}

function PathOfPart({ state, stage, part }: Props & { part: Part }) {
	const reply = useReply<CriticalPathReply>(state.source, criticalPath(part));
	const label = state.several ? `${state.labels.value[part.number] ?? ""}: ` : "";
	if (reply.state === "loading") return <p class="tl-path" role="status">{label}Looking for the critical path …</p>;
	if (reply.state === "failed") return <p class="tl-path" role="status">{label}No critical path: {reply.error.message}</p>;
	const { region, start_ns, end_ns, bounds } = state.translator(part).path(reply.data);
	const shares = Object.entries(bounds).sort(([, a], [, b]) => b - a);
	return (
		<p class="tl-path" role="status">
			{label}Critical path of{" "}
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
