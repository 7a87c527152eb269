// SPDX-License-Identifier: Apache-2.0
//
// Selection of the steps that a view covers: the complete trace, one step, or consecutive steps. In the address as
// "steps=3:5", or "steps=all" for the complete trace in a view that opens on the steps.
import type { ComponentChildren } from "preact";
import { useParam } from "../app/params";
import type { ViewProps } from "../app/views";
import type { TraceEntry } from "../data/api";
import type { TimelineReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource, Query } from "../data/source";
import { Await } from "./await";

const ALL = "all";

/** Returns the selected steps in the form of the API; undefined: the complete trace. */
export function useSteps(): string | undefined {
	const [steps] = useParam("steps");
	return steps === "" || steps === ALL ? undefined : steps;
}

/** Returns the parameter of the address with which any view that opens on the steps covers what this one covers. */
export function useSameSteps(): { steps?: string } {
	const [steps] = useParam("steps");
	return steps === "" ? {} : { steps };
}

/** Returns the steps that a view with sums opens on, in the form of the API; undefined: the complete trace. */
export function useOpening(source: DataSource, trace: TraceEntry, opens = true): { loading: boolean; steps: string | undefined } {
	const timeline = useReply<TimelineReply>(source, opens ? `traces/${trace.id}/timeline` : undefined);
	return { loading: opens && timeline.state === "loading", steps: timeline.state === "ready" ? timeline.data.opening?.steps : undefined };
}

/** Returns "step 3" or "steps 3 to 5". */
export function stepsText(steps: string): string {
	const [first, last] = steps.split(":");
	return last === undefined ? `step ${first}` : `steps ${first} to ${last}`;
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

/** A view of the server's reply for the selected steps. It opens on the steps, unless these are nearly all of the trace. */
export function StepView<T>({ source, trace, path, query, what, tools, children }: StepViewProps<T>) {
	const [chosen] = useParam("steps");
	const asked = useSteps();
	const opening = useOpening(source, trace, chosen === "");
	const reply = useReply<T>(source, opening.loading ? undefined : `traces/${trace.id}/${path}`, { ...query, steps: asked ?? opening.steps });
	return (
		<div class="view">
			<div class="tools">
				{tools}
				<StepChoice source={source} trace={trace} opening={opening.steps} opens />
				{opening.steps !== undefined && <OnlySteps />}
			</div>
			<Await reply={reply} what={what}>
				{children}
			</Await>
		</div>
	);
}

/** What a view says that opens on the steps. */
export function OnlySteps() {
	const [, setChosen] = useParam("steps");
	return (
		<span class="keep">
			{"Only the steps are shown. "}
			<button type="button" title="Also show the time before and after the steps" onClick={() => setChosen(ALL)}>
				Show all
			</button>
		</span>
	);
}

interface StepChoiceProps {
	source: DataSource;
	trace: TraceEntry;
	/** The steps that the view shows, because none are selected. */
	opening?: string | undefined;
	/** The view opens on the steps. */
	opens?: boolean;
	/** What the view covers without a selection. */
	all?: string;
}

export function StepChoice({ source, trace, opening, opens, all = "Whole trace" }: StepChoiceProps) {
	const reply = useReply<TimelineReply>(source, `traces/${trace.id}/timeline`);
	const [, setChosen] = useParam("steps");
	const chosen = useSteps() ?? opening ?? "";
	if (reply.state !== "ready") return null;
	const numbers = reply.data.steps.map((step) => `${step.number}`);
	const toOpen = reply.data.opening?.steps;
	if (source.kind === "embedded" && (chosen === "" || chosen === toOpen)) {
		// A report only has replies for the complete trace and for all steps.
		return opens && toOpen !== undefined ? <ChoiceOfReport steps={toOpen} chosen={chosen} /> : null;
	}
	if (numbers.length < 2) return null;
	const [first = "", last = first] = chosen.split(":");
	const options = (from: readonly string[]) => from.map((number) => <option key={number}>{number}</option>);
	const behind = numbers.slice(Math.max(0, numbers.indexOf(first)));
	return (
		<span class="step-choice">
			<label>
				Steps{" "}
				<select value={first} onChange={(event) => setChosen(event.currentTarget.value || (opens ? ALL : undefined))}>
					<option value="">{all}</option>
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

function ChoiceOfReport({ steps, chosen }: { steps: string; chosen: string }) {
	const [, setChosen] = useParam("steps");
	return (
		<label class="step-choice">
			Steps{" "}
			<select value={chosen} onChange={(event) => setChosen(event.currentTarget.value || ALL)}>
				<option value="">Whole trace</option>
				<option value={steps}>{steps.replace(":", " to ")}</option>
			</select>
		</label>
	);
}
