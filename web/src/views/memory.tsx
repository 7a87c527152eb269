// SPDX-License-Identifier: Apache-2.0
//
// What holds memory, and when: the curve by category, the contents at a time (by default the peak), allocations, and
// sums by operator.
import { useMemo } from "preact/hooks";
import { useParam } from "../app/params";
import { route, setParams } from "../app/route";
import { theme } from "../app/theme";
import type { ViewProps } from "../app/views";
import type { MemoryCurveReply, MemoryReply, TimelineReply } from "../data/replies";
import { type Reply, useReply } from "../data/reply";
import { formatBytes, formatMoment } from "../format/units";
import { Await } from "../widgets/await";
import { Choice, Select } from "../widgets/choice";
import { LineChart, type LineSeries } from "../widgets/line_chart";
import { TimelineLink } from "../widgets/links";
import { OnlySteps, StepChoice, stepsText, useSteps } from "../widgets/step_choice";
import { categoryTitle, deviceTitle, type Stretch } from "./memory_words";
import { MemoryBlocks, MemoryStatistics } from "./memory_tables";
import { Peak } from "./peak";

export function Memory(props: ViewProps) {
	const { source, trace } = props;
	const reply = useReply<MemoryReply>(source, `traces/${trace.id}/memory`);
	return (
		<div class="view">
			<Await reply={reply} what="memory">
				{(memory) => (memory.devices.length === 0 ? <NoMemory /> : <Device {...props} memory={memory} />)}
			</Await>
		</div>
	);
}

function NoMemory() {
	return (
		<div class="empty">
			<p>No allocations.</p>
			<p>
				Record them with <code>profile_memory=True</code> or <code>opstrobe run --memory</code>; for categories, shapes and lines add{" "}
				<code>record_shapes=True</code> and <code>with_stack=True</code>.
			</p>
		</div>
	);
}

/** Returns the selected device, by default the first GPU. */
function chosenDevice(memory: MemoryReply, wanted: string): MemoryReply["devices"][number] {
	const { devices } = memory;
	return devices.find((each) => each.device === wanted) ?? devices.find((each) => each.device !== "cpu") ?? devices[0]!;
}

function Device(props: ViewProps & { memory: MemoryReply }) {
	const { source, trace, memory } = props;
	const [wanted, setDevice] = useParam("device");
	const [list, setList] = useParam("list", "blocks");
	const device = chosenDevice(memory, wanted);
	const drawn = stretchOf(route.value.params);
	const [selected] = useParam("steps");
	const timeline = useReply<TimelineReply>(source, `traces/${trace.id}/timeline`);
	const opening = selected === "" && drawn.from === undefined ? openingOf(timeline, device.peak_time_ns) : undefined;
	const steps = useSteps() ?? opening;
	const stretch = drawn.from === undefined ? { steps } : drawn;
	const at = momentOf(route.value.params);
	const live = source.kind === "http";
	const parted = at !== undefined || drawn.from !== undefined || steps !== undefined;
	const asked = useReply<MemoryReply>(source, parted ? `traces/${trace.id}/memory` : undefined, at === undefined ? { ...stretch } : { at });
	const moment: Reply<MemoryReply> = parted ? asked : { state: "ready", data: memory };
	const chosen = moment.state === "ready" ? moment.data.devices.find((each) => each.device === device.device) : undefined;
	return (
		<>
			<div class="tools">
				{memory.devices.length > 1 && (
					<Select
						label="Device"
						options={memory.devices.map((each) => ({ id: each.device, title: deviceTitle(each.device) }))}
						value={device.device}
						onChange={setDevice}
					/>
				)}
				{drawn.from === undefined && <StepChoice source={source} trace={trace} opening={opening} opens />}
				{drawn.from !== undefined && drawn.to !== undefined && (
					<>
						<span>{`${formatMoment(drawn.from)} to ${formatMoment(drawn.to)}`}</span>
						<TimelineLink trace={trace.id} place={{ from: drawn.from, to: drawn.to }}>
							in the timeline
						</TimelineLink>
						<button type="button" onClick={() => setParams({ from: undefined, to: undefined })}>
							Zoom out
						</button>
					</>
				)}
				{opening !== undefined && <OnlySteps />}
				{live && at !== undefined && (
					<button type="button" onClick={() => setParams({ at: undefined })}>
						Show the peak
					</button>
				)}
			</div>
			{memory.gaps.length > 0 && (
				<ul class="gaps soft" aria-label="Missing in this trace">
					{memory.gaps.map((gap) => (
						<li key={gap}>{gap}</li>
					))}
				</ul>
			)}
			{timeline.state !== "loading" && <Curve {...props} device={device} stretch={stretch} marked={chosen} chosen={at !== undefined} />}
			<Await reply={moment} what="what holds memory">
				{() =>
					chosen && (
						<Peak
							trace={trace.id}
							categories={memory.categories}
							peak={chosen.peak}
							time_ns={chosen.peak_time_ns}
							title={at !== undefined ? "Memory" : parted && opening === undefined ? "Peak of this range" : "Peak"}
						/>
					)
				}
			</Await>
			<section class="panel">
				<Choice
					label="Table"
					options={[
						{ id: "blocks", title: "Allocations" },
						{ id: "operators", title: "By operator" },
					]}
					value={list === "operators" ? "operators" : "blocks"}
					onChange={setList}
				/>
				{list === "operators" ? (
					<>
						{drawn.from !== undefined && <p class="soft">{`Of ${steps === undefined ? "the whole trace" : stepsText(steps)}, not only of the range above.`}</p>}
						<MemoryStatistics source={source} trace={trace} device={device.device} steps={steps} />
					</>
				) : (
					<MemoryBlocks source={source} trace={trace} device={device.device} stretch={stretch} />
				)}
			</section>
		</>
	);
}

/** Returns the steps that the view shows first: all, if they are a small part of the trace, unless the peak is outside of them. */
function openingOf(timeline: Reply<TimelineReply>, peak: number | null): string | undefined {
	if (timeline.state !== "ready") return undefined;
	const { opening } = timeline.data;
	return opening && peak !== null && opening.from_ns <= peak && peak <= opening.to_ns ? opening.steps : undefined;
}

function stretchOf(params: ReadonlyMap<string, string>): Stretch {
	const [from, to] = [Number(params.get("from") ?? NaN), Number(params.get("to") ?? NaN)];
	return from < to ? { from: Math.floor(from), to: Math.ceil(to) } : {};
}

/** In ns since the origin. */
function momentOf(params: ReadonlyMap<string, string>): number | undefined {
	const at = Number(params.get("at") ?? NaN);
	return at >= 0 ? Math.floor(at) : undefined;
}

type DeviceMemory = MemoryReply["devices"][number];

interface CurveProps extends ViewProps {
	memory: MemoryReply;
	device: DeviceMemory;
	stretch: Stretch;
	/** The contents at the marked time. */
	marked: DeviceMemory | undefined;
	/** Selected by the user; otherwise it is the peak. */
	chosen: boolean;
}

function Curve({ source, trace, memory, device, stretch, marked, chosen }: CurveProps) {
	const reply = useReply<MemoryCurveReply>(source, `traces/${trace.id}/memory/curve`, { device: device.device, ...stretch });
	return (
		<section class="panel">
			<Await reply={reply} what="the curve">
				{(curve) => <CurveChart curve={curve} memory={memory} marked={marked} chosen={chosen} live={source.kind === "http"} />}
			</Await>
		</section>
	);
}

interface CurveChartProps {
	curve: MemoryCurveReply;
	memory: MemoryReply;
	marked: DeviceMemory | undefined;
	chosen: boolean;
	live: boolean;
}

function CurveChart({ curve, memory, marked, chosen, live }: CurveChartProps) {
	const dark = theme.value === "dark";
	const times = useMemo(() => curve.time_ns.map((time) => time / 1e3), [curve]);
	const series = useMemo(() => curveSeries(curve, memory, dark), [curve, memory, dark]);
	return (
		<LineChart
			title={`Memory of ${deviceTitle(curve.device)}`}
			about={live ? "Click to see what holds memory at that time; drag to zoom" : ""}
			times={times}
			series={series}
			kind="bytes"
			stepped
			height={300}
			onRange={live ? (from, to) => setParams({ from: Math.round(from * 1e3), to: Math.round(to * 1e3), at: undefined }) : undefined}
			onMoment={live ? (time) => setParams({ at: Math.round(time * 1e3) }) : undefined}
			mark={marked ? { time: (marked.peak_time_ns ?? 0) / 1e3, label: `${chosen ? "" : "peak "}${formatBytes(marked.peak.bytes)}` } : undefined}
		/>
	);
}

function curveSeries(curve: MemoryCurveReply, memory: MemoryReply, dark: boolean): LineSeries[] {
	const series: LineSeries[] = curve.categories.flatMap((name, k) => {
		const values = curve.held_bytes[k] ?? [];
		const category = memory.categories.find((each) => each.name === name);
		if (values.every((value) => value === 0)) return [];
		return [{ id: name, title: categoryTitle(name), color: (dark ? category?.dark : category?.light) ?? "var(--kind-other)", stacked: true, values }];
	});
	if (curve.allocated?.some((value) => value !== null)) series.push({ id: "allocated", title: curve.device === "cpu" ? "Allocated since the recording began" : "Allocator: in use", color: "var(--text)", values: curve.allocated });
	if (curve.reserved?.some((value) => value)) series.push({ id: "reserved", title: "Allocator: reserved", color: "var(--warn)", values: curve.reserved });
	return series;
}
