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
import { stepsApart } from "../data/steps_apart";
import { Await } from "./await";

/** The value in the address for the complete trace in a view that opens on the steps. */
const ALL = "all";

/** Returns the selected steps in the form of the API; undefined: the complete trace. */
export function useSteps(): string | undefined {
	const [steps] = useParam("steps");
	return steps === "" || steps === ALL ? undefined : steps;
}

function numbersOf(timeline: TimelineReply): string[] {
	return timeline.steps.flatMap((step) => /^(?:ProfilerStep#)?(\d+)$/.exec(step.name)?.[1] ?? []);
}

/** Returns the steps on which a view opens, "0:5", if they are a small part of the trace; "": the complete trace. */
function openingOf(source: DataSource, timeline: TimelineReply): string {
	const numbers = numbersOf(timeline);
	if (source.kind === "embedded" || numbers.length < timeline.steps.length || !stepsApart(timeline)) return "";
	return numbers.length > 1 ? `${numbers[0]}:${numbers.at(-1)}` : numbers[0]!;
}

interface StepViewProps<T> extends Pick<ViewProps, "source" | "trace"> {
	/** The path after "traces/ID/". */
	path: string;
	query?: Query;
	/** Name of the data to wait for. */
	what: string;
	/** Opens on the steps if they are a small part of the trace. */
	opensOnSteps?: boolean;
	/** Additional controls. */
	tools?: ComponentChildren;
	children: (data: T) => ComponentChildren;
}

/** A view of the server's reply for the selected steps. */
export function StepView<T>({ source, trace, path, query, what, opensOnSteps, tools, children }: StepViewProps<T>) {
	const [chosen] = useParam("steps");
	const waits = opensOnSteps === true && chosen === "";
	const timeline = useReply<TimelineReply>(source, waits ? `traces/${trace.id}/timeline` : undefined);
	const opening = waits && timeline.state === "ready" ? openingOf(source, timeline.data) : "";
	const steps = (chosen === "" ? opening : chosen === ALL ? "" : chosen) || undefined;
	const reply = useReply<T>(source, waits && timeline.state === "loading" ? undefined : `traces/${trace.id}/${path}`, { ...query, steps });
	return (
		<div class="view">
			<div class="tools">
				{tools}
				<StepChoice source={source} trace={trace} opensOnSteps={opensOnSteps ?? false} />
			</div>
			<Await reply={reply} what={what}>
				{children}
			</Await>
		</div>
	);
}

export function StepChoice({ source, trace, opensOnSteps = false }: { source: DataSource; trace: TraceEntry; opensOnSteps?: boolean }) {
	const reply = useReply<TimelineReply>(source, `traces/${trace.id}/timeline`);
	const [wanted, setChosen] = useParam("steps");
	if (reply.state !== "ready") return null;
	if (source.kind === "embedded" && wanted === "") return null; // a report only has replies for the complete trace
	const opening = opensOnSteps ? openingOf(source, reply.data) : "";
	const chosen = wanted === ALL ? "" : wanted || opening;
	const numbers = numbersOf(reply.data);
	if (numbers.length < 2 && opening === "") return null;
	const [first = "", last = first] = chosen.split(":");
	const options = (from: readonly string[]) => from.map((number) => <option key={number}>{number}</option>);
	const behind = numbers.slice(Math.max(0, numbers.indexOf(first)));
	return (
		<span class="step-choice">
			<label>
				Steps{" "}
				<select value={first} onChange={(event) => setChosen(event.currentTarget.value || (opening && ALL))}>
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
