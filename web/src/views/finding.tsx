// SPDX-License-Identifier: Apache-2.0
//
// A finding of advice: as one line for the overview, and in full.
import { routeHref } from "../app/route";
import type { TraceEntry } from "../data/api";
import type { Finding, Where } from "../data/replies";
import { libraryLine } from "../format/library_line";
import { measuredText } from "../format/measured";
import { formatPercent, formatUs } from "../format/units";
import { Meter } from "../widgets/cards";
import { SourceLink, timelineHref } from "../widgets/links";

interface FindingProps {
	/** The open trace. */
	trace: string;
	/** The requested traces. */
	asked: readonly string[];
	finding: Finding;
	index: number;
}

export function FindingLine({ trace, finding, index }: Omit<FindingProps, "asked">) {
	const place = finding.where.find((where) => where.file !== null);
	return (
		<li class={`finding-line ${finding.severity}`}>
			<Gain finding={finding} />
			<div>
				<a href={routeHref("advice", trace, { finding: index })}>{finding.title}</a>{" "}
				{place?.file && <SourceLink trace={trace} file={place.file} line={place.line} />}
				<p>{finding.evidence}</p>
			</div>
		</li>
	);
}

/** Returns the text shown if there are no findings. */
export function noFindings(trace: TraceEntry, summary: string): string {
	if (trace.diagnostics.some(({ kind }) => kind === "truncated" || kind === "gzip_truncated")) return "No findings: the trace ends early, so gains are unknown.";
	return `${summary}.`;
}

/** The predicted gain. The saving has a minus sign, next to which "at least" would be ambiguous. */
export function Gain({ finding }: { finding: Finding }) {
	const { predicted_gain_percent: percent, predicted_gain_ms_per_step: ms, predicted_gain_bound: bound, predicted_gain_warning: warning } = finding;
	const gain = percent !== null && percent > 0 ? `-${formatPercent(percent)}` : ms !== null && ms > 0 ? `-${formatUs(ms * 1000)}` : undefined;
	return (
		<span class="gain">
			{gain && bound === "at most" && <small>up to </small>}
			{gain ?? finding.severity}
			{gain && bound === "at least" && <small> or more</small>}
			{gain && warning && <small class="warning"> {warning}</small>}
		</span>
	);
}

export function FindingCard({ trace, asked, finding, whole, index, chosen }: FindingProps & { whole: string; chosen: boolean }) {
	const { predicted_gain_percent: percent, predicted_gain_ms_per_step: ms, predicted_gain_bound: bound } = finding;
	return (
		<article id={`finding-${index}`} class={`panel finding ${finding.severity}`} aria-label={finding.title} aria-current={chosen ? "true" : undefined} tabIndex={-1}>
			<header>
				<h2>{finding.title}</h2>
				<span class={`badge ${finding.severity}`}>{finding.severity}</span>
				<span class="badge" title="Confidence that the change saves this time">{`${finding.confidence} confidence`}</span>
			</header>
			{percent !== null && percent > 0 && (
				<div class="gain-bar">
					<span class="gain-figure">{`predicted to save ${bound} ${formatPercent(percent)} of ${whole}`}</span>
					{finding.predicted_gain_interval && <span class="soft">{finding.predicted_gain_interval}</span>}
					{ms !== null && <span class="soft">{formatUs(ms * 1000)}</span>}
					{finding.predicted_gain_warning && <span class="warning">{finding.predicted_gain_warning}</span>}
					<Meter label="Predicted gain" share={percent / 100} />
				</div>
			)}
			{finding.measured && <p class="gain-figure">{measuredText(finding.measured)}</p>}
			<p>{finding.evidence}</p>
			<Places trace={trace} asked={asked} where={finding.where} />
			<h3>What to do</h3>
			<AdviceText text={finding.advice} />
			<h3>Why it matters</h3>
			<p class="soft">{finding.explanation}</p>
			<ul class="more">
				{finding.links.filter(isWeb).map((link) => (
					<li key={link}>
						<a href={link} rel="noreferrer noopener" target="_blank">
							{link.replace(/^https?:\/\//, "")}
						</a>
					</li>
				))}
			</ul>
		</article>
	);
}

/** Text, and code to copy after an empty line. */
function AdviceText({ text }: { text: string }) {
	const [words = "", ...code] = text.split("\n\n");
	return (
		<>
			<p class="advice-text">{words}</p>
			{code.length > 0 && (
				<pre class="advice-code">
					<code>{code.join("\n\n")}</code>
				</pre>
			)}
		</>
	);
}

/** Links come from the rules. Only web links are accepted. */
function isWeb(link: string): boolean {
	return /^https?:\/\//.test(link);
}

export function Places({ trace, asked, where }: { trace: string; asked: readonly string[]; where: readonly Where[] }) {
	const known = where.filter((place) => place.file ?? place.function ?? place.module ?? place.operator ?? place.row);
	if (known.length === 0) return null;
	return (
		<ul class="places" aria-label="Where">
			{known.map((place, i) => (
				<li key={i}>
					{place.file !== null && <SourceLink trace={trace} file={place.file} line={place.line} />}
					{place.function !== null && <code>{place.function}</code>}
					{place.module !== null && <code class="module">{place.module}</code>}
					{place.operator !== null && <code class="operator">{place.operator}</code>}
					<TimelinePlace trace={asked[place.trace ?? -1] ?? trace} place={place} />
					{place.through.map((line, n) => (
						<div class="through" key={n}>
							through <SourceLink trace={trace} file={line.file} line={line.line} shown={libraryLine(line)} />
						</div>
					))}
				</li>
			))}
		</ul>
	);
}

/** Links to the most expensive event of the place, else to all events of the name. */
function TimelinePlace({ trace, place }: { trace: string; place: Where }) {
	const name = place.operator ?? place.function ?? place.module;
	const to = place.row !== null ? { row: place.row } : name !== null ? { find: name } : undefined;
	if (!to) return null;
	return (
		<a class="place-link" href={timelineHref(trace, to)}>
			in the timeline
		</a>
	);
}
