// SPDX-License-Identifier: Apache-2.0
//
// The parts of a step's time. A time that belongs to several parts counts for the first of them.
import type { Step } from "../data/replies";
import type { Series } from "../widgets/chart";

/** A part of a step, which is a member of its rows. */
export interface PartOf<Id extends string> extends Series {
	id: Id;
	about: string;
}

export type StepPart = PartOf<Exclude<keyof Step, "name" | "total">>;

export const stepParts: readonly StepPart[] = [
	{ id: "kernel", title: "Kernels", color: "var(--kind-kernel)", about: "A kernel computes on a device" },
	{ id: "memcpy", title: "Memory copies", color: "var(--kind-memcpy)", about: "A device copies memory" },
	{ id: "memset", title: "Memory sets", color: "var(--kind-memset)", about: "A device sets memory" },
	{ id: "communication", title: "Communication", color: "var(--kind-communication)", about: "A collective operation runs" },
	{ id: "runtime", title: "Runtime calls", color: "var(--kind-runtime)", about: "The host calls the device's runtime" },
	{ id: "dataloader", title: "Data loading", color: "var(--kind-annotation)", about: "The step waits for its batch" },
	{ id: "cpu_exec", title: "Operators", color: "var(--kind-operator)", about: "An operator runs on the host" },
	{ id: "other", title: "Other", color: "var(--kind-other)", about: "None of these: mostly Python between operators, also within annotations" },
];

/** Returns the parts that occur in any step. */
export function usedParts<Id extends string>(parts: readonly PartOf<Id>[], rows: readonly Record<Id, number>[]): PartOf<Id>[] {
	return parts.filter((part) => rows.some((row) => row[part.id] > 0));
}
