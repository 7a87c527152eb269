/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe validate`: whether a trace file is as it should be.
 */
#include "ask.h"

#include <stdio.h>

#include "cli.h"

static const char usage[] =
	"usage: opstrobe validate [--format text|json|csv|markdown] TRACE\n"
	"\n"
	"What is not as it should be in a trace file, how often, and at which byte first:\n"
	"  file     the text is damaged or odd; it was read all the same\n"
	"  usual    likewise, but torch.profiler itself writes such files\n"
	"  type     an argument of events is of another type than it should be\n"
	"  unknown  an argument of events that is not known; no fault\n"
	"\n"
	"The exit status is 1 when the file cannot be read, or is damaged or odd.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  text is the default\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe validate worker0.pt.trace.json.gz && echo as it should be\n";

/* Kineto draws arrows to events that were filtered out. */
static bool has_faults(const struct ops_trace *trace)
{
	struct ops_error error;
	size_t count;
	const struct ops_note *notes = ops_trace_notes(trace, &count);
	bool found = false;

	for (size_t i = 0; i < count; i++)
		found = found || notes[i].kind != OPS_NOTE_UNMATCHED_ARROW;
	if (ops_trace_check(trace, &error)) {
		cli_say("opstrobe validate: %s\n", error.text);
		found = true;
	}
	return found;
}

int cli_validate(char **arguments)
{
	struct cli_traces traces;
	int status = cli_ask(arguments, usage, "validate", NULL, &traces);

	if (!status && traces.count && has_faults(traces.workers[0].trace))
		status = CLI_EXIT_FAILED;
	cli_traces_release(&traces);
	return status;
}
