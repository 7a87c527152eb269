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
	"The trace ends at the moment at which the command starts. Writing a trace of millions of\n"
	"events takes several seconds, so of a recording of more than 32 MiB the default is a copy,\n"
	"NAME.PID.oprec, which takes about a tenth of that. All commands read it like a trace, and\n"
	"'opstrobe convert' makes a trace of it.\n"
	"\n"
	"options:\n"
	"  --all                all your processes that record\n"
	"  --last TIME          a trace of only this part before the last event: 10s, 500ms (default: all\n"
	"                       that is kept)\n"
	"  -o, --output OUTPUT  the file to write; with --all a directory (default: NAME.PID.oprec or\n"
	"                       NAME.PID.pt.trace.json.gz in the current directory)\n"
	"  --help               print this\n"
	"\n"
	"formats of OUTPUT:\n"
	"  .oprec                         a copy of the recording, which Opstrobe reads\n"
	CLI_FORMS
	"\n"
	"examples:\n"
	"  opstrobe dump 4711\n"
	"  opstrobe dump --last 10s 4711 -o last.json\n"
	"  opstrobe dump --all -o dumps/\n";

#define COPIED_BYTES (32 << 20) /* size of a recording whose trace takes about a second to write */

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

/* Sets the name that the kernel has for the process. */
static void kernel_name(long pid, char ret_name[64])
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(ret_name, 64, file))
		strcpy(ret_name, "process");
	ret_name[strcspn(ret_name, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* Sets the name of the program: that of its recording file, "train.4711.1.oprec", or else what the kernel calls the process. */
static void dump_name(const char *recording, long pid, char ret_name[64])
{
	char target[4096], number[32];
	ssize_t size = readlink(recording, target, sizeof(target) - 1);
	const char *file, *end;

	kernel_name(pid, ret_name);
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
static char *dump_output_of(const struct dump_request *request, const char *suffix, const char *recording, long pid)
{
	const char *folder = request->in_directory ? request->output : ".";
	const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
	char name[64], *path = NULL;

	if (request->output && !request->in_directory)
		return strdup(request->output);
	dump_name(recording, pid, name);
	return asprintf(&path, "%s%s%s.%ld%s", folder, slash, name, pid, suffix) < 0 ? NULL : path;
}

/* The requested part ends with the last event, which may be long ago if the process hangs. */
static void print_written(const char *path, const struct ops_trace *trace, long pid, uint64_t last_ns)
{
	const struct ops_trace_info *info = ops_trace_info(trace);
	double ns = (double)(info->stop_ns - info->start_ns), quiet_ns = ns - (double)last_ns;
	char after[OPS_FORMAT_ROOM + 32] = "";

	if (last_ns && quiet_ns >= 1e8)
		snprintf(after, sizeof(after), ", %s of them after its last event", ops_figure_of_duration(quiet_ns).text);
	cli_log("opstrobe: wrote %s: %s events, the last %s of process %ld%s\n", path,
	        ops_figure_of_number((double)ops_trace_events(trace)->count).text, ops_figure_of_duration(ns).text, pid, after);
}

static void print_rest(uint64_t dropped, struct ops_string black_box)
{
	char text[OPS_OVERHEAD_ROOM];

	if (dropped)
		cli_log("opstrobe: %s older events were dropped, because the black box keeps only the last part\n",
		        ops_figure_of_number((double)dropped).text);
	if (black_box.size && ops_overhead_describe(black_box, text))
		cli_log("opstrobe: overhead of recording: %s\n", text);
	if (black_box.size && ops_detail_describe(black_box, text))
		cli_log("opstrobe: %s\n", text);
}

static bool dump_trace(long pid, const char *recording, const char *output, const struct dump_request *request)
{
	struct ops_recovery recovery;
	struct ops_trace *trace = NULL;
	struct ops_error error;
	bool done;

	if (ops_trace_recover_last(recording, request->last_ns, &trace, &recovery, &error)) {
		cli_log("opstrobe dump: process %ld: %s\n", pid, error.text);
		return false;
	}
	done = cli_write_quickly("dump", trace, output);
	if (done) {
		const struct ops_trace_info *info = ops_trace_info(trace);
		struct ops_string box = {0};

		print_written(output, trace, pid, request->last_ns);
		ops_trace_find_metadata(trace, "black_box", &box);
		print_rest(recovery.dropped, box);
		if (info->lost)
			cli_log("opstrobe: %s events are missing\n", ops_figure_of_number((double)info->lost).text);
	}
	ops_trace_unref(trace);
	return done;
}

static bool dump_copy(long pid, const char *recording, const char *output)
{
	struct ops_recording_copy copy;
	struct ops_error error;

	if (ops_recording_copy(recording, output, &copy, &error)) {
		cli_log("opstrobe dump: process %ld: %s\n", pid, error.text);
		return false;
	}
	cli_log("opstrobe: wrote %s: %s records, the last %s of process %ld; 'opstrobe convert' makes a trace of it\n", output,
	        ops_figure_of_number((double)copy.records).text, ops_figure_of_duration(copy.seconds * 1e9).text, pid);
	print_rest(copy.dropped, (struct ops_string){copy.black_box, strlen(copy.black_box)});
	return true;
}

/* Returns whether a copy of the recording is written, not a trace. */
static bool wants_copy(const struct dump_request *request, const char *recording)
{
	struct stat about;

	if (request->output && !request->in_directory)
		return cli_has_suffix(request->output, OPS_RECORDING_SUFFIX);
	return !request->last_ns && !stat(recording, &about) && about.st_size > COPIED_BYTES;
}

static bool dump_one(long pid, const char *recording, const struct dump_request *request)
{
	bool copies = wants_copy(request, recording);
	char *output = dump_output_of(request, copies ? OPS_RECORDING_SUFFIX : CLI_TRACE_SUFFIX, recording, pid);
	bool done = false;

	if (output)
		done = copies ? dump_copy(pid, recording, output) : dump_trace(pid, recording, output, request);
	else
		cli_log("opstrobe dump: out of memory\n");
	free(output);
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
	if (last && request.output && cli_has_suffix(request.output, OPS_RECORDING_SUFFIX)) {
		cli_log("opstrobe dump: --last selects events of a trace, and '%s' is a copy of the recording; give a name such as last.json\n",
		        request.output);
		return CLI_EXIT_USAGE;
	}
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
