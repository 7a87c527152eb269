// SPDX-License-Identifier: Apache-2.0
//
// The origin and the contents of the trace.
import type { ViewProps } from "../app/views";
import type { JsonValue } from "../data/replies";
import { useReply } from "../data/reply";
import { formatBytes, formatCount, formatUs } from "../format/units";
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
					<Fact name="Worker" value={trace.worker} />
				</dl>
			</section>
			<Await reply={reply} what="the trace’s facts">
				{({ value }) => <Facts value={value} />}
			</Await>
		</div>
	);
}

function Fact({ name, value }: { name: string; value: string }) {
	return value === "" ? null : (
		<div>
			<dt>{name}</dt>
			<dd class="long">{value}</dd>
		</div>
	);
}

/** Names of facts that are not those of the reply with spaces. */
const NAMES: Record<string, string> = {
	cpu: "CPU",
	gpu: "GPU",
	gpus: "GPUs",
	cuda: "CUDA",
	torch: "PyTorch",
	git_revision: "Git revision",
	interop_threads: "Inter-op threads",
	arrows: "Links",
	notes: "Problems of the file",
	lost_records: "Lost events",
	cpu_op: "Operators",
	user_annotation: "Annotations",
	gpu_user_annotation: "Annotations on devices",
	python_function: "Python functions",
	kernel: "Kernels",
	gpu_memcpy: "Memory copies",
	gpu_memset: "Memory sets",
	cuda_runtime: "Runtime calls",
	cuda_driver: "Driver calls",
	overhead: "Overhead of the profiler",
	ac2g: "Links from host to device",
};

function nameOf(id: string): string {
	const words = id.replaceAll("_", " ");
	return NAMES[id] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** Where steps come from, by `steps_from`. */
const STEPS_FROM: Record<string, string> = { marks: "marks of the recording", none: "no steps", iterations: "iterations of a server", optimizer: "calls of the optimizer", batches: "batches of the data loader" };

/** Facts that need a unit are formatted; others are shown unchanged. */
function Facts({ value }: { value: InfoValue }) {
	const { metadata, recording, events_by_kind: kinds, start_ns: start, duration_us: duration, steps_from: from, ...rest } = value;
	delete rest.file; // shown above
	if (rest.rank === -1 || rest.rank === null) delete rest.rank; // unknown in the file
	if (typeof from === "string") rest.steps_from = STEPS_FROM[from] ?? from;
	const facts: InfoValue = {
		...(typeof start === "number" ? { Start: new Date(start / 1e6).toISOString().replace("T", " ").replace("Z", " UTC") } : {}),
		...(typeof duration === "number" ? { Duration: formatUs(duration) } : {}),
		...Object.fromEntries(Object.entries(rest).map(([name, fact]) => [nameOf(name), fact])),
	};
	const counted = kinds !== null && typeof kinds === "object" && !Array.isArray(kinds) ? Object.entries(kinds) : [];
	const made = recording !== null && typeof recording === "object" && !Array.isArray(recording) ? Object.entries(recording) : [];
	return (
		<>
			{made.length > 0 && (
				<section class="panel" aria-label="Recording">
					<h2>Recording</h2>
					<dl class="pairs wide">
						{made.map(([name, fact]) => (
							<Fact key={name} name={nameOf(name)} value={textOf(fact)} />
						))}
					</dl>
				</section>
			)}
			<section class="panel" aria-label="Contents">
				<h2>Contents</h2>
				<Answer id="info" label="Contents" value={facts} />
			</section>
			{counted.length > 0 && (
				<section class="panel" aria-label="Events by kind">
					<h2>Events by kind</h2>
					<dl class="pairs wide">
						{counted.map(([name, count]) => (
							<Fact key={name} name={nameOf(name)} value={formatCount(Number(count))} />
						))}
					</dl>
				</section>
			)}
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

function textOf(fact: JsonValue): string {
	if (Array.isArray(fact)) return fact.map(textOf).join(", ");
	return typeof fact === "object" ? JSON.stringify(fact) : String(fact);
}
