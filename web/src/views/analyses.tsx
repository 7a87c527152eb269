// SPDX-License-Identifier: Apache-2.0
//
// Any analysis of `opstrobe analyze`, with its options in a form. The analysis and the options are in the address.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useParam } from "../app/params";
import { route, setParams } from "../app/route";
import type { TraceFacts, ViewProps } from "../app/views";
import type { TraceEntry } from "../data/api";
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

/** Analyses of two traces, or of files other than traces, are left to the command line and the diff view. */
function shown(analyses: readonly Analysis[]): Analysis[] {
	return analyses.filter((each) => each.traces === "ranks" && !each.reads_other_files);
}

function Questions({ source, trace, traces, analyses: all }: ViewProps & { analyses: readonly Analysis[] }) {
	const facts = useReply<{ value: TraceFacts }>(source, `traces/${trace.id}/info`);
	const kinds = facts.state === "ready" ? facts.data.value.events_by_kind : undefined;
	const host = kinds !== undefined && !kinds.kernel && !kinds.gpu_memcpy && !kinds.gpu_memset;
	const [of] = useParam("of", "trace");
	const there = all.filter((each) => source.has(`traces/${idsOf(of, trace, traces)}/analyses/${each.id}`));
	const analyses = host ? [...there.filter((each) => !each.needs_device_work), ...there.filter((each) => each.needs_device_work)] : there;
	const first = analyses.find((each) => each.id === (host ? "key_averages" : "idle_time_breakdown")) ?? analyses[0];
	const [id] = useParam("id", first?.id ?? "");
	const analysis = all.find((each) => each.id === id) ?? first;
	const list = useRef<HTMLElement>(null);
	// The list scrolls to the initial selection only.
	useEffect(() => {
		const chosen = list.current?.querySelector("[aria-current]");
		if (list.current && chosen) list.current.scrollTop = chosen.getBoundingClientRect().top - list.current.getBoundingClientRect().top - 80;
	}, []);
	if (!analysis || facts.state === "loading") return null;
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
							<button
								type="button"
								class={host && each.needs_device_work ? "plain no-data" : "plain"}
								title={host && each.needs_device_work ? "No GPU activity in this trace" : undefined}
								aria-current={each === analysis ? "true" : undefined}
								onClick={() => choose(each.id)}
							>
								{titleOf(each)}
								<span class="soft mono">{each.id}</span>
							</button>
						</li>
					))}
				</ul>
			</nav>
			<Question key={analysis.id} source={source} trace={trace} traces={traces} analysis={analysis} absent={host && analysis.needs_device_work} />
		</div>
	);
}

/** Returns the ids of the traces that are asked: this one, or all of its run. */
function idsOf(of: string, trace: TraceEntry, traces: readonly TraceEntry[]): string {
	return of === "run" ? runOf(trace, traces).map((each) => each.id).join(",") : trace.id;
}

function titleOf({ summary }: Analysis): string {
	return summary.charAt(0).toUpperCase() + summary.slice(1);
}

function Question({ source, trace, traces, analysis, absent }: ViewProps & { analysis: Analysis; absent: boolean }) {
	const run = runOf(trace, traces);
	const [of, setOf] = useParam("of", "trace");
	const ids = idsOf(of, trace, traces);
	const params = route.value.params;
	const args = useMemo(() => argsOf(analysis, params), [analysis, params]);
	const reply = useReply<AnswerReply>(source, `traces/${ids}/analyses/${encodeURIComponent(analysis.id)}`, {
		args: Object.keys(args).length > 0 ? JSON.stringify(args) : undefined,
		steps: useSteps(),
	});
	return (
		<section class="panel" aria-label={analysis.summary}>
			<h2>{titleOf(analysis)}</h2>
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
			{absent && of !== "run" && <p class="soft">The trace has no GPU activity, which this analysis is about.</p>}
			<StepChoice source={source} trace={trace} />
			<AnalysisForm analysis={analysis} />
			<Await reply={reply} what="the answer">
				{(answer) => (
					<>
						<AnalysisChart id={analysis.id} answer={answer} />
						<Answer id="answer" numbered="Rank" label={analysis.id} value={isTable(answer) ? answer.table : answer.value} empty={answer.empty} />
						{answer.left_out_step !== undefined && (
							<p class="panel-foot soft">{`Without step ${answer.left_out_step}, the last one; the option include_last_profiler_step keeps it.`}</p>
						)}
					</>
				)}
			</Await>
		</section>
	);
}
