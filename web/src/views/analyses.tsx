// SPDX-License-Identifier: Apache-2.0
//
// Any analysis of `opstrobe analyze`, with its options in a form. The analysis and the options are in the address.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useParam } from "../app/params";
import { route, setParams } from "../app/route";
import type { ViewProps } from "../app/views";
import type { Analysis, AnswerReply } from "../data/replies";
import { useReply } from "../data/reply";
import { Answer, isTable } from "../widgets/answer";
import { Await } from "../widgets/await";
import { Choice } from "../widgets/choice";
import { StepChoice, useSteps } from "../widgets/step_choice";
import { AnalysisChart } from "./analysis_chart";
import { AnalysisForm, argsOf } from "./analysis_form";
import { runOf } from "./runs";

export function Analyses({ source, trace, traces }: ViewProps) {
	const reply = useReply<{ analyses: Analysis[] }>(source, "analyses");
	return (
		<div class="view">
			<Await reply={reply} what="the analyses">
				{({ analyses }) => <Questions source={source} trace={trace} traces={traces} analyses={shown(analyses)} />}
			</Await>
		</div>
	);
}

/** Analyses that write files, or require two traces, are left to the command line and the diff view. */
const NOT_HERE = new Set(["trace_with_counters", "execution_trace", "memory_timeline", "cupti_counters"]);

function shown(analyses: readonly Analysis[]): Analysis[] {
	return analyses.filter((each) => each.traces === "ranks" && !NOT_HERE.has(each.id));
}

function Questions({ source, trace, traces, analyses }: ViewProps & { analyses: readonly Analysis[] }) {
	const [id] = useParam("id", analyses.find((each) => each.id === "idle_time_breakdown")?.id ?? analyses[0]?.id ?? "");
	const analysis = analyses.find((each) => each.id === id) ?? analyses[0];
	const list = useRef<HTMLElement>(null);
	// The list scrolls to the initial selection only.
	useEffect(() => {
		const chosen = list.current?.querySelector("[aria-current]");
		if (list.current && chosen) list.current.scrollTop = chosen.getBoundingClientRect().top - list.current.getBoundingClientRect().top - 80;
	}, []);
	if (!analysis) return null;
	const choose = (next: string) => {
		const forget = Object.fromEntries([...route.value.params.keys()].filter((name) => name !== "of" && name !== "steps").map((name) => [name, undefined]));
		setParams({ ...forget, id: next });
	};
	return (
		<div class="advice">
			<nav ref={list} class="panel summary" aria-label="Analyses">
				<h2>Analyses</h2>
				<ul class="questions">
					{analyses.map((each) => (
						<li key={each.id}>
							<button type="button" class="plain" aria-current={each === analysis ? "true" : undefined} onClick={() => choose(each.id)}>
								{each.summary}
								<span class="soft mono">{each.id}</span>
							</button>
						</li>
					))}
				</ul>
			</nav>
			<Question key={analysis.id} source={source} trace={trace} traces={traces} analysis={analysis} />
		</div>
	);
}

function Question({ source, trace, traces, analysis }: ViewProps & { analysis: Analysis }) {
	const run = runOf(trace, traces);
	const [of, setOf] = useParam("of", "trace");
	const ids = of === "run" ? run.map((each) => each.id).join(",") : trace.id;
	const params = route.value.params;
	const args = useMemo(() => argsOf(analysis, params), [analysis, params]);
	const reply = useReply<AnswerReply>(source, `traces/${ids}/analyses/${encodeURIComponent(analysis.id)}`, {
		args: Object.keys(args).length > 0 ? JSON.stringify(args) : undefined,
		steps: useSteps(),
	});
	return (
		<section class="panel" aria-label={analysis.summary}>
			<h2>{analysis.summary.charAt(0).toUpperCase() + analysis.summary.slice(1)}</h2>
			{run.length > 1 && (
				<Choice
					label="Traces"
					options={[
						{ id: "trace", title: "This trace" },
						{ id: "run", title: `All ${run.length} of the run` },
					]}
					value={of === "run" ? "run" : "trace"}
					onChange={setOf}
				/>
			)}
			<StepChoice source={source} trace={trace} />
			<AnalysisForm analysis={analysis} />
			<Await reply={reply} what="the answer">
				{(answer) => (
					<>
						<AnalysisChart id={analysis.id} answer={answer} />
						<Answer id="answer" numbered="Rank" label={analysis.id} value={isTable(answer) ? answer.table : answer.value} />
					</>
				)}
			</Await>
		</section>
	);
}
