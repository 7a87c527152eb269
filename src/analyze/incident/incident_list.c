/* SPDX-License-Identifier: Apache-2.0
 *
 * The incidents of a directory, and their reports. watch/incident_dirs.c writes them.
 */
#include <opstrobe/internal/incidents.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/fault.h"

#define NAMES_MAX 100000 /* limit for a directory that Opstrobe did not create */

/* Matches "20261123-104512-4711", also with a suffix such as ".2". */
static bool is_incident_name(const char *name)
{
	return strlen(name) > 16 && name[8] == '-' && name[15] == '-' && strspn(name, "0123456789") == 8 &&
	       strspn(name + 9, "0123456789") == 6;
}

static int compare_names_down(const void *a, const void *b)
{
	return strcmp(*(char *const *)b, *(char *const *)a);
}

void ops_incidents_free(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ops_free(names[i]);
	ops_free(names);
}

enum ops_code ops_incidents_list(const char *directory, char ***ret_names, size_t *ret_count, struct ops_error *error)
{
	OPS_ARRAY(char *) names = {0};
	DIR *folder = opendir(directory);
	struct dirent *entry;
	bool done = true;

	if (!folder && errno != ENOENT)
		return ops_fault_errno(error, errno, "cannot read '%s'", directory);
	while (folder && done && names.count < NAMES_MAX && (entry = readdir(folder))) {
		char **name;

		if (!is_incident_name(entry->d_name))
			continue;
		name = OPS_ARRAY_PUSH(&names);
		done = name && (*name = ops_alloc(strlen(entry->d_name) + 1)) != NULL;
		if (done)
			strcpy(*name, entry->d_name);
	}
	if (folder)
		closedir(folder);
	if (!done) { /* the last name may be NULL, which free accepts */
		ops_incidents_free(names.items, names.count);
		return ops_fault_memory(error);
	}
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), compare_names_down);
	*ret_names = names.items;
	*ret_count = names.count;
	return OPS_OK;
}

enum ops_code ops_incident_read(const char *directory, const char *name, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer text = {0};
	char path[PATH_MAX];
	enum ops_code code = OPS_OK;
	FILE *file = NULL;
	size_t got = 1;

	if (strchr(name, '/') || name[0] == '.')
		return ops_fault(error, OPS_INVALID, "'%s' is not the name of an incident", name);
	if (snprintf(path, sizeof(path), "%s/%s/" OPS_INCIDENT_REPORT, directory, name) < (int)sizeof(path))
		file = fopen(path, "re");
	if (!file)
		return ops_fault_errno(error, errno, "cannot read '%s/%s'", directory, name);
	while (got) {
		char *to = ops_buffer_room(&text, 65536);

		got = to ? fread(to, 1, 65536, file) : 0;
		text.size += got;
	}
	if (ferror(file))
		code = ops_fault_errno(error, errno, "cannot read '%s'", path);
	fclose(file);
	return ops_buffer_detach(&text, code, ret_text, ret_size, error);
}
