// SPDX-License-Identifier: Apache-2.0 The replies that the views show; docs/openapi.yaml has them all. Times in tables
// are microseconds; positions in time are nanoseconds since the trace's origin. Types of rows that are declared in C
// are in tables.ts.
import type { Block, Module, NotExplained, RooflineRow, SourceFile } from "./tables";

export type { Block, Module, ModuleCosts, SourceFile, SourceLine } from "./tables";

export interface Step {
	name: string;
	kernel: number;
	memcpy: number;
	memset: number;
	communication: number;
	runtime: number;
	dataloader: number;
	cpu_exec: number;
	other: number;
	total: number;
}

/** The highest rates of a processor. */
export interface Roof {
	name: string;
	source: "unknown" | "measured" | "published" | "given";
	/** FLOP/s by type. */
	flops: Record<string, number>;
	/** Working sets and bytes per second, the smallest first. */
	bandwidth: [bytes: number, perSecond: number][];
	call_us: number;
}

export interface RooflineReply {
	cpu: Roof;
	gpu: Roof | null;
	total_us: number;
	known_us: number;
	bounded_us: number;
	roof_us: number;
	has_shapes: boolean;
	distinct: number;
	rows: RooflineRow[];
}

/** The parts of a step's time, as in the text of `opstrobe views`. */
export interface StepBreakdown {
	rows: Step[];
	average: Omit<Step, "name">;
	/** Null if steps take no time. */
	average_pct: Record<keyof Omit<Step, "name">, number | null>;
}

/** The host time of a step by phase of training. */
export interface PhaseTimes {
	data_loading: number;
	forward: number;
	backward: number;
	optimizer: number;
	other: number;
}

export interface Phases {
	rows: (PhaseTimes & { name: string; total: number })[];
	average: PhaseTimes & { total: number };
	average_pct: PhaseTimes;
	/** The part of the average in which an operator runs. */
	average_operators: PhaseTimes;
	/** The device work launched in each phase. */
	average_device: PhaseTimes;
}

/** A step that takes much longer than the median, and the figures in which it exceeds the others. */
export interface Outlier {
	name: string;
	kind?: StepKind["kind"];
	total: number;
	over_median: number;
	causes: { what: string; title: string; is_count: boolean; value: number; typical: number }[];
	events: { name: string; self: number; typical_self: number; calls: number; typical_calls: number }[];
}

/** How long steps were ready to run while other threads had the processors. */
export interface WaitedForCpu {
	ratio: number;
	/** The part of it that the program causes; 0 unless that is most of it. */
	own_ratio: number;
	had_by: string;
	average: number;
	/** High enough to distort the figures. */
	much: boolean;
	rows: (number | null)[];
}

export interface Flags {
	has_runtime: boolean;
	has_kernel: boolean;
	has_memcpy_or_memset: boolean;
	has_communication: boolean;
}

export interface Device {
	id: number;
	name: string;
	total_memory: number | null;
	compute_capability: string | null;
	sm_count: number | null;
}

export interface Gpu {
	id: number;
	utilization_ratio: number | null;
	est_sm_efficiency_ratio: number | null;
	est_achieved_occupancy_pct: number | null;
	tensor_core_time_ratio: number | null;
	utilization_timeline: { bucket: string; start: number; end: number; values: number[] } | null;
}

/** Iterations of a server of one kind. */
export interface StepKind {
	kind: "prefill" | "decode" | "mixed" | "idle" | "unknown";
	count: number;
	median: number;
	mean: number;
	p95: number;
}

export interface OverviewReply {
	trace_events: number;
	lost_events: number;
	profiler_start_ts: number | null;
	flags: Flags;
	devices: Device[];
	/** Device work that was launched before the recording. */
	queued_before: { count: number; time: number };
	/** Device work launched by graphs; `with_capture` of it has an operator, through its capture. */
	graph_work: { count: number; with_capture: number };
	steps: {
		from: "marks" | "optimizer" | "iterations" | "batches" | "loop" | "none";
		names: string[];
		rows: Step[];
		average: Omit<Step, "name">;
		/** Number of steps at the end whose device work is missing; figures per step are divided by these, too. */
		left_out: number;
		/** The first step if it takes much longer than the others: means of `breakdown` and `phases` leave it out. */
		apart: string | null;
		/** The share of the time of operators, on the thread of the steps, that is in no step. */
		outside_ratio: number;
		breakdown: StepBreakdown;
		phases: Phases | null;
		median: number | null;
		p95: number | null;
		outlier_count: number;
		outliers: Outlier[];
		waited_for_cpu: WaitedForCpu | null;
		kinds: StepKind[];
	};
	gpus: Gpu[];
	tensor_cores: { used_ratio: number | null; eligible_ops_kernel_ratio: number | null };
}

export interface Operator {
	name: string;
	input_shape?: string;
	calls: number;
	host_total: number;
	host_self: number;
	host_min: number;
	host_max: number;
	device_total: number;
	device_self: number;
	/** Means per step; null without steps. */
	step_self: number | null;
	/** Of the program, with most of the self time: "train.py:22". */
	line: string | null;
	/** Number of lines that call it. */
	lines: number;
	step_calls: number | null;
	tc_eligible: boolean;
	tc_self_pct: number;
	tc_total_pct: number;
	self_cpu_memory_bytes: number;
	self_device_memory_bytes: number;
	flops: number;
}

export interface OperatorsReply {
	flags: Flags;
	steps: OverviewReply["steps"];
	operators: { distinct: number; calls: number; rows: Operator[] };
	operators_by_input_shape: { distinct: number; rows: Operator[] };
	call_stacks: { distinct_stacks: number; per_operator: Record<string, number> };
}

export interface Kernel {
	name: string;
	/** Without template arguments. */
	short_name: string;
	tensor_cores: boolean;
	calls: number;
	total: number;
	/** Means per step; null without steps. */
	step_total: number | null;
	step_calls: number | null;
	mean: number;
	max: number;
	min: number;
	mean_blocks_per_sm: number;
	mean_est_occupancy_pct: number;
}

export interface KernelByOperator extends Kernel {
	operator: string | null;
	grid: string | null;
	block: string | null;
	registers_per_thread: number;
	shared_memory: number;
	op_tc_eligible: boolean;
}

export interface KernelCategory {
	category: string;
	calls: number;
	total: number;
	share: number;
	/** Means per step; null without steps. */
	step_total: number | null;
	step_calls: number | null;
}

export interface KernelsReply {
	flags: Flags;
	steps: OverviewReply["steps"];
	tensor_cores: OverviewReply["tensor_cores"];
	kernels: { distinct: number; calls: number; total: number; rows: Kernel[] } | null;
	kernels_by_op: { distinct: number; calls: number; rows: KernelByOperator[] } | null;
	kernels_by_category: KernelCategory[] | null;
}

/** The calls of one name, by duration. */
export interface CallsReply {
	count: number;
	/** Rank of the requested event: 1 is the longest. */
	rank: number | null;
	total_ns?: number;
	min_ns?: number;
	median_ns?: number;
	p95_ns?: number;
	max_ns?: number;
	/** Numbers of calls in equal parts of the range from the shortest to the longest. */
	histogram?: number[];
	longest: { row: number; start_ns: number; duration_ns: number }[];
	lines: { file: string; line: number; count: number; total_ns: number }[];
}

export interface Where {
	file: string | null;
	line: number | null;
	function: string | null;
	module: string | null;
	operator: string | null;
	/** The most expensive event there, and the index of the requested trace that contains it. */
	trace: number | null;
	row: number | null;
	/** Lines of libraries that the line calls, if most of the cost arises in them. */
	through: Through[];
}

export interface Through {
	file: string;
	/** The file from the package on: "lightning/pytorch/loops/loop.py". */
	path: string;
	line: number;
	function: string;
}

/** The measurement of `opstrobe prove` with a fix of a finding. */
export interface Measured {
	fix: string;
	gain_ms_per_step: number;
	gain_percent: number;
	gain_lower_percent: number;
	gain_upper_percent: number;
	results: "equal" | "close" | "changed" | "unknown";
}

export interface Finding {
	id: string;
	title: string;
	severity: "high" | "medium" | "low" | "info";
	confidence: "high" | "medium" | "low";
	where: Where[];
	evidence: string;
	/** The evidence without how the gain is computed. */
	facts: string;
	explanation: string;
	advice: string;
	predicted_gain_ms_per_step: number | null;
	predicted_gain_percent: number | null;
	/** The interval of the gain. */
	predicted_gain_lower_percent: number | null;
	predicted_gain_upper_percent: number | null;
	/** Meaning of the predicted gains. */
	predicted_gain_bound: "about" | "at least" | "at most";
	/** "between 12.0 % and 45.0 %"; of a bound, the other end: "at least 3.30 %". */
	predicted_gain_interval: string | null;
	/** "waited for a CPU: 23.0 %", if that distorted the figures. */
	predicted_gain_warning: string | null;
	measured: Measured | null;
	links: string[];
}

/** The time of a step that no finding explains. */
export interface NotExplainedTime {
	title: string;
	percent: number;
	explained_percent: number;
	ms_per_step: number;
	/** What a recording needs to show lines. */
	hint: string | null;
	lines: NotExplained[];
}

export interface AdviceReply {
	findings: Finding[];
	/** null: less than 5 % of a step. */
	not_explained: NotExplainedTime | null;
	/** What percentages refer to; without steps, the complete recording. */
	base: { steps: number | null; text: string };
	checked: string[];
	rules: number;
	/** The number of findings, or the reason why there are none. */
	summary: string;
}

/** What views open on: the steps, in the form of the API, and their range with a margin. Absent: the complete trace. */
export interface Opening {
	steps: string;
	from_ns: number;
	to_ns: number;
}

/** The members of the reply of `timeline` that the views read. */
export interface TimelineReply {
	duration_ns: number;
	steps: { name: string; row: number | null; number: number; start_ns: number; end_ns: number }[];
	opening: Opening | null;
}

export interface TableReply {
	table: { columns: string[]; rows: (string | number | boolean | null)[][] };
}

export type JsonValue = string | number | boolean | null | JsonValue[] | { [name: string]: JsonValue };

export type AnswerReply = (TableReply | { value: JsonValue }) & {
	/** Why the answer has neither rows nor values, if that is known. */
	empty?: string;
	/** Number of the last step, if the answer leaves it out. */
	left_out_step?: number;
};

export interface AnalysisOption {
	name: string;
	default: JsonValue;
	summary: string;
}

export interface Analysis {
	id: string;
	summary: string;
	traces: "ranks" | "pair";
	/** It is about device work, and has no results without it. */
	needs_device_work: boolean;
	/** It is about files other than traces. */
	reads_other_files: boolean;
	options: AnalysisOption[];
}

export interface StacksReply {
	metric: string;
	total_ns: number;
	left_out: number;
	/** Time in which helper threads wait, which is in no frame. */
	waits_ns: number;
	names: { name: string; file: string | null; line: number | null }[];
	parent: number[];
	name: number[];
	self_ns: number[];
	sum_ns: number[];
}

/** Per step of one trace and of the other. */
export interface StacksDiffReply extends StacksReply {
	base_total_ns: number;
	base_self_ns: number[];
	base_sum_ns: number[];
}

export interface ModulesReply {
	modules: Module[];
	classes: Module[];
}

export interface MemoryReply {
	categories: { name: string; light: string; dark: string }[];
	gaps: string[];
	devices: { device: string; blocks: number; peak_time_ns: number | null; peak: MemoryPeak }[];
}

export interface MemoryShare {
	bytes: number;
	blocks: number;
	name?: string;
	file?: string;
	line?: number;
}

/** What is held at a time, the largest first. */
export interface MemoryPeak {
	bytes: number;
	/** Bytes of these allocated before the recording. */
	before_bytes: number;
	categories: Record<string, number>;
	operators: MemoryShare[];
	modules: MemoryShare[];
	lines: MemoryShare[];
	shapes: MemoryShare[];
}

export interface MemoryCurveReply {
	device: string;
	categories: string[];
	time_ns: number[];
	held_bytes: number[][];
	allocated: (number | null)[] | null;
	reserved: (number | null)[] | null;
}

export interface BlocksReply {
	device: string;
	total: number;
	blocks: Block[];
}

export interface MemoryStatistic {
	name: string;
	calls: number;
	increase: number;
	self_increase: number;
	alloc_count: number;
	self_alloc_count: number;
	alloc_size: number;
	self_alloc_size: number;
}

export interface MemoryViewReply {
	memory: { records: number; peaks: Record<string, number>; stats: { default_device: string; rows: Record<string, MemoryStatistic[]> } } | null;
}

export interface LinesReply {
	steps: number;
	duration_us: number;
	/** Time in which helper threads wait, which is self time of no line. */
	waits_us: number;
	files: SourceFile[];
	/** Why the list is empty. */
	empty?: string;
}

export interface SourceReply {
	file: string;
	text: string;
	changed: boolean;
}

export interface Overlap {
	computation_only: number;
	overlap: number;
	communication_only: number;
	other: number;
}

export interface CommunicationOperation {
	name: string;
	calls: number;
	/** null: the recording has no shapes, and so for `avg_bytes`. */
	total_bytes: number | null;
	avg_bytes: number | null;
	total_latency: number;
	avg_latency: number;
	data_transfer: number;
	avg_data_transfer: number;
}

export interface Distributed {
	workers: string[];
	span: number | null;
	shown: boolean;
	overlap: Record<string, Record<string, Overlap>>;
	wait: Record<string, Record<string, { data_transfer: number; synchronizing: number }>>;
	/** By step and worker: its part in the collective for which another worker waited longest for it. Times are
	 * relative to the origin. */
	late: Record<string, Record<string, { name: string; row: number; start: number; end: number; wait: number } | null>>;
	/** By step, and of the average step as "all": the rank for which the others wait, and how much longer than it does. */
	late_rank: Record<string, { worker: string; wait: number } | null>;
	ops: Record<string, CommunicationOperation[]>;
}

export interface DiffSide {
	name: string;
	host_duration: number;
	device_duration: number;
	total_duration: number;
	distinct_ops: number;
}

interface DiffTimes {
	calls: number;
	host_total: number;
	host_self: number;
	device_total: number;
	device_self: number;
}

/** Sums over all steps, and per step. */
export interface DiffCosts extends DiffTimes {
	per_step: DiffTimes;
}

interface DiffKernelTimes {
	calls: number;
	total: number;
}

export interface DiffKernel extends DiffKernelTimes {
	per_step: DiffKernelTimes;
}

interface DiffSteps {
	steps: number;
	mean: number;
	median: number;
	deviation: number;
	/** Share of the steps' time in which they waited for a CPU. */
	waited_ratio: number | null;
	/** It makes times too long. */
	waited_much: boolean;
	per_step_divisor: number;
}

interface DiffDurations {
	calls: number;
	host_duration: number;
	device_duration: number;
	total_duration: number;
}

/** Sums over all steps, and per step, of a part of the steps or a module. */
export interface DiffSum {
	name: string;
	left: (DiffDurations & { per_step: DiffDurations }) | null;
	right: (DiffDurations & { per_step: DiffDurations }) | null;
}

export interface DiffMemory {
	peak: number;
	allocated: number;
	allocated_per_step: number;
}

export interface DiffReply {
	steps: {
		left: DiffSteps;
		right: DiffSteps;
		change_ratio: number;
		noise_ratio: number;
		regression: boolean;
		undecided: boolean;
		/** The reason for `undecided`. */
		no_verdict: string | null;
	};
	root: { left: DiffSide; right: DiffSide } | null;
	children: { path: string; left: DiffSide; right: DiffSide; children: number }[];
	parts: DiffSum[];
	modules: DiffSum[];
	memory: { device: string; left: DiffMemory; right: DiffMemory }[];
	operators: { name: string; left: DiffCosts | null; right: DiffCosts | null }[];
	kernels: { name: string; left: DiffKernel | null; right: DiffKernel | null }[];
}

/** A line of the program, or of a library. */
export interface StackFrame {
	file: string;
	line: number;
	function: string;
}

/** A thread, the innermost frame first. */
export interface IncidentThread {
	tid: number;
	name: string;
	is_main: boolean;
	has_gil: boolean;
	python?: StackFrame[];
}

/** The reply about an incident; docs/manual/incidents.md describes the members. */
export interface IncidentReply {
	title: string;
	cause: string;
	difference: Pick<Outlier, "causes" | "events"> | null;
	open_events: { tid: number; name: string; open_ns: number }[];
	/** The activity of each of `threads`. Missing in older reports, like `meanwhile`. */
	thread_doings?: string[];
	/** The number of outermost frames of each of `threads`, and of the stack at the end, that only start the program or the thread. */
	thread_launchers?: number[];
	/** C functions in which each thread was, innermost first; without debugging information `file` is a library and `line` 0. */
	thread_native?: StackFrame[][];
	end_launchers?: number;
	meanwhile?: { count: number; doing: string; where: StackFrame | null }[];
	/** Where the thread of the step was by samples, and where it is in other steps. */
	sampled?: { samples: number; usual_samples: number; usual_steps: number; period_ns: number; places: { doing: string; where: StackFrame | null; share: number; usual_share: number }[] };
	/** What the black box measured of its cost. */
	/** The overhead of the black box, and the detail that was switched off because of it. */
	overhead_text?: string;
	detail_text?: string;
	difference_text?: string;
	memory: { growth_per_step_bytes: number | null; held?: TableReply } | null;
	time_ns: number;
	pid: number;
	process: string;
	host: string;
	command: string;
	rank: number | null;
	world_size: number;
	step: { number: number; duration_ns: number; usual_ns: number; goes_on: boolean } | null;
	over?: { duration_ns: number; ran_ns: number; waited_ns: number; collecting_ns: number; minor_faults: number; major_faults: number };
	sample_count?: number;
	/** Where the process ended. */
	signal?: { python?: StackFrame[] };
	exit?: { python?: StackFrame[] };
	exception?: { python?: StackFrame[] };
	threads?: IncidentThread[];
	/** Number of earlier incidents of each kind that were not kept, because there were too many. */
	suppressed?: Record<string, number>;
}
