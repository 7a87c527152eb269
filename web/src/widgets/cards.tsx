// SPDX-License-Identifier: Apache-2.0
//
// A few important figures in large type.
import type { ComponentChildren } from "preact";

export interface CardProps {
	title: string;
	figure: ComponentChildren;
	/** Shown below it. */
	note?: ComponentChildren;
	/** A share from 0 to 1, drawn as a bar. */
	share?: number | null;
	tone?: "good" | "warn" | "bad" | undefined;
	about?: string;
}

export function Cards({ children }: { children: ComponentChildren }) {
	return <div class="cards">{children}</div>;
}

export function Card({ title, figure, note, share, tone, about }: CardProps) {
	return (
		<div class={`card ${tone ?? ""}`} title={about}>
			<h2>{title}</h2>
			<p class="card-figure">{figure}</p>
			{share !== undefined && share !== null && <Meter label={title} share={share} />}
			{note && <p class="soft">{note}</p>}
		</div>
	);
}

export function Meter({ label, share, color }: { label: string; share: number; color?: string }) {
	const percent = Math.max(0, Math.min(100, share * 100));
	return (
		<div class="meter" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(percent)}>
			<span style={{ width: `${percent}%`, ...(color ? { background: color } : {}) }} />
		</div>
	);
}
