/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe validate`: checks a trace file for problems.
 */
#include "ask.h"

#include <stdio.h>

#include "cli.h"

static const char usage[] =
	"usage: opstrobe validate [--format text|json|csv|markdown] TRACE\n"
	"\n"
	"Checks a trace file and lists each kind of error, how often it occurs and the byte of\n"
	"the first one:\n"
	"  file     the text is damaged or unusual, but could be read\n"
	"  usual    the same, but torch.profiler writes such files\n"
	"  type     an argument of an event has an unexpected type\n"
	"  unknown  an argument of an event is unknown; this is not an error\n"
	"\n"
	"The exit status is 1 if the file cannot be read or has errors of the kind 'file'.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  default text\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe validate worker0.pt.trace.json.gz && echo valid\n";

/* Kineto's files have flows to events that were filtered out, and files of samples and execution traces have these notes by design. */
static bool is_usual(enum ops_note_kind kind)
{
	return kind == OPS_NOTE_UNMATCHED_ARROW || kind == OPS_NOTE_SAMPLED || kind == OPS_NOTE_NO_ORDER || kind == OPS_NOTE_NOT_TIME ||
	       kind == OPS_NOTE_NO_TIMES;
}

static bool has_faults(const struct ops_trace *trace)
{
	struct ops_error error;
	size_t count;
	const struct ops_note *notes = ops_trace_notes(trace, &count);
	bool found = false;

	for (size_t i = 0; i < count; i++)
		found = found || !is_usual(notes[i].kind);
	if (ops_trace_check(trace, &error)) {
		cli_log("opstrobe validate: %s\n", error.text);
		found = true;
	}
	return found;
}

int cli_validate(char **arguments)
{
	struct cli_traces traces;
	int status = cli_print_query(arguments, usage, "validate", &traces);

	if (!status && traces.count && has_faults(traces.workers[0].trace))
		status = CLI_EXIT_FAILED;
	cli_traces_release(&traces);
	return status;
}
