/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace files that a command is given: by name, as a directory, as a pattern, or on standard input.
 */
#include "files.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static enum ops_code add_path(struct cli_files *files, const char *path, struct ops_error *error)
{
	return ops_trace_files_add(&files->list, strcmp(path, "-") ? path : "/dev/stdin", error);
}

/* A pattern that the shell was kept from replacing. A file of just that name comes before. */
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

bool cli_files_find_all(struct cli_files *files, char *const *paths, size_t count, bool any_json)
{
	*files = (struct cli_files){.is_folder = count > 1};
	for (size_t i = 0; i < count; i++) {
		size_t before = files->list.count;
		struct ops_error error;

		if (add_any(files, paths[i], any_json, &error)) {
			fprintf(stderr, "opstrobe: %s\n", error.text);
			return false;
		}
		if (files->list.count == before) {
			fprintf(stderr, "opstrobe: there is no trace (*.json, *.json.gz, *.json.zst) in '%s'\n", paths[i]);
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
