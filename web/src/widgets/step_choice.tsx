// SPDX-License-Identifier: Apache-2.0
// Which steps a view is about. In the address as "steps=2,3", and so in what is asked of the server.
import { useListParam, useParam } from "../app/params";
import type { TraceEntry } from "../data/api";
import type { TimelineReply } from "../data/replies";
import { useReply } from "../data/reply";
import type { DataSource } from "../data/source";

/** The steps that the reader chose, as the server takes them; undefined is all of the trace. */
export function useSteps(): string | undefined {
	const [text] = useParam("steps");
	return text === "" ? undefined : text;
}

export function StepChoice({ source, trace }: { source: DataSource; trace: TraceEntry }) {
	const reply = useReply<TimelineReply>(source, `traces/${trace.id}/timeline`);
	const [chosen, setChosen] = useListParam("steps");
	if (reply.state !== "ready" || reply.data.steps.length < 2) return null;
	const names = reply.data.steps.map((step) => step.name.replace(/^ProfilerStep#/, ""));
	const flip = (name: string) => {
		const next = new Set(chosen);
		if (!next.delete(name)) next.add(name);
		setChosen(new Set(names.filter((each) => next.has(each))));
	};
	return (
		<details class="menu">
			<summary>{chosen.size === 0 ? "All of the trace" : chosen.size === 1 ? `Step ${[...chosen][0]!}` : `${chosen.size} steps`}</summary>
			<div class="menu-items">
				<label>
					<input type="checkbox" checked={chosen.size === 0} onChange={() => setChosen(new Set())} /> All of the trace
				</label>
				{names.map((name) => (
					<label key={name}>
						<input type="checkbox" checked={chosen.has(name)} onChange={() => flip(name)} /> {`Step ${name}`}
					</label>
				))}
			</div>
		</details>
	);
}
