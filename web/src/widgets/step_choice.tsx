// SPDX-License-Identifier: Apache-2.0
// Which steps a view is about: all of the trace, one step, or some in a row. In the address as "steps=3:5".
import { useParam } from "../app/params";
import type { TraceEntry } from "../data/api";
import type { TimelineReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";

/** Where the views of the chosen steps are: those of the whole trace unless some are chosen. */
export function useViewsPath(trace: TraceEntry): string {
	const [steps] = useParam("steps");
	return steps === "" ? `traces/${trace.id}/views` : `traces/${trace.id}/steps/${encodeURIComponent(steps)}/views`;
}

export function StepChoice({ source, trace }: { source: DataSource; trace: TraceEntry }) {
	const reply = useReply<TimelineReply>(source, `traces/${trace.id}/timeline`);
	const [chosen, setChosen] = useParam("steps");
	if (reply.state !== "ready") return null;
	const numbers = reply.data.steps.flatMap((step) => /^(?:ProfilerStep#)?(\d+)$/.exec(step.name)?.[1] ?? []);
	if (numbers.length < 2) return null;
	const [first = "", last = first] = chosen.split(":");
	const options = (from: readonly string[]) => from.map((number) => <option key={number}>{number}</option>);
	const behind = numbers.slice(Math.max(0, numbers.indexOf(first)));
	return (
		<span class="step-choice">
			<label>
				Steps{" "}
				<select value={first} onChange={(event) => setChosen(event.currentTarget.value)}>
					<option value="">all, and what is between</option>
					{options(numbers)}
				</select>
			</label>
			{first !== "" && (
				<label>
					{" "}
					to{" "}
					<select value={last} onChange={(event) => setChosen(event.currentTarget.value === first ? first : `${first}:${event.currentTarget.value}`)}>
						{options(behind)}
					</select>
				</label>
			)}
		</span>
	);
}
