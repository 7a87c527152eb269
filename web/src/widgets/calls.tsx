// SPDX-License-Identifier: Apache-2.0
//
// The calls of one name by duration: statistics, the longest calls, and the lines of the program that make them.
import type { CallsReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";
import { formatCount, formatMoment, formatNs } from "../format/units";
import { Await } from "./await";
import { SourceLink, TimelineLink } from "./links";
import { Pairs } from "./tooltip";

interface CallsProps {
	source: DataSource;
	trace: string;
	/** Calls of a name, or calls like an event. */
	of: { name: string } | { row: number };
}

export function Calls({ source, trace, of }: CallsProps) {
	const reply = useReply<CallsReply>(source, source.kind === "http" ? `traces/${trace}/timeline/calls` : undefined, of);
	if (source.kind !== "http") return null; // a report does not have them
	return (
		<Await reply={reply} what="its calls">
			{(calls) => (calls.count === 0 ? <p class="soft">The timeline has no call of it.</p> : <Distribution trace={trace} calls={calls} />)}
		</Await>
	);
}

function Distribution({ trace, calls }: { trace: string; calls: CallsReply }) {
	const { count, rank, min_ns = 0, median_ns = 0, p95_ns = 0, max_ns = 0, histogram = [], longest, lines } = calls;
	return (
		<div class="calls">
			<div>
				<h3>{`${formatCount(count)} ${count === 1 ? "call" : "calls"} in the whole trace`}</h3>
				<Pairs
					pairs={[
						...(rank === null || count === 1 ? [] : ([["rank of this call", `${formatCount(rank)} of ${formatCount(count)}${rank === 1 ? ", the longest" : ""}`]] satisfies [string, string][])),
						["shortest", formatNs(min_ns)],
						["median", formatNs(median_ns)],
						["95th percentile", formatNs(p95_ns)],
						["longest", formatNs(max_ns)],
					]}
				/>
			</div>
			{max_ns > min_ns && <Histogram counts={histogram} from={min_ns} to={max_ns} />}
			{lines.length > 0 && (
				<div>
					<h3>Called at</h3>
					<ul class="call-lines">
						{lines.slice(0, 8).map((each) => (
							<li key={`${each.file}:${each.line}`}>
								<SourceLink trace={trace} file={each.file} line={each.line} /> <span class="soft">{`${formatNs(each.total_ns)}, ${formatCount(each.count)} ×`}</span>
							</li>
						))}
					</ul>
				</div>
			)}
			<div>
				<h3>Longest calls</h3>
				<ul class="call-lines">
					{longest.slice(0, 5).map((each) => (
						<li key={each.row}>
							<TimelineLink trace={trace} place={{ row: each.row }}>{`${formatNs(each.duration_ns)} at ${formatMoment(each.start_ns)}`}</TimelineLink>
						</li>
					))}
				</ul>
			</div>
		</div>
	);
}

/** Calls by duration, in equal parts. The height is the square root of the number, so that small numbers remain
 * visible. */
function Histogram({ counts, from, to }: { counts: readonly number[]; from: number; to: number }) {
	const most = Math.max(1, ...counts);
	const title = `Calls by duration from ${formatNs(from)} to ${formatNs(to)}: ${counts.join(", ")}`;
	return (
		<div>
			<h3>Calls by duration</h3>
			<svg class="histogram" viewBox={`0 0 ${counts.length} 10`} preserveAspectRatio="none" role="img" aria-label={title}>
				{counts.map((count, i) => {
					const height = count === 0 ? 0 : Math.max(0.4, 10 * Math.sqrt(count / most));
					return <rect key={i} x={i + 0.05} y={10 - height} width={0.9} height={height} />;
				})}
			</svg>
			<div class="histogram-ends soft">
				<span>{formatNs(from)}</span>
				<span>{formatNs(to)}</span>
			</div>
		</div>
	);
}
