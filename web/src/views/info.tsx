// SPDX-License-Identifier: Apache-2.0
//
// The origin and the contents of the trace.
import type { ViewProps } from "../app/views";
import type { JsonValue } from "../data/replies";
import { useReply } from "../data/reply";
import { TABLES } from "../data/tables";
import { formatBytes, formatCount, formatUs, isWallClock } from "../format/units";
import { Answer } from "../widgets/answer";
import { Await } from "../widgets/await";

type InfoValue = Record<string, JsonValue>;

export function Info({ source, trace }: ViewProps) {
	const reply = useReply<{ value: InfoValue }>(source, `traces/${trace.id}/info`);
	return (
		<div class="view">
			<section class="panel" aria-label="The file">
				<h2 class="long">{trace.name}</h2>
				<dl class="pairs wide">
					<Fact name="Path" value={trace.path} />
					<Fact name="Size" value={formatBytes(trace.bytes)} />
				</dl>
			</section>
			<Await reply={reply} what="the trace’s facts">
				{({ value }) => <Facts value={value} />}
			</Await>
		</div>
	);
}

function Fact({ name, value, about }: { name: string; value: string; about?: string | undefined }) {
	return value === "" ? null : (
		<div>
			<dt title={about}>{name}</dt>
			<dd class="long">{value}</dd>
		</div>
	);
}

type Titles = Record<string, { title: string; about?: string; kind: string }>;

/** Parts of a fact that the page shows together, or elsewhere. */
const PARTS = new Set(["file", "recording", "events_by_kind", "metadata", "start_ns", "duration_us", "steps", "steps_from", "steps_source", "first_step", "last_step"]);

function Facts({ value }: { value: InfoValue }) {
	const { metadata, recording, events_by_kind: kinds } = value;
	const shown = isObject(recording) && "gpus" in recording ? new Set([...PARTS, "gpus"]) : PARTS;
	return (
		<>
			{isObject(recording) && <FactList title={TABLES.info.recording.title} titles={TABLES.recording} value={recording} />}
			<section class="panel" aria-label="Contents">
				<h2>Contents</h2>
				<dl class="pairs wide">
					{momentOf(value.start_ns) && <Fact name={TABLES.info.start_ns.title} value={momentOf(value.start_ns)} />}
					<Fact name={TABLES.info.duration_us.title} value={formatUs(Number(value.duration_us))} />
					<Fact name={TABLES.info.steps.title} value={stepsOf(value)} />
					{factsOf(TABLES.info, value).map(([name, title, text, about]) => !shown.has(name) && <Fact key={name} name={title} value={text} about={about} />)}
				</dl>
			</section>
			{isObject(kinds) && Object.keys(kinds).length > 0 && <FactList title={TABLES.info.events_by_kind.title} titles={TABLES.event_kinds} value={kinds} />}
			{metadata !== undefined && metadata !== null && (
				<section class="panel" aria-label="Metadata">
					<details>
						<summary>All metadata of the file</summary>
						<Answer id="metadata" label="Metadata" value={metadata} />
					</details>
				</section>
			)}
		</>
	);
}

function FactList({ title, titles, value }: { title: string; titles: Titles; value: InfoValue }) {
	return (
		<section class="panel" aria-label={title}>
			<h2>{title}</h2>
			<dl class="pairs wide">
				{factsOf(titles, value).map(([name, of, text, about]) => (
					<Fact key={name} name={of} value={text} about={about} />
				))}
			</dl>
		</section>
	);
}

/** Returns name, title, text and meaning of each known fact: the declared ones in order, then the others under their names. */
function factsOf(titles: Titles, value: InfoValue): [string, string, string, string | undefined][] {
	const names = [...Object.keys(titles), ...Object.keys(value).filter((name) => !(name in titles))];
	return names
		.filter((name) => value[name] !== undefined && value[name] !== null)
		.map((name) => {
			const { title = name, kind, about } = titles[name] ?? {};
			const fact = value[name]!;
			return [name, title, kind === "count" ? formatCount(Number(fact)) : textOf(fact), about];
		});
}

/** Returns the date of the first event, as `opstrobe info` prints it; "" for a clock that does not know it. */
function momentOf(ns: JsonValue | undefined): string {
	return typeof ns === "number" && isWallClock(ns) ? new Date(ns / 1e6).toISOString().replace("T", " ").replace("Z", " UTC") : "";
}

function stepsOf({ steps, steps_source: source, first_step: first, last_step: last }: InfoValue): string {
	if (!steps) return "none";
	return [formatCount(Number(steps)), ...(first === last ? [] : [`${textOf(first!)} to ${textOf(last!)}`]), `from ${textOf(source!)}`].join(", ");
}

function isObject(value: JsonValue | undefined): value is InfoValue {
	return value !== null && typeof value === "object" && !Array.isArray(value);
}

function textOf(fact: JsonValue): string {
	if (Array.isArray(fact)) return fact.map(textOf).join(", ");
	return typeof fact === "object" ? JSON.stringify(fact) : String(fact);
}
