// SPDX-License-Identifier: Apache-2.0
//
// The memory held at one time, by category, module, line, operator and shape.
import { theme } from "../app/theme";
import type { MemoryPeak, MemoryReply, MemoryShare } from "../data/replies";
import { moduleName } from "../format/module_name";
import { formatBytes, formatMoment, formatShare } from "../format/units";
import { Meter } from "../widgets/cards";
import { SourceLink, TimelineLink } from "../widgets/links";
import { categoryTitle } from "./memory_words";

interface PeakProps {
	trace: string;
	categories: MemoryReply["categories"];
	peak: MemoryPeak;
	time_ns: number | null;
	/** "Peak", or a description of the time. */
	title: string;
}

const SHOWN = 8;

export function Peak({ trace, categories, peak, time_ns, title }: PeakProps) {
	const dark = theme.value === "dark";
	const kinds = categories
		.map((category) => ({ ...category, bytes: peak.categories[category.name] ?? 0 }))
		.filter((category) => category.bytes > 0)
		.sort((a, b) => b.bytes - a.bytes);
	return (
		<section class="panel" aria-label={title}>
			<h2>
				{`${title}: ${formatBytes(peak.bytes)}`}{" "}
				<span class="soft">
					{time_ns === null ? (
						"before the recording"
					) : (
						<TimelineLink trace={trace} place={around(time_ns)}>{`at ${formatMoment(time_ns)}`}</TimelineLink>
					)}
				</span>
			</h2>
			{peak.before_bytes > 0 && <p class="soft">{`${formatBytes(peak.before_bytes)} of this was allocated before the recording.`}</p>}
			{peak.bytes === 0 && <p class="soft">Nothing is allocated at this moment.</p>}
			<div class="shares">
				<section aria-label="By category">
					<h3>By category</h3>
					<ul>
						{kinds.map((category) => (
							<Share key={category.name} name={categoryTitle(category.name)} bytes={category.bytes} all={peak.bytes} color={dark ? category.dark : category.light} />
						))}
					</ul>
				</section>
				<Shares title="By module" shares={peak.modules} all={peak.bytes} name={(share) => moduleName(named(share, "outside modules"))} />
				<Shares
					title="By line"
					shares={peak.lines}
					all={peak.bytes}
					name={(share) => (share.file ? <SourceLink trace={trace} file={share.file} line={share.line ?? null} /> : "unknown")}
				/>
				<Shares title="By operator" shares={peak.operators} all={peak.bytes} name={(share) => named(share, "outside operators")} />
				<Shares title="By shape" shares={peak.shapes} all={peak.bytes} name={(share) => named(share, "unknown")} />
			</div>
		</section>
	);
}

export function named(share: MemoryShare, nothing: string): string {
	return share.name === undefined || share.name === "" ? nothing : share.name;
}

function around(time_ns: number): { from: number; to: number } {
	return { from: Math.max(0, time_ns - 500_000), to: time_ns + 500_000 };
}

interface SharesProps {
	title: string;
	shares: readonly MemoryShare[];
	all: number;
	name: (share: MemoryShare) => preact.ComponentChildren;
}

export function Shares({ title, shares, all, name }: SharesProps) {
	if (shares.length === 0) return null;
	return (
		<section aria-label={title}>
			<h3>{title}</h3>
			<ul>
				{shares.slice(0, SHOWN).map((share, i) => (
					<Share key={i} name={name(share)} bytes={share.bytes} all={all} />
				))}
			</ul>
		</section>
	);
}

function Share({ name, bytes, all, color }: { name: preact.ComponentChildren; bytes: number; all: number; color?: string }) {
	const share = all > 0 ? bytes / all : 0;
	return (
		<li>
			<span class="name">{name}</span>
			<span class="figure" title={`${bytes} bytes`}>{formatBytes(bytes)}</span>
			<span class="figure soft">{formatShare(share)}</span>
			<Meter label="Share of the peak" share={share} {...(color ? { color } : {})} />
		</li>
	);
}
