// SPDX-License-Identifier: Apache-2.0
//
// Replies below traces/{id}/timeline; docs/openapi.yaml describes them. Times are nanoseconds since the origin.
import type { Opening } from "../data/replies";

export interface Track {
	id: number;
	group: number;
	kind: "thread" | "stream" | "async" | "other";
	label: string;
	tid: number | null;
	depths: number;
	/** With wrappers folded. */
	folded_depths: number;
	events: number;
	start_ns: number;
	end_ns: number;
}

export interface Group {
	id: number;
	kind: "process" | "device" | "other";
	label: string;
}

export interface Counter {
	id: number;
	group: number | null;
	label: string;
	unit: "" | "bytes" | "ratio";
	min: number;
	max: number;
}

export interface Step {
	name: string;
	row: number | null; // null: derived, not marked by an event
	start_ns: number;
	end_ns: number;
}

export interface TimelineReply {
	origin_ns: string;
	duration_ns: number;
	events: number;
	lost: number;
	/** Number of calls that fold into their callees; 0: nothing folds. */
	wrappers: number;
	tile_bins: number;
	band_depths: number;
	level_min: number;
	level_max: number;
	kinds: string[];
	groups: Group[];
	tracks: Track[];
	counters: Counter[];
	steps: Step[];
	opening: Opening | null;
}

export interface CounterTile {
	counter: number;
	level: number;
	index: number;
	/** The value before the tile. */
	before: number | null;
	time_ns: number[];
	min: number[];
	max: number[];
	last: number[];
}

/** Position of an event; track and depths are null for one that the timeline does not show. */
export interface Place {
	row: number;
	name: number;
	track: number | null;
	depth: number | null;
	/** With wrappers folded; the depth of the event that it folds into. */
	folded_depth: number | null;
	start_ns: number;
	end_ns: number;
}

export interface Flow {
	kind: "launch" | "forward_backward" | "other" | "dependency";
	from: Place;
	to: Place;
}

export interface FlowsReply {
	total: number;
	flows: Flow[];
}

export interface EventReply {
	row: number;
	name: string;
	kind: string;
	category: string;
	track: number | null;
	depth: number | null;
	folded_depth: number | null;
	start_ns: number;
	duration_ns: number;
	self_ns: number;
	parent: number | null;
	children: number;
	args: Record<string, unknown>;
	file: string | null;
	line: number | null;
	stack: string[];
	/** The event that it folds into, and the calls around it that fold into it, outermost last. */
	folds_into: number | null;
	wrappers: { row: number; name: string; duration_ns: number }[];
	links: Flow[];
}

export interface HitsReply {
	total: number;
	names: number[];
	hits: Place[];
	bins: number[] | null;
}

export interface RangeRow {
	name: string;
	kind: string;
	count: number;
	total_ns: number;
	self_ns: number;
	max_ns: number;
	longest: number;
}

export interface RangeReply {
	from_ns: number;
	to_ns: number;
	events: number;
	left_out: number;
	rows: RangeRow[];
	tracks: { track: number; events: number; busy_ns: number }[];
}

/** One collective operation in several traces: its places in each, the host event first, then its kernels. */
export interface CollectiveReply {
	name: string | null;
	calls: Place[][];
}

export interface PathSegment {
	start_ns: number;
	end_ns: number;
	kind: string;
	bound: string | null;
	row: number | null;
	track: number | null;
	depth: number | null;
	folded_depth: number | null;
}

export interface CriticalPathReply {
	region: string;
	start_ns: number;
	end_ns: number;
	segments: PathSegment[];
	bounds: Record<string, number>;
}
