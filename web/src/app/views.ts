// SPDX-License-Identifier: Apache-2.0
// The one table of views. A view is a file in views/ (the timeline a folder of its own); the navigation, the routes and
// the tests that visit every view read this table.
import type { ComponentType } from "preact";
import type { TraceEntry } from "../data/api";
import type { DataSource } from "../data/source";
import { Timeline } from "../timeline/timeline";

export interface ViewProps {
	source: DataSource;
	trace: TraceEntry;
	/** All traces there are, for views that compare. */
	traces: TraceEntry[];
}

export interface View {
	/** Its name in the address. */
	id: string;
	title: string;
	/** What it answers, in one line, for the tooltip. */
	about: string;
	component: ComponentType<ViewProps>;
	/** Fills the window without scrolling, as the timeline does. */
	fills?: boolean;
}

export const views: View[] = [
	{
		id: "timeline",
		title: "Timeline",
		about: "Every event at its place in time",
		component: Timeline,
		fills: true,
	},
];
