/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe recover`: makes traces of recording files that killed processes left behind.
 */
#include "cli.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <opstrobe/internal/format.h>
#include <opstrobe/internal/snapshot.h>
#include <opstrobe/read.h>

#include "files.h"
#include "options.h"
#include "write.h"

static const char usage[] =
	"usage: opstrobe recover [options] FILE|DIRECTORY\n"
	"\n"
	"Makes traces of what 'opstrobe run --spill' or profile(spill=...) had recorded when the\n"
	"program was killed. Every event that had ended is in the trace; those under way are\n"
	"marked as unfinished. In a directory all recording files (.oprec) are read.\n"
	"\n"
	"A file of a program that still runs gives what was recorded so far.\n"
	"\n"
	"options:\n"
	"  -o, --output OUTPUT  the trace to write; for a directory with several recordings, a\n"
	"                       directory to write to (default: next to each recording,\n"
	"                       NAME.pt.trace.json.gz)\n"
	"  --remove             remove each recording whose trace is written, unless its program\n"
	"                       still runs\n"
	"  --help               print this\n"
	"\n"
	"formats of OUTPUT:\n"
	CLI_FORMS
	"\n"
	"examples:\n"
	"  opstrobe recover /dev/shm/spill -o trace.json.gz\n"
	"  opstrobe recover --remove /dev/shm/spill\n";

/* --- recording files ------------------------------------------------------------------------------------------------ */

struct recordings {
	char **paths; /* owned */
	size_t count;
};

static bool recordings_add(struct recordings *recordings, const char *folder, const char *name)
{
	char **more = realloc(recordings->paths, (recordings->count + 1) * sizeof(*more));
	char *path = NULL;

	if (more)
		recordings->paths = more;
	if (!more || asprintf(&path, "%s%s%s", folder ? folder : "", folder && !cli_has_suffix(folder, "/") ? "/" : "", name) < 0) {
		cli_log("opstrobe recover: out of memory\n");
		return false;
	}
	more[recordings->count++] = path;
	return true;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns false, after printing an error, if there are none. */
static bool recordings_find(struct recordings *recordings, const char *path)
{
	DIR *folder = cli_is_directory(path) ? opendir(path) : NULL;
	struct dirent *entry;
	bool done = true;

	if (!cli_is_directory(path))
		return recordings_add(recordings, NULL, path);
	if (!folder) {
		perror("opstrobe recover: cannot read the directory");
		return false;
	}
	while (done && (entry = readdir(folder)))
		if (cli_has_suffix(entry->d_name, OPS_RECORDING_SUFFIX))
			done = recordings_add(recordings, path, entry->d_name);
	closedir(folder);
	if (done && !recordings->count)
		cli_log("opstrobe recover: no recording files (" OPS_RECORDING_SUFFIX ") in '%s'\n", path);
	if (recordings->count)
		qsort(recordings->paths, recordings->count, sizeof(*recordings->paths), compare_paths);
	return done && recordings->count;
}

static void recordings_release(struct recordings *recordings)
{
	for (size_t i = 0; i < recordings->count; i++)
		free(recordings->paths[i]);
	free(recordings->paths);
}

/* --- recovering ----------------------------------------------------------------------------------------------------- */

/* Returns the path of the trace of a recording; NULL if out of memory. */
static char *recover_output_of(const char *path, const char *output)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash && output ? slash + 1 : path;
	int size = (int)strlen(name) - (cli_has_suffix(name, OPS_RECORDING_SUFFIX) ? (int)strlen(OPS_RECORDING_SUFFIX) : 0);
	char *trace = NULL;

	if (output && !cli_is_directory(output))
		return strdup(output);
	if (asprintf(&trace, "%s%s%.*s" CLI_TRACE_SUFFIX, output ? output : "", output && !cli_has_suffix(output, "/") ? "/" : "", size,
	             name) < 0)
		return NULL;
	return trace;
}

static void report(const char *path, const char *output, struct ops_trace *trace, const struct ops_recovery *recovery)
{
	const struct ops_trace_info *info = ops_trace_info(trace);

	char count[OPS_FORMAT_ROOM];

	ops_format_integer(count, ops_trace_events(trace)->count);
	cli_log("opstrobe: wrote %s: %s events of process %lld (%s)\n", output, count,
	        (long long)recovery->pid, info->process_name);
	if (recovery->is_running)
		cli_log("opstrobe: process %lld still runs: the trace ends at this moment\n", (long long)recovery->pid);
	if (recovery->is_torn)
		cli_log("opstrobe: '%s' is torn: it was cut short or damaged, and was read as far as possible\n", path);
	if (recovery->end_errno)
		cli_log("opstrobe: the end of the recording is missing: '%s' could not grow: %s\n", path,
		        strerror(recovery->end_errno));
	ops_format_integer(count, info->lost);
	if (info->lost)
		cli_log("opstrobe: %s events are missing\n", count);
}

static bool recover_one(const char *path, const char *output, bool remove)
{
	struct ops_trace *trace = NULL;
	struct ops_recovery recovery;
	struct ops_error error;
	bool done;

	if (ops_trace_recover(path, &trace, &recovery, &error)) {
		cli_log("opstrobe recover: %s\n", error.text);
		return false;
	}
	done = cli_write("recover", trace, output, NULL);
	if (done)
		report(path, output, trace, &recovery);
	if (done && remove && !recovery.is_running && unlink(path) != 0)
		perror("opstrobe recover: cannot remove the recording");
	ops_trace_unref(trace);
	return done;
}

static int recover_all(const struct recordings *recordings, const char *output, bool remove)
{
	bool done = true;

	for (size_t i = 0; i < recordings->count; i++) {
		char *trace = recover_output_of(recordings->paths[i], output);

		done = trace && recover_one(recordings->paths[i], trace, remove) && done;
		free(trace);
	}
	return done ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

int cli_recover(char **arguments)
{
	const char *path, *output = NULL;
	bool remove = false, help;
	const struct cli_option options[] = {
		{"--output", &output, NULL}, {"-o", &output, NULL}, {"--remove", NULL, &remove}, {NULL, NULL, NULL}};
	struct recordings recordings = {0};
	int status = cli_parse(arguments, options, usage, &path, 1, &help);

	if (status || help)
		return status;
	if (output && cli_has_suffix(output, "/") && mkdir(output, 0777) == 0)
		cli_log("opstrobe: made the directory '%s'\n", output);
	if (output && !cli_is_directory(output) && !cli_can_write("recover", output, &path, 1))
		return CLI_EXIT_USAGE;
	if (!recordings_find(&recordings, path))
		status = CLI_EXIT_FAILED;
	if (!status && recordings.count > 1 && output && !cli_is_directory(output)) {
		cli_log("opstrobe recover: '%s' has %zu recordings, and '%s' is one file; give a directory, such as traces/\n", path,
		        recordings.count, output);
		status = CLI_EXIT_USAGE;
	}
	if (!status)
		status = recover_all(&recordings, output, remove);
	recordings_release(&recordings);
	return status;
}
