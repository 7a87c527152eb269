// SPDX-License-Identifier: Apache-2.0
//
// Advice: each finding with its place, its evidence and its predicted gain.
import { useEffect, useState } from "preact/hooks";
import { useParam } from "../app/params";
import type { ViewProps } from "../app/views";
import type { TraceEntry } from "../data/api";
import type { AdviceReply, Finding } from "../data/replies";
import { useReply } from "../data/reply";
import { Await } from "../widgets/await";
import { Choice } from "../widgets/choice";
import { FindingCard, Gain, noFindings } from "./finding";
import { NotExplained } from "./not_explained";
import { runOf } from "./runs";

export function Advice({ source, trace, traces }: ViewProps) {
	const run = runOf(trace, traces);
	const [scope, setScope] = useParam("of", "trace");
	const asked = scope === "run" && run.length > 1 ? run.map((each) => each.id) : [trace.id];
	const reply = useReply<AdviceReply>(source, `traces/${asked.join(",")}/advice`);
	return (
		<div class="view">
			{run.length > 1 && (
				<Choice
					label="Advice for"
					options={[
						{ id: "trace", title: "This trace" },
						{ id: "run", title: `All ${run.length} of the run` },
					]}
					value={scope === "run" ? "run" : "trace"}
					onChange={setScope}
				/>
			)}
			<Await reply={reply} what="advice">
				{(advice) =>
					advice.findings.length === 0 ? (
						<>
							<NothingFound trace={trace} {...advice} />
							<NotExplained trace={trace.id} asked={asked} time={advice.not_explained} />
						</>
					) : (
						<Findings trace={trace.id} asked={asked} advice={advice} />
					)
				}
			</Await>
		</div>
	);
}

function Findings({ trace, asked, advice }: { trace: string; asked: readonly string[]; advice: AdviceReply }) {
	const { findings, checked } = advice;
	const [chosen, setChosen] = useParam("finding");
	useEffect(() => {
		if (chosen !== "") document.getElementById(`finding-${chosen}`)?.scrollIntoView({ block: "start" });
	}, [chosen]);
	return (
		<div class="advice">
			<nav class="panel summary" aria-label="Findings">
				<h2>{findings.length === 1 ? "One finding" : `${findings.length} findings`}</h2>
				<p class="soft">{advice.base.text}</p>
				<ol>
					{findings.map((finding, i) => (
						<li key={i} class={finding.severity}>
							<button type="button" class="plain" aria-current={chosen === String(i) ? "true" : undefined} onClick={() => setChosen(String(i))}>
								<Gain finding={finding} /> {finding.title}
							</button>
						</li>
					))}
				</ol>
				<Checked checked={checked} findings={findings} />
			</nav>
			<div class="finding-cards">
				{findings.map((finding, i) => (
					<FindingCard key={i} trace={trace} asked={asked} finding={finding} whole={advice.base.steps ? "a step" : "the recording"} index={i} chosen={chosen === String(i)} />
				))}
				<NotExplained trace={trace} asked={asked} time={advice.not_explained} />
			</div>
		</div>
	);
}

function Checked({ checked, findings }: { checked: readonly string[]; findings: readonly Finding[] }) {
	const [open, setOpen] = useState(false);
	const clean = checked.filter((id) => findings.every((finding) => finding.id !== id));
	if (clean.length === 0) return null;
	return (
		<>
			<button type="button" class="plain" aria-expanded={open} onClick={() => setOpen(!open)}>
				{open ? "▾" : "▸"} {`${clean.length} more rules applied, no problems found`}
			</button>
			{open && (
				<ul class="checked">
					{clean.map((id) => (
						<li key={id}>{id}</li>
					))}
				</ul>
			)}
		</>
	);
}

function NothingFound({ trace, checked, summary }: { trace: TraceEntry; checked: readonly string[]; summary: string }) {
	if (checked.length === 0) return <div class="empty">{noFindings(trace, summary)}</div>;
	return (
		<div class="empty">
			<p>{noFindings(trace, summary)}</p>
			<p>
				Recorded with <code>with_stack=True</code>, <code>record_shapes=True</code>, <code>profile_memory=True</code> and a
				schedule of steps, a trace lets all rules apply.
			</p>
			<p>Rules applied:</p>
			<ul class="checked">
				{checked.map((id) => (
					<li key={id}>{id}</li>
				))}
			</ul>
		</div>
	);
}
