// SPDX-License-Identifier: Apache-2.0
//
// Selection of the steps that a view covers: the complete trace, one step, or consecutive steps. In the address as
// "steps=3:5".
import type { ComponentChildren } from "preact";
import { useParam } from "../app/params";
import type { ViewProps } from "../app/views";
import type { TraceEntry } from "../data/api";
import type { TimelineReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource, Query } from "../data/source";
import { Await } from "./await";

/** Returns the selected steps in the form of the API; undefined: the complete trace. */
export function useSteps(): string | undefined {
	const [steps] = useParam("steps");
	return steps === "" ? undefined : steps;
}

interface StepViewProps<T> extends Pick<ViewProps, "source" | "trace"> {
	/** The path after "traces/ID/". */
	path: string;
	query?: Query;
	/** Name of the data to wait for. */
	what: string;
	/** Additional controls. */
	tools?: ComponentChildren;
	children: (data: T) => ComponentChildren;
}

/** A view of the server's reply for the selected steps. */
export function StepView<T>({ source, trace, path, query, what, tools, children }: StepViewProps<T>) {
	const steps = useSteps();
	const reply = useReply<T>(source, `traces/${trace.id}/${path}`, { ...query, steps });
	return (
		<div class="view">
			<div class="tools">
				{tools}
				<StepChoice source={source} trace={trace} />
			</div>
			<Await reply={reply} what={what}>
				{children}
			</Await>
		</div>
	);
}

export function StepChoice({ source, trace }: { source: DataSource; trace: TraceEntry }) {
	const reply = useReply<TimelineReply>(source, `traces/${trace.id}/timeline`);
	const [chosen, setChosen] = useParam("steps");
	if (reply.state !== "ready") return null;
	if (source.kind === "embedded" && chosen === "") return null; // a report only has replies for the complete trace
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
					<option value="">Whole trace</option>
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
