// SPDX-License-Identifier: Apache-2.0
//
// The table of views. A view is a file in views/ (the timeline is a separate directory). The navigation, the routes and
// the tests that visit every view read this table.
import type { ComponentType } from "preact";
import type { TraceEntry } from "../data/api";
import type { DataSource } from "../data/source";
import { Timeline } from "../timeline/timeline";
import { Advice } from "../views/advice";
import { Analyses } from "../views/analyses";
import { Diff } from "../views/diff";
import { Distributed } from "../views/distributed";
import { Info } from "../views/info";
import { Kernels } from "../views/kernels";
import { Memory } from "../views/memory";
import { Model } from "../views/model";
import { Modules } from "../views/modules";
import { Operators } from "../views/operators";
import { Overview } from "../views/overview";
import { Roofline } from "../views/roofline";
import { isRunKnown, runOf } from "../views/runs";
import { Source } from "../views/source";
import { Stacks } from "../views/stacks";

export interface ViewProps {
	source: DataSource;
	trace: TraceEntry;
	/** All available traces, for views that compare. */
	traces: TraceEntry[];
}

export interface View {
	/** Its name in the address. */
	id: string;
	title: string;
	/** Its purpose in one line, for the tooltip. */
	about: string;
	component: ComponentType<ViewProps>;
	/** Fills the window without scrolling, like the timeline. */
	fills?: boolean;
	/** Depends on the selected steps. */
	steps?: boolean;
	/** Whether a trace has data for it; if absent, every trace has. */
	hasData?: (facts: TraceFacts, traces: TraceEntry[], trace: TraceEntry) => boolean;
	/** What to record to get data for it. */
	needs?: string;
}

/** The reply of `info` about a trace. */
export interface TraceFacts {
	events_by_kind: Record<string, number>;
	memory_records: number;
	module_calls: number;
	call_stacks: number;
	input_shapes: number;
	metadata?: Record<string, unknown> | null;
}

function hasModules(facts: TraceFacts): boolean {
	return facts.module_calls > 0;
}

const MODULES_NEED = "record with opstrobe run or with_modules=True";

export const views: View[] = [
	{ id: "overview", title: "Overview", about: "Where the time of a step goes, and what to change", component: Overview },
	{ id: "advice", title: "Advice", about: "What to change, at which line, and the predicted gain", component: Advice },
	{
		id: "timeline",
		title: "Timeline",
		about: "Every event at its place in time",
		component: Timeline,
		fills: true,
	},
	{ id: "operators", title: "Operators", about: "Time of each operator on the CPU and on devices", component: Operators, steps: true, hasData: (facts) => !!facts.events_by_kind.cpu_op, needs: "record the activity CPU" },
	{
		id: "kernels",
		title: "Kernels",
		about: "Device work, and the operators that launched it",
		component: Kernels,
		steps: true,
		hasData: (facts) => !!facts.events_by_kind.kernel,
		needs: "record a program that uses a GPU, with the activity CUDA",
	},
	{
		id: "roofline",
		title: "Roofline",
		about: "How close operators are to the limits of the machine",
		component: Roofline,
		steps: true,
		hasData: (facts) => facts.input_shapes > 0,
		needs: "record with record_shapes=True or opstrobe run --record-shapes",
	},
	{
		id: "memory",
		title: "Memory",
		about: "What holds memory, and when",
		component: Memory,
		steps: true,
		hasData: (facts) => facts.memory_records > 0,
		needs: "record with profile_memory=True or opstrobe run --memory",
	},
	{
		id: "modules",
		title: "Modules",
		about: "Time, FLOPs and memory of each module",
		component: Modules,
		steps: true,
		// Lightning labels its modules itself, which the metadata show.
		hasData: (facts) => hasModules(facts) || !!facts.metadata?.Framework,
		needs: MODULES_NEED,
	},
	{
		id: "model",
		title: "Model",
		about: "The model as a drawing, with the heat of each part",
		component: Model,
		steps: true,
		hasData: hasModules,
		needs: MODULES_NEED,
	},
	{ id: "stacks", title: "Stacks", about: "Flame graph, and callers and callees of each function", component: Stacks, steps: true },
	{
		id: "source",
		title: "Source",
		about: "The program, with the time and memory of each line",
		component: Source,
		steps: true,
		hasData: (facts) => !!facts.events_by_kind.python_function || facts.call_stacks > 0,
		needs: "record with opstrobe run or with_stack=True",
	},
	{
		id: "distributed",
		title: "Distributed",
		about: "What the ranks of a run wait for",
		component: Distributed,
		steps: true,
		hasData: (_, traces, trace) => !isRunKnown(trace, traces) || runOf(trace, traces).length > 1,
		needs: "open the directory with the traces of all ranks of a job, opstrobe serve DIRECTORY",
	},
	{ id: "analyses", title: "Analyses", about: "One question at a time: idle time, launches, queues, critical path, …", component: Analyses, steps: true },
	{
		id: "diff",
		title: "Diff",
		about: "What changed from one trace to another",
		component: Diff,
		steps: true,
		hasData: (_, traces) => traces.length > 1,
		needs: "open two traces, opstrobe serve TRACE TRACE",
	},
	{ id: "info", title: "Trace", about: "Where the trace is from, and what is in it", component: Info },
];
