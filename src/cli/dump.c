/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe dump`: the last part of what running processes record, read from their recording files. The processes take no part in
 * it, so one that hangs and holds the GIL can be dumped, too.
 */
#include "cli.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <opstrobe/internal/format.h>
#include <opstrobe/internal/incidents.h>
#include <opstrobe/internal/snapshot.h>

#include "files.h"
#include "options.h"
#include "write.h"

static const char usage[] =
	"usage: opstrobe dump [options] PID\n"
	"       opstrobe dump [options] --all\n"
	"\n"
	"Writes a trace of what a running process did last. The process must be one of yours\n"
	"that records in a black box ('opstrobe run --black-box', OPSTROBE_BLACK_BOX=1,\n"
	"opstrobe.black_box) or with '--spill'. It goes on, and does nothing for the trace: a\n"
	"process that hangs is dumped like any other. What was under way is marked as unfinished.\n"
	"\n"
	"The trace ends at the moment at which the command starts. The recording is copied first, in\n"
	"less than a second; afterwards the process may change or end. Writing a trace of millions of\n"
	"events takes several seconds; '-o NAME.json', without compression, is the quickest.\n"
	"\n"
	"options:\n"
	"  --all                all your processes that record\n"
	"  --last TIME          only this part before the last event: 10s, 500ms (default: all that is kept)\n"
	"  -o, --output OUTPUT  the trace to write; with --all a directory (default:\n"
	"                       NAME.PID.pt.trace.json.gz in the current directory)\n"
	"  --help               print this\n"
	"\n"
	"formats of OUTPUT:\n"
	CLI_FORMS
	"\n"
	"examples:\n"
	"  opstrobe dump 4711\n"
	"  opstrobe dump --last 10s 4711 -o last.json\n"
	"  opstrobe dump --all -o dumps/\n";

struct dump_request {
	uint64_t last_ns;
	const char *output;
	bool in_directory;
};

/* Returns whether the target of a descriptor is a recording file, which may have been removed or never had a name. */
static bool is_recording_file(const char *target)
{
	const char *end = strstr(target, OPS_RECORDING_SUFFIX);

	if (end)
		end += strlen(OPS_RECORDING_SUFFIX);
	return !strcmp(target, "/memfd:opstrobe (deleted)") || (end && (!*end || *end == ' '));
}

/* Finds the path that opens the process's recording file. Returns 1 if found, 0 if it has none, -1 with errno set on an error. */
static int find_recording(long pid, char ret_path[64])
{
	char folder_path[32], target[4096];
	struct dirent *entry;
	int found = 0;
	DIR *folder;

	snprintf(folder_path, sizeof(folder_path), "/proc/%ld/fd", pid);
	folder = opendir(folder_path);
	if (!folder)
		return -1;
	while (!found && (entry = readdir(folder))) {
		ssize_t size;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(ret_path, 64, "%s/%.20s", folder_path, entry->d_name);
		size = readlink(ret_path, target, sizeof(target) - 1);
		target[size > 0 ? size : 0] = '\0';
		found = size > 0 && is_recording_file(target);
	}
	closedir(folder);
	return found;
}

static void print_reason(long pid, int found, int problem)
{
	if (found == 0)
		cli_log("opstrobe dump: process %ld does not record; start it with 'opstrobe run --black-box' or OPSTROBE_BLACK_BOX=1\n",
		        pid);
	else if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
		cli_log("opstrobe dump: process %ld does not exist; 'opstrobe recover' reads the recording of a killed process\n", pid);
	else if (problem == EACCES || problem == EPERM)
		cli_log("opstrobe dump: process %ld belongs to another user or cannot be read\n", pid);
	else
		cli_log("opstrobe dump: cannot read process %ld: %s\n", pid, strerror(problem));
}

/* Sets the name of the program: that of its recording file, "train.4711.1.oprec", or else what the kernel calls the process. */
static void dump_name(const struct ops_trace *trace, const char *recording, long pid, char ret_name[64])
{
	char target[4096], number[32];
	ssize_t size = readlink(recording, target, sizeof(target) - 1);
	const char *file, *end;

	snprintf(ret_name, 64, "%.63s", ops_trace_info(trace)->process_name);
	target[size > 0 ? size : 0] = '\0';
	file = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
	snprintf(number, sizeof(number), ".%ld.", pid);
	end = strstr(file, number);
	if (end && end > file && end - file < 64)
		snprintf(ret_name, 64, "%.*s", (int)(end - file), file);
	for (char *at = ret_name; *at; at++)
		if (*at == '/')
			*at = '_';
}

/* Returns the path of the output; NULL if out of memory. */
static char *dump_output_of(const struct dump_request *request, const struct ops_trace *trace, const char *recording, long pid)
{
	const char *folder = request->in_directory ? request->output : ".";
	const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
	char name[64], *path = NULL;

	if (request->output && !request->in_directory)
		return strdup(request->output);
	dump_name(trace, recording, pid, name);
	return asprintf(&path, "%s%s%s.%ld" CLI_TRACE_SUFFIX, folder, slash, name, pid) < 0 ? NULL : path;
}

/* The requested part ends with the last event, which may be long ago if the process hangs. */
static void print_written(const char *path, const struct ops_trace *trace, long pid, uint64_t last_ns)
{
	const struct ops_trace_info *info = ops_trace_info(trace);
	double seconds = (double)(info->stop_ns - info->start_ns) / 1e9, quiet = seconds - (double)last_ns / 1e9;
	char after[64] = "";
	char count[OPS_FORMAT_ROOM];

	ops_format_integer(count, ops_trace_events(trace)->count);
	if (last_ns && quiet >= 0.1)
		snprintf(after, sizeof(after), ", %.1f s of them after its last event", quiet);
	cli_log("opstrobe: wrote %s: %s events, the last %.1f s of process %ld%s\n", path, count, seconds, pid,
	        after);
}

static bool dump_one(long pid, const char *recording, const struct dump_request *request)
{
	struct ops_recovery recovery;
	struct ops_trace *trace = NULL;
	struct ops_error error;
	char *path;
	bool done;

	if (ops_trace_recover_last(recording, request->last_ns, &trace, &recovery, &error)) {
		cli_log("opstrobe dump: process %ld: %s\n", pid, error.text);
		return false;
	}
	path = dump_output_of(request, trace, recording, pid);
	done = path && cli_write_quickly("dump", trace, path);
	if (done) {
		const struct ops_trace_info *info = ops_trace_info(trace);
		struct ops_string box = {0};
		char text[OPS_OVERHEAD_ROOM], count[OPS_FORMAT_ROOM];

		print_written(path, trace, pid, request->last_ns);
		ops_format_integer(count, recovery.dropped);
		if (recovery.dropped)
			cli_log("opstrobe: %s older events were dropped, because the black box keeps only the last part\n", count);
		if (ops_trace_find_metadata(trace, "black_box", &box) && ops_overhead_describe(box, text))
			cli_log("opstrobe: overhead of recording: %s\n", text);
		if (box.size && ops_detail_describe(box, text))
			cli_log("opstrobe: %s\n", text);
		ops_format_integer(count, info->lost);
		if (info->lost)
			cli_log("opstrobe: %s events are missing\n", count);
	}
	free(path);
	ops_trace_unref(trace);
	return done;
}

/* Dumps all recording processes that may be read. */
static int dump_all(const struct dump_request *request)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	size_t count = 0, failed = 0;
	char recording[64];

	while (folder && (entry = readdir(folder))) {
		long pid = strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || find_recording(pid, recording) != 1)
			continue;
		count++;
		failed += !dump_one(pid, recording, request);
	}
	if (folder)
		closedir(folder);
	if (!count)
		cli_log("opstrobe dump: none of your processes records\n");
	return count && !failed ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

static int dump_process(const char *text, const struct dump_request *request)
{
	char recording[64], *end;
	long pid = strtol(text, &end, 10);
	int found;

	if (end == text || *end || pid <= 0) {
		cli_log("opstrobe dump: '%s' is not a process number\n", text);
		return CLI_EXIT_USAGE;
	}
	found = find_recording(pid, recording);
	if (found != 1) {
		print_reason(pid, found, errno);
		return CLI_EXIT_FAILED;
	}
	return dump_one(pid, recording, request) ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

int cli_dump(char **arguments)
{
	const char *last = NULL;
	struct dump_request request = {0};
	int64_t last_ns = 0;
	bool all = false, help;
	const struct cli_option options[] = {
		{"--all", NULL, &all}, {"--last", &last, NULL}, {"--output", &request.output, NULL}, {"-o", &request.output, NULL}, {NULL, NULL, NULL}};
	size_t count;
	int status = cli_parse_paths(arguments, options, usage, 0, 1, &count, &help);

	if (status || help)
		return status;
	if (all == (count == 1)) {
		cli_log("opstrobe dump: give either the number of a process or --all; see 'opstrobe dump --help'\n");
		return CLI_EXIT_USAGE;
	}
	if (last && !cli_time("dump", "--last", last, &last_ns))
		return CLI_EXIT_USAGE;
	request.last_ns = (uint64_t)last_ns;
	if (request.output && (all || request.output[strlen(request.output) - 1] == '/') && mkdir(request.output, 0777) == 0)
		cli_log("opstrobe: made the directory '%s'\n", request.output);
	request.in_directory = request.output && cli_is_directory(request.output);
	if (all && request.output && !request.in_directory) {
		cli_log("opstrobe dump: '%s' is not a directory\n", request.output);
		return CLI_EXIT_USAGE;
	}
	return all ? dump_all(&request) : dump_process(arguments[1], &request);
}
