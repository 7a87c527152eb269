/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe cut`: a time range of a trace, or some of its threads.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include "options.h"
#include "steps.h"
#include "traces.h"
#include "write.h"

#define THREADS_MAX 256
#define THREADS_LISTED 10 /* in an error message */

static const char usage[] =
	"usage: opstrobe cut [options] TRACE [--output] OUTPUT\n"
	"\n"
	"Extracts a part of a trace. Events that overlap the range are kept complete, except for\n"
	"Python functions around all of it, which are shortened to it. Device work is kept with\n"
	"the call that started it. Formats of OUTPUT:\n"
	CLI_FORMS
	"\n"
	"options:\n"
	"  --steps FIRST[:LAST]  steps by number: 3 is ProfilerStep#3\n"
	"  --from TIME           from this time after the start of the trace: 1.5s, 20ms\n"
	"                        or 300us\n"
	"  --to TIME             up to this time\n"
	"  --threads N,N,...     events of these threads (tid) only\n"
	"  --help                print this\n"
	"\n"
	"example:\n"
	"  opstrobe cut --steps 3:4 worker0.pt.trace.json.gz two-steps.json.gz\n";

struct request {
	const char *steps, *from, *to, *threads;
	int64_t tids[THREADS_MAX];
	struct ops_trace_cut cut;
};

static bool cut_fail(const char *what, const char *value, const char *how)
{
	cli_log("opstrobe cut: invalid %s '%s': %s\n", what, value, how);
	return false;
}

/* Parses a time as nanoseconds after `base_ns`. */
static bool parse_time(const char *text, int64_t base_ns, int64_t *ret_ns)
{
	if (!cli_time("cut", "time", text, ret_ns))
		return false;
	*ret_ns += base_ns;
	return true;
}

/* Checks that a thread or stream of the trace has this number. */
static bool cut_check_thread(const struct ops_trace *trace, int64_t tid)
{
	size_t count, listed = 0;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	for (size_t i = 0; i < count; i++)
		if (!(tracks[i].flags & OPS_TRACK_TID_TEXT) && tracks[i].tid == tid)
			return true;
	cli_log("opstrobe cut: the trace has no thread %" PRId64 " (choose from ", tid);
	for (size_t i = 0; i < count && listed < THREADS_LISTED; i++)
		if (!(tracks[i].flags & OPS_TRACK_TID_TEXT))
			cli_log("%s%" PRId64, listed++ ? ", " : "", tracks[i].tid);
	cli_log("%s)\n", listed == THREADS_LISTED && listed < count ? ", …" : "");
	return false;
}

static bool parse_threads(struct request *request, const struct ops_trace *trace)
{
	const char *at = request->threads;

	if (!at)
		return true;
	for (char *end = NULL; !end || *end; at = end + 1) {
		int64_t *tid = &request->tids[request->cut.tid_count];

		errno = 0;
		*tid = strtoll(at, &end, 10);
		if (end == at || errno || (*end && *end != ',') || ++request->cut.tid_count == THREADS_MAX)
			return cut_fail("list of threads", request->threads, "not numbers separated by commas");
		if (!cut_check_thread(trace, *tid))
			return false;
	}
	request->cut.tids = request->tids;
	return true;
}

static bool parse_steps(struct request *request, const struct ops_trace *trace)
{
	uint64_t first, last;
	struct ops_error error;

	if (!request->steps)
		return true;
	if (!cli_steps_range("cut", request->steps, &first, &last))
		return false;
	if (!ops_trace_find_steps(trace, first, last, &request->cut.from_ns, &request->cut.to_ns, &error))
		return true;
	cli_log("opstrobe cut: %s\n", error.text);
	return false;
}

static int cut_cut(struct request *request, const struct ops_trace *trace, const char *output)
{
	int64_t base_ns = ops_trace_origin(trace);
	struct ops_trace *part = NULL;
	struct ops_error error;
	bool done;

	request->cut.from_ns = INT64_MIN;
	request->cut.to_ns = INT64_MAX;
	if (!parse_threads(request, trace) || !parse_steps(request, trace) ||
	    (request->from && !parse_time(request->from, base_ns, &request->cut.from_ns)) ||
	    (request->to && !parse_time(request->to, base_ns, &request->cut.to_ns)))
		return CLI_EXIT_USAGE;
	if (request->cut.from_ns > request->cut.to_ns) {
		cli_log("opstrobe cut: --from %s is after --to %s\n", request->from, request->to);
		return CLI_EXIT_USAGE;
	}
	if (request->from && request->cut.from_ns > ops_trace_end(trace)) {
		cli_log("opstrobe cut: --from %s is after the end of the trace\n", request->from);
		return CLI_EXIT_USAGE;
	}
	if (ops_trace_cut(trace, &request->cut, &part, &error)) {
		cli_log("opstrobe cut: %s\n", error.text);
		return CLI_EXIT_FAILED;
	}
	done = cli_write("cut", part, output, NULL);
	if (done)
		cli_report_written(output, ops_trace_events(part)->count, ops_trace_events(trace)->count);
	ops_trace_unref(part);
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

int cli_cut(char **arguments)
{
	struct request request = {0};
	const char *output = NULL;
	const struct cli_option options[] = {{"--steps", &request.steps, NULL}, {"--from", &request.from, NULL},
	                                     {"--to", &request.to, NULL}, {"--threads", &request.threads, NULL},
	                                     {"--output", &output, NULL}, {"-o", &output, NULL},
	                                     {NULL, NULL, NULL}};
	struct cli_traces traces;
	const char *path;
	bool help;
	int status = cli_parse_output(arguments, options, usage, &path, &output, &help);

	if (status || help)
		return status;
	if (!cli_can_write("cut", output, &path, 1))
		return CLI_EXIT_USAGE;
	status = CLI_EXIT_FAILED;
	if (cli_one_trace_read(&traces, path))
		status = cut_cut(&request, traces.workers[0].trace, output);
	cli_traces_release(&traces);
	return status;
}
