// SPDX-License-Identifier: Apache-2.0
//
// Costs of lines from `opstrobe lines --format json`, in the form shown next to the lines.
import type { LinesReply, SourceFile, SourceLine } from "../../../web/src/data/replies";
import { formatBytes, formatCount, formatPercent, formatShare, formatUs } from "../../../web/src/format/units";
import { bestFit } from "./paths";

/** Number of shades in the gutter. */
export const HEATS = 4;

export interface Annotation {
	/** Counted from 1. */
	line: number;
	/** The text after the line: "12.3 ms · 34.0 % · 1.2 MiB". */
	text: string;
	/** From 0 (hardly any of the file's time) to HEATS - 1. */
	heat: number;
	cost: SourceLine;
}

/** Returns the file of the trace that an open document corresponds to. */
export function fileOf(lines: LinesReply, path: string): SourceFile | undefined {
	const recordedPaths = lines.files.map((file) => file.file).filter((file) => bestFit(file, [path]) !== undefined);
	// A document may match several files of the trace. Then the one that shares most path components with it is
	// meant.
	const best = bestFit(path, recordedPaths) ?? recordedPaths[0];
	return lines.files.find((file) => file.file === best);
}

/** Returns the annotations of a file: for lines that take at least a thousandth of the recording or allocate memory. */
export function annotate(file: SourceFile, duration_us: number): Annotation[] {
	const most = file.lines.reduce((max, line) => Math.max(max, timeOf(line)), 0);
	return file.lines
		.filter((line) => line.line > 0 && (timeOf(line) >= duration_us / 1000 || line.host_us >= duration_us / 1000 || line.allocated_bytes > 0))
		.map((cost) => ({ line: cost.line, text: textOf(cost, duration_us), heat: heatOf(timeOf(cost), most), cost }));
}

/** Returns the facts for a hover as plain text, most important first. */
export function factsOf(cost: SourceLine, duration_us: number): [title: string, text: string][] {
	const share = (us: number): string => (duration_us > 0 ? ` (${formatShare(us / duration_us)})` : "");
	const facts: [string, string][] = [
		["Self time", formatUs(cost.self_us) + share(cost.self_us)],
		["Total time", formatUs(cost.host_us) + share(cost.host_us)],
	];
	if (cost.device_us > 0) facts.push(["device work it started", formatUs(cost.device_us) + share(cost.device_us)]);
	if (cost.allocated_bytes > 0) facts.push(["allocated", formatBytes(cost.allocated_bytes)]);
	facts.push(["calls", formatCount(cost.calls)]);
	return facts;
}

function timeOf(line: SourceLine): number {
	return line.self_us + line.device_us;
}

function textOf(line: SourceLine, duration_us: number): string {
	const parts: string[] = [];
	if (line.host_us > 0) parts.push(formatUs(line.host_us));
	if (line.host_us > 0 && duration_us > 0) parts.push(formatPercent((line.host_us / duration_us) * 100));
	if (line.device_us > 0) parts.push(`device ${formatUs(line.device_us)}`);
	if (line.allocated_bytes > 0) parts.push(formatBytes(line.allocated_bytes));
	return parts.join(" · ");
}

function heatOf(time: number, most: number): number {
	return most > 0 ? Math.min(HEATS - 1, Math.floor((time / most) * HEATS)) : 0;
}
