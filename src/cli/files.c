/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace files given to a command: by name, as a directory, as a pattern, or on standard input.
 */
#include "files.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static enum ops_code add_path(struct cli_files *files, const char *path, struct ops_error *error)
{
	return ops_trace_files_add(&files->list, strcmp(path, "-") ? path : "/dev/stdin", error);
}

/* Adds the matches of a quoted pattern. A file with exactly that name has precedence. */
static enum ops_code add_matches(struct cli_files *files, const char *pattern, struct ops_error *error)
{
	glob_t matches;
	enum ops_code code = OPS_OK;

	if (glob(pattern, 0, NULL, &matches))
		return add_path(files, pattern, error);
	for (size_t i = 0; !code && i < matches.gl_pathc; i++)
		code = add_path(files, matches.gl_pathv[i], error);
	files->is_folder = true;
	globfree(&matches);
	return code;
}

static enum ops_code add_any(struct cli_files *files, const char *path, bool any_json, struct ops_error *error)
{
	struct stat about;

	if (stat(path, &about))
		return strpbrk(path, "*?[") ? add_matches(files, path, error) : add_path(files, path, error);
	if (!S_ISDIR(about.st_mode))
		return add_path(files, path, error);
	files->is_folder = true;
	return any_json ? ops_trace_files_add_json(&files->list, path, error)
	                : ops_trace_files_add_folder(&files->list, path, error);
}

/* Finds the first subdirectory with traces, for runs with many, which have one each; `name` receives its name. */
static bool find_below(const char *path, char *name, size_t size)
{
	struct dirent **entries = NULL;
	int count = scandir(path, &entries, NULL, alphasort);
	bool found = false;

	for (int i = 0; i < count; i++) {
		struct ops_trace_files traces = {0};
		struct ops_error error;

		if (!found && entries[i]->d_name[0] != '.') {
			snprintf(name, size, "%s/%s", path, entries[i]->d_name);
			found = !ops_trace_files_add_folder(&traces, name, &error) && traces.count;
		}
		ops_trace_files_release(&traces);
		free(entries[i]);
	}
	free(entries);
	return found;
}

static void report_missing(const char *path)
{
	char below[4096];

	snprintf(below, sizeof(below), "%s/StringIds.parquet", path);
	if (access(below, F_OK) == 0) {
		cli_log("opstrobe: '%s' is a Parquet export of Nsight Systems, which 'opstrobe sql' and opstrobe.read() read; for other "
		        "commands use 'nsys export --type sqlite'\n", path);
		return;
	}
	cli_log("opstrobe: no trace (*.json, *.json.gz, *.json.zst) in '%s'", path);
	if (find_below(path, below, sizeof(below)))
		cli_log("; there is in '%s'", below);
	fputc('\n', stderr);
}

bool cli_files_find_all(struct cli_files *files, char *const *paths, size_t count, bool any_json)
{
	*files = (struct cli_files){.is_folder = count > 1};
	for (size_t i = 0; i < count; i++) {
		size_t before = files->list.count;
		struct ops_error error;

		if (add_any(files, paths[i], any_json, &error)) {
			cli_log("opstrobe: %s\n", error.text);
			return false;
		}
		if (files->list.count == before) {
			report_missing(paths[i]);
			return false;
		}
	}
	return true;
}

void cli_files_release(struct cli_files *files)
{
	ops_trace_files_release(&files->list);
	files->is_folder = false;
}

bool cli_is_directory(const char *path)
{
	struct stat about;

	return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool cli_has_suffix(const char *path, const char *suffix)
{
	size_t size = strlen(path), suffix_size = strlen(suffix);

	return size >= suffix_size && strcmp(path + size - suffix_size, suffix) == 0;
}

bool cli_files_select(const char *const *paths, size_t count, const char *file)
{
	struct cli_files files = {0};
	struct ops_error error;
	struct stat written, selected;
	bool selects = false;

	if (stat(file, &written))
		return false;
	/* Paths that cannot be listed select nothing, which the command reports when it reads them. */
	for (size_t i = 0; i < count; i++)
		if (add_any(&files, paths[i], true, &error))
			break;
	for (size_t i = 0; i < files.list.count && !selects; i++)
		selects = !stat(files.list.items[i].path, &selected) && selected.st_dev == written.st_dev &&
		          selected.st_ino == written.st_ino;
	cli_files_release(&files);
	return selects;
}
