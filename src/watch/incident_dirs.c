/* SPDX-License-Identifier: Apache-2.0
 *
 * The directory of incidents: one is written under a name that begins with a dot, and then renamed. incident_list.c reads it.
 */
#include <opstrobe/internal/incidents.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <opstrobe/write.h>

#include "base/alloc.h"
#include "base/fault.h"

bool ops_incidents_default_directory(char ret_path[], size_t room)
{
	const char *given = getenv("OPSTROBE_INCIDENTS"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int size;

	if (given && *given)
		size = snprintf(ret_path, room, "%s", given);
	else if (state && *state == '/')
		size = snprintf(ret_path, room, "%s/opstrobe/incidents", state);
	else if (home && *home)
		size = snprintf(ret_path, room, "%s/.local/state/opstrobe/incidents", home);
	else
		return false;
	return size > 0 && (size_t)size < room;
}

bool ops_black_box_directory(char ret_path[], size_t room)
{
	const char *given = getenv("OPSTROBE_BLACK_BOX_DIR");
	int size;

	if (given && *given)
		size = snprintf(ret_path, room, "%s", given);
	else
		size = snprintf(ret_path, room, "%s/opstrobe-%lu", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
		                (unsigned long)getuid());
	return size > 0 && (size_t)size < room;
}

/* --- removing --------------------------------------------------------------------------------------------------------- */

static void incident_remove(const char *directory, const char *name)
{
	static const char *const files[] = {"/" OPS_INCIDENT_REPORT, "/" OPS_INCIDENT_TRACE, ""};
	char path[PATH_MAX];

	for (size_t i = 0; i < 3; i++)
		if (snprintf(path, sizeof(path), "%s/%s%s", directory, name, files[i]) < (int)sizeof(path))
			remove(path);
}

static uint64_t incident_bytes(const char *directory, const char *name)
{
	static const char *const files[] = {OPS_INCIDENT_REPORT, OPS_INCIDENT_TRACE};
	char path[PATH_MAX];
	uint64_t bytes = 0;
	struct stat seen;

	for (size_t i = 0; i < 2; i++)
		if (snprintf(path, sizeof(path), "%s/%s/%s", directory, name, files[i]) < (int)sizeof(path) && stat(path, &seen) == 0)
			bytes += (uint64_t)seen.st_size;
	return bytes;
}

/* The newest incident is always kept. */
static void incidents_prune(const char *directory, uint64_t max_bytes)
{
	char **names;
	size_t count;
	uint64_t bytes = 0;
	struct ops_error error;

	if (!max_bytes)
		max_bytes = OPS_INCIDENTS_MAX_BYTES;
	if (ops_incidents_list(directory, &names, &count, &error))
		return;
	for (size_t i = 0; i < count; i++) {
		bytes += incident_bytes(directory, names[i]);
		if (i && (i >= OPS_INCIDENTS_MAX || bytes > max_bytes))
			incident_remove(directory, names[i]);
	}
	ops_incidents_free(names, count);
}

/* --- writing ---------------------------------------------------------------------------------------------------------- */

static enum ops_code make_directories(const char *directory, struct ops_error *error)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s", directory) >= (int)sizeof(path))
		return ops_fault_errno(error, ENAMETOOLONG, "cannot make '%s'", directory);
	for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		mkdir(path, 0700); /* the last call reports the error */
		*slash = '/';
	}
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return ops_fault_errno(error, errno, "cannot make '%s'", directory);
	return OPS_OK;
}

static enum ops_code write_text(const char *path, const char *text, size_t size, struct ops_error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ssize_t done = 0;

	for (size_t at = 0; fd >= 0 && done >= 0 && at < size; at += (size_t)done)
		done = write(fd, text + at, size - at);
	if (fd < 0 || done < 0 || close(fd) != 0)
		return ops_fault_errno(error, errno, "cannot write '%s'", path);
	return OPS_OK;
}

static enum ops_code incident_fill(const char *folder, const char *facts, size_t facts_size, const struct ops_trace *trace,
                                   struct ops_error *error)
{
	struct ops_chrome_json_options options = {.size = sizeof(options), .compression_level = 1};
	char path[PATH_MAX + 32], *report = NULL;
	enum ops_code code;
	size_t size;

	code = ops_incident_report(facts, facts_size, trace, &report, &size, error);
	if (!code) {
		snprintf(path, sizeof(path), "%s/" OPS_INCIDENT_REPORT, folder);
		code = write_text(path, report, size, error);
	}
	ops_free(report);
	if (code || !trace)
		return code;
	snprintf(path, sizeof(path), "%s/" OPS_INCIDENT_TRACE, folder);
	return ops_write_chrome_json(trace, path, &options, error);
}

/* Returns the number after a name: of incidents in the same second, the last one has the highest. The first one has no number in
 * its name. */
static int first_number(const char *directory, const char *name)
{
	struct ops_error error;
	size_t count, size = strlen(name);
	char **names;
	int number = 0;

	if (ops_incidents_list(directory, &names, &count, &error))
		return 1;
	for (size_t i = 0; i < count; i++)
		if (!strncmp(names[i], name, size) && (!names[i][size] || names[i][size] == '.')) {
			int of = names[i][size] ? atoi(names[i] + size + 1) : 1;

			number = of > number ? of : number;
		}
	ops_incidents_free(names, count);
	return number + 1;
}

enum ops_code ops_incident_write(const char *directory, const char *facts, size_t facts_size, const struct ops_trace *trace,
                                 int64_t time_ns, int64_t pid, uint64_t max_bytes, char *ret_path, struct ops_error *error)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	char name[64], fresh[96], hidden[PATH_MAX], path[PATH_MAX];
	struct tm moment;
	enum ops_code code = make_directories(directory, error);

	gmtime_r(&seconds, &moment);
	strftime(name, sizeof(name), "%Y%m%d-%H%M%S", &moment);
	snprintf(name + strlen(name), sizeof(name) - strlen(name), "-%lld", (long long)pid);
	if (!code && snprintf(hidden, sizeof(hidden), "%s/.new-%s-XXXXXX", directory, name) >= (int)sizeof(hidden))
		code = ops_fault_errno(error, ENAMETOOLONG, "cannot write to '%s'", directory);
	if (!code && !mkdtemp(hidden))
		code = ops_fault_errno(error, errno, "cannot write to '%s'", directory);
	if (code)
		return code;
	code = incident_fill(hidden, facts, facts_size, trace, error);
	for (int i = code ? 1 : first_number(directory, name); !code; i++) {
		snprintf(fresh, sizeof(fresh), i > 1 ? "%s.%d" : "%s", name, i);
		if (snprintf(path, sizeof(path), "%s/%s", directory, fresh) >= (int)sizeof(path))
			code = ops_fault_errno(error, ENAMETOOLONG, "cannot write to '%s'", directory);
		else if (rename(hidden, path) == 0)
			break;
		else if (errno != EEXIST && errno != ENOTEMPTY)
			code = ops_fault_errno(error, errno, "cannot write to '%s'", directory);
	}
	if (code) {
		incident_remove(directory, strrchr(hidden, '/') + 1);
		return code;
	}
	if (ret_path)
		strcpy(ret_path, path);
	incidents_prune(directory, max_bytes);
	return OPS_OK;
}
