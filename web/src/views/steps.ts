// SPDX-License-Identifier: Apache-2.0
import type { TimelineReply } from "../data/replies";
import type { Reply } from "../data/reply";

export type StepPlace = TimelineReply["steps"][number];

/** Returns the positions of steps, by the names that the views use ("5" for "ProfilerStep#5"). */
export function placesOfSteps(timeline: Reply<TimelineReply>): Map<string, StepPlace> {
	if (timeline.state !== "ready") return new Map();
	return new Map(timeline.data.steps.map((step) => [step.name.replace(/^ProfilerStep#/, ""), step]));
}
