// SPDX-License-Identifier: Apache-2.0
//
// The frame around the views: selection of the trace and the view, light or dark theme.
import { useEffect, useRef, useState } from "preact/hooks";
import type { TraceEntry } from "../data/api";
import type { DataSource } from "../data/source";
import { useReply } from "../data/reply";
import { Archive, ARCHIVE, useArchive } from "../views/archive";
import { incidentHref, incidentOf, type IncidentRow, INCIDENTS, Incidents, useIncidents } from "../views/incidents";
import { isRunKnown } from "../views/runs";
import { Start } from "../views/start";
import { Diagnostics } from "../widgets/diagnostics";
import { Reading } from "../widgets/reading";
import { Failure, Loading } from "../widgets/status";
import { go, nameRoute, route, routeHref } from "./route";
import { theme, toggleTheme } from "./theme";
import { serverGone, useTraces } from "./traces";
import { type TraceFacts, type View, type ViewProps, views } from "./views";

/** The list of traces in the address. */
const START = "traces";

/** The pages that do not belong to one trace. */
const PAGES = { [ARCHIVE]: "Archive", [INCIDENTS]: "Incidents", [START]: "Traces" };
type Page = keyof typeof PAGES;

function isPage(id: string): id is Page {
	return Object.hasOwn(PAGES, id);
}

export function App({ source }: { source: DataSource }) {
	const [wanted, want] = useState<string>();
	const list = useTraces(source, wanted);
	const traces = list.state === "ready" ? list.data.traces : [];
	const seen = route.value;
	const { view: viewId, trace: traceId } = seen;
	const known = useIncidents(source, list.state === "ready" ? list.data.traces : undefined);
	const incidents = known ?? [];
	const archived = useArchive(source);
	const hasArchive = archived !== undefined && archived.length > 0;
	// If the address has neither view nor trace, shows the archive, the incidents, the list of traces, or the only trace.
	const open = viewId === "" && traceId === "";
	const first = () => (!archived || hasArchive ? ARCHIVE : !known || incidents.length > 0 ? INCIDENTS : traces.length !== 1 ? START : undefined);
	const page: Page | undefined = isPage(viewId) ? viewId : open ? first() : undefined;
	const start = page !== undefined;
	// A link to a trace that no longer exists opens no other one. Without a trace in the address, the first is
	// used.
	const trace = start ? undefined : traceId ? traces.find((each) => each.id === traceId) : traces[0];
	const view = views.find((each) => each.id === viewId) ?? views[0]!;
	const missing = trace && !isRunKnown(trace, traces) ? trace.id : undefined;

	useEffect(() => {
		if (trace) nameRoute(seen, view.id, trace.id);
	}, [view, trace?.id, seen]);
	useEffect(() => want(page === START ? "all" : missing), [page, missing]);
	useEffect(() => {
		document.title = trace ? `${view.title} · ${trace.name} · Opstrobe` : page ? `${PAGES[page]} · Opstrobe` : "Opstrobe";
	}, [view, trace, page]);
	const title = page ? PAGES[page] : view.title;

	const several = traces.length > 1 || incidents.length > 0 || hasArchive;
	const pages = ([ARCHIVE, INCIDENTS, START] as const).filter((each) => each === START || (each === ARCHIVE ? hasArchive : incidents.length > 0));

	return (
		<div class="app">
			<a class="skip" href="#main" onClick={focusMain}>
				Skip to the view
			</a>
			<header class="bar">
				<h1 class="visually-hidden">{title}</h1>
				<a class="brand" href={several ? routeHref(hasArchive ? ARCHIVE : START, "") : routeHref(views[0]!.id, trace?.id ?? "")} title={hasArchive ? "The archive" : several ? "All traces" : undefined}>
					Opstrobe
				</a>
				{page ? <Pages current={page} pages={pages} /> : <Navigation source={source} current={view} traces={traces} trace={trace} traceId={traceId} />}
				{!start && <TraceChoice traces={traces} current={trace} view={view} />}
				<button
					type="button"
					class="plain"
					title="Switch between light and dark"
					aria-label={theme.value === "dark" ? "Switch to light" : "Switch to dark"}
					onClick={toggleTheme}
				>
					{theme.value === "dark" ? "☀" : "☾"}
				</button>
			</header>
			<main id="main" tabIndex={view.fills && !start ? -1 : 0} class={view.fills && !start ? "fills" : "scrolls"} aria-label={title}>
				{list.state === "loading" && <Loading what="the list of traces" />}
				{list.state === "failed" && <Failure error={list.error} />}
				{serverGone.value && (
					<div class="banner" role="alert">
						<strong>The server does not answer.</strong> What is on the page stays; nothing more can be loaded. Is <code>opstrobe serve</code> still running? This page tries again every few seconds.
					</div>
				)}
				{list.state === "ready" && traces.length === 0 && (page === START || page === undefined) && <p class="note">No traces yet.</p>}
				{page === START && traces.length > 0 && <Start source={source} traces={traces} />}
				{page === ARCHIVE && archived && <Archive source={source} rows={archived} traces={traces} id={traceId} />}
				{page === INCIDENTS && known && <Incidents source={source} incidents={known} traces={traces} id={traceId} />}
				{!start && traces.length > 0 && !trace && <Gone view={view} traces={traces} />}
				{trace?.state === "failed" && <Failure error={new Error(trace.error ?? "The trace cannot be read.")} />}
				{trace && <Diagnostics trace={trace} name="this trace" />}
				{trace && <IncidentNote incident={incidentOf(trace, incidents)} />}
				{trace && trace.state !== "failed" && <Opened key={`${view.id}/${trace.id}`} view={view} source={source} trace={trace} traces={traces} />}
			</main>
		</div>
	);
}

/** Shown if the trace in the address is not in the list: its file was removed or rewritten. */
function Gone({ view, traces }: { view: View; traces: TraceEntry[] }) {
	return (
		<div class="note" role="alert">
			<p>This trace is no longer served: its file was removed or changed. These traces are served:</p>
			<ul>
				{traces.map((each) => (
					<li key={each.id}>
						<a href={routeHref(view.id, each.id)} title={each.path}>
							{each.run === "" ? each.name : `${each.run} / ${each.name}`}
						</a>
					</li>
				))}
			</ul>
		</div>
	);
}

/** Shown above the views of a recording made before an incident. */
function IncidentNote({ incident }: { incident: IncidentRow | undefined }) {
	if (!incident) return null;
	return (
		<p class="incident-note">
			{"Recorded before an incident: "}
			<a href={incidentHref(String(incident.id))}>{String(incident.what)}</a>
		</p>
	);
}

/** Links between the pages that do not belong to one trace, if there are several. */
function Pages({ current, pages }: { current: Page; pages: readonly Page[] }) {
	if (pages.length < 2) return <span class="tools-space" />;
	return (
		<nav aria-label="Pages">
			{pages.map((page) => (
				<a key={page} href={routeHref(page, "")} aria-current={page === current ? "page" : undefined}>
					{PAGES[page]}
				</a>
			))}
		</nav>
	);
}

/** The view, once it has data. It stays visible when the server has to read the trace again. */
function Opened({ view, ...props }: ViewProps & { view: View }) {
	const opened = useRef(false);
	opened.current ||= props.trace.state === "ready";
	return opened.current ? <view.component {...props} /> : <Reading source={props.source} trace={props.trace} />;
}

interface NavigationProps {
	source: DataSource;
	current: View;
	traces: TraceEntry[];
	trace: TraceEntry | undefined;
	/** The id in the address, even if that trace is not served. */
	traceId: string;
}

/** Views without data in the trace are dimmed. */
function Navigation({ source, current, traces, trace, traceId }: NavigationProps) {
	const bar = useRef<HTMLElement>(null);
	const facts = useReply<{ value: TraceFacts }>(source, trace?.state === "ready" ? `traces/${trace.id}/info` : undefined);
	const isEmpty = (view: View) => !!trace && facts.state === "ready" && view.hasData?.(facts.data.value, traces, trace) === false;
	const aboutEmpty = (view: View) => `${view.about}. No data in this trace${view.needs ? `: ${view.needs}` : ""}.`;
	useEffect(() => bar.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [current]);
	return (
		<nav ref={bar} aria-label="Views">
			{views.map((view) => (
				<a
					key={view.id}
					href={routeHref(view.id, trace?.id ?? traceId, view.steps && current.steps ? { steps: route.value.params.get("steps") } : {})}
					class={isEmpty(view) ? "empty-view" : undefined}
					title={isEmpty(view) ? aboutEmpty(view) : view.about}
					aria-current={view === current ? "page" : undefined}
				>
					{view.title}
				</a>
			))}
		</nav>
	);
}

function TraceChoice(props: { traces: TraceEntry[]; current: TraceEntry | undefined; view: View }) {
	const { traces, current, view } = props;
	const runs = [...new Set(traces.map((each) => each.run))];
	if (traces.length === 0 || (traces.length < 2 && current)) return <span class="trace-name" title={current?.path}>{current?.name}</span>;
	const options = (some: TraceEntry[]) =>
		some.map((each) => (
			<option key={each.id} value={each.id} disabled={each.state === "failed"}>
				{each.name}
			</option>
		));
	return (
		<select
			aria-label="Trace"
			title={current?.path}
			value={current?.id ?? ""}
			onChange={(event) => go(view.id, event.currentTarget.value)}
		>
			{!current && <option value="">Choose a trace</option>}
			{runs.length < 2
				? options(traces)
				: runs.map((run) => (
						<optgroup key={run} label={run}>
							{options(traces.filter((each) => each.run === run))}
						</optgroup>
					))}
		</select>
	);
}

/** The hash is the route, so a link to the view has to move the focus itself. */
function focusMain(event: Event): void {
	event.preventDefault();
	document.getElementById("main")?.focus();
}
