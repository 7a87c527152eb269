// SPDX-License-Identifier: Apache-2.0
//
// The costs of the program's lines: the list of files, and the text of one of them.
import { useParam } from "../app/params";
import { routeHref, setParams } from "../app/route";
import type { ViewProps } from "../app/views";
import type { LinesReply, SourceFile, SourceReply } from "../data/replies";
import { useReply } from "../data/reply";
import { baseName } from "../widgets/links";
import { StepView, useSameSteps } from "../widgets/step_choice";
import { Table } from "../widgets/table";
import type { Column } from "../widgets/table_model";
import { DefinitionNote, SourceText } from "./source_text";

export function Source({ source, trace }: ViewProps) {
	const [file] = useParam("file");
	const [own] = useParam("own");
	return (
		<StepView<LinesReply> source={source} trace={trace} path="lines" what="the lines">
			{(lines) => {
				// The file with most time opens first; "all files" is one click away.
				const shown = file !== "" ? file : hottest(shownFiles(lines, own));
				return shown === undefined || shown === ALL ? <Files trace={trace.id} lines={lines} /> : <OneFile source={source} trace={trace} lines={lines} file={shown} />;
			}}
		</StepView>
	);
}

/** The value of the parameter `file` for the list of files. */
const ALL = "*";

function hottest(files: readonly SourceFile[]): string | undefined {
	return files.reduce<SourceFile | undefined>((most, each) => (most && most.self_us >= each.self_us ? most : each), undefined)?.file;
}

/** Returns whether only files of the program are listed, without those of libraries: unless the parameter `own` is "0",
 * and if there are any. */
function isOwnOnly(lines: LinesReply, own: string): boolean {
	return own !== "0" && lines.files.some((each) => !each.is_library);
}

function shownFiles(lines: LinesReply, own: string): readonly SourceFile[] {
	return isOwnOnly(lines, own) ? lines.files.filter((each) => !each.is_library) : lines.files;
}

/** Selects files of the program only. If another file was open, opens the one with most time. */
function OwnChoice({ lines, open }: { lines: LinesReply; open?: SourceFile | undefined }) {
	const [own] = useParam("own");
	if (lines.files.every((each) => each.is_library)) return null;
	const choose = (only: boolean) => setParams({ own: only ? undefined : "0", ...(only && open?.is_library ? { file: undefined, line: undefined } : {}) });
	return (
		<label>
			<input type="checkbox" checked={isOwnOnly(lines, own)} onChange={(event) => choose(event.currentTarget.checked)} /> My code only
		</label>
	);
}

const FILES: Column<SourceFile>[] = [
	{ id: "host", title: "Total", kind: "us", bar: true, total: "none", value: (row) => row.host_us, about: "Time in which a line of the file ran, on any thread, with the backward pass of what it called" },
	{ id: "self", title: "Self", kind: "us", bar: true, value: (row) => row.self_us, about: "Time without that of other lines of the program" },
	{ id: "device", title: "Device", kind: "us", value: (row) => row.device_us },
	{ id: "allocated", title: "Allocated", kind: "bytes", value: (row) => row.allocated_bytes },
	{ id: "lines", title: "Lines", kind: "count", value: (row) => row.lines.length },
	{ id: "path", title: "Path", kind: "text", wide: true, value: (row) => row.file },
];

function Files({ trace, lines }: { trace: string; lines: LinesReply }) {
	const same = useSameSteps();
	const linesOf = (row: SourceFile) => routeHref("source", trace, { file: row.file, ...same });
	const name: Column<SourceFile> = { id: "name", title: "File", kind: "text", value: (row) => baseName(row.file), link: linesOf };
	const [own] = useParam("own");
	const files = shownFiles(lines, own);
	const columns = [name, ...FILES.filter((column) => column.kind === "text" || lines.files.some((file) => column.value(file) !== 0))];
	return (
		<Table
			id="files"
			label="Files of the program"
			columns={columns}
			rows={files}
			sort="-self"
			tools={<OwnChoice lines={lines} />}
			detail={(row) => (
				<p class="detail-links">
					<code class="long">{row.file}</code>
					<a href={linesOf(row)}>Show its lines</a>
				</p>
			)}
			empty={<NoLines />}
			lines={22}
		/>
	);
}

function NoLines() {
	return (
		<>
			<p>No source lines.</p>
			<p>
				Record them with <code>opstrobe run</code> or <code>with_stack=True</code>.
			</p>
		</>
	);
}

function OneFile({ source, trace, lines, file }: Omit<ViewProps, "traces"> & { lines: LinesReply; file: string }) {
	const chosen = lines.files.find((each) => each.file === file);
	const text = useReply<SourceReply>(source, `traces/${trace.id}/source`, { file });
	const [line] = useParam("line");
	const [own] = useParam("own");
	const same = useSameSteps();
	return (
		<>
			<div class="tools">
				<h2 class="mono long" title={file}>
					{baseName(file)}
				</h2>
				<FileChoice lines={lines} file={file} />
				<OwnChoice lines={lines} open={chosen} />
				<span class="tools-space" />
				<a href={routeHref("source", trace.id, { ...same, file: ALL, own: own || undefined })}>All files</a>
			</div>
			{text.state === "failed" && <p class="warn-note">{`Only lines that took time are shown: ${text.error.message}`}</p>}
			{text.state === "ready" && text.data.changed && <p class="warn-note">The file was changed after the recording: lines may have moved.</p>}
			{text.state === "ready" && <DefinitionNote lines={chosen?.lines ?? []} text={text.data.text} />}
			{text.state === "loading" ? null : (
				<SourceText
					trace={trace.id}
					lines={chosen?.lines ?? []}
					text={text.state === "ready" ? text.data.text : undefined}
					chosen={line === "" ? undefined : Number(line)}
					all_us={lines.duration_us}
				/>
			)}
		</>
	);
}

function FileChoice({ lines, file }: { lines: LinesReply; file: string }) {
	const [own] = useParam("own");
	const files = shownFiles(lines, own);
	return (
		<label>
			File{" "}
			<select value={file} onChange={(event) => setParams({ file: event.currentTarget.value, line: undefined })}>
				{files.every((each) => each.file !== file) && <option value={file}>{file}</option>}
				{files.map((each) => (
					<option key={each.file} value={each.file}>
						{each.file}
					</option>
				))}
			</select>
		</label>
	);
}
