// SPDX-License-Identifier: Apache-2.0
//
// The incidents of the served directories: the list, and a single one.
import { useEffect, useState } from "preact/hooks";
import { routeHref } from "../app/route";
import type { TraceEntry } from "../data/api";
import type { TableReply } from "../data/replies";
import type { DataSource } from "../data/source";
import { TABLES } from "../data/tables";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import { Incident } from "./incident";

/** The name of the page in the address. An incident replaces the trace in the address. */
export const INCIDENTS = "incidents";

const NAMES = ["id", "when", "process", "pid", "what", "cause", "where", "has_trace"] as const;

export type IncidentRow = Record<(typeof NAMES)[number], TableReply["table"]["rows"][number][number]>;

/** Returns the server's incidents, requested again when its list of traces changes. Undefined until the server has
 * replied. */
export function useIncidents(source: DataSource, traces: readonly TraceEntry[] | undefined): readonly IncidentRow[] | undefined {
	const [rows, setRows] = useState<readonly IncidentRow[]>();
	useEffect(() => {
		if (source.kind !== "http") {
			setRows([]);
			return;
		}
		source.json<TableReply>("incidents").then(
			({ table }) => setRows(table.rows.map((row) => Object.fromEntries(NAMES.map((name) => [name, row[table.columns.indexOf(name)] ?? null])) as IncidentRow)),
			() => setRows([]),
		);
	}, [source, traces]);
	return rows;
}

export function incidentHref(id: string): string {
	return routeHref(INCIDENTS, id);
}

/** The trace of the recording before an incident is next to its report. */
function isOf(trace: TraceEntry, id: string): boolean {
	return trace.path.endsWith(`${id}/trace.json.gz`);
}

export function incidentOf(trace: TraceEntry, incidents: readonly IncidentRow[]): IncidentRow | undefined {
	return incidents.find((row) => isOf(trace, String(row.id)));
}

const COLUMNS: Column<IncidentRow>[] = NAMES.map((name) => {
	const { title, kind } = TABLES.incidents[name];
	// A PID is a name, so its digits are not grouped.
	const column: Column<IncidentRow> = { id: name, title, kind: name === "pid" ? "text" : kind, value: (row) => row[name], hidden: name === "id", groups: name === "process" || name === "cause", wide: name === "what" || name === "where" };
	return name === "what" ? { ...column, link: (row) => incidentHref(String(row.id)) } : column;
});

interface IncidentsProps {
	source: DataSource;
	incidents: readonly IncidentRow[];
	traces: readonly TraceEntry[];
	/** Id of the displayed incident; "": the list. */
	id: string;
}

export function Incidents({ source, incidents, traces, id }: IncidentsProps) {
	if (id !== "") return <Incident key={id} source={source} id={id} trace={traces.find((trace) => isOf(trace, id))} />;
	return (
		<div class="view">
			<Table id="incidents" label="Incidents" columns={COLUMNS} rows={incidents} sort="-when" lines={28} empty="No incidents." />
		</div>
	);
}
