/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of the program's source: what its lines cost, and its text. Only files of Python's that the trace itself names are
 * read, for a trace may come from anybody.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <opstrobe/lines.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_walk.h"
#include "serve/api.h"

#define SOURCE_MAX (4 << 20)

/* --- lines ---------------------------------------------------------------------------------------------------------- */

static enum ops_code answer_lines(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return ops_lines(request_trace(request, 0), OPS_LINES_JSON, 0, 0, ret_text, ret_size, error);
}

/* --- which file ------------------------------------------------------------------------------------------------------ */

static bool is_python(const char *path, size_t size)
{
	static const char *const suffixes[] = {".py", ".pyi", ".pyx"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (size > strlen(suffixes[i]) && !memcmp(path + size - strlen(suffixes[i]), suffixes[i], strlen(suffixes[i])))
			return true;
	return false;
}

static bool is_text(struct ops_string text, const struct query_text *file)
{
	return text.size == file->size && !memcmp(text.bytes, file->bytes, file->size);
}

/* Whether a function of the trace is in that file. */
static bool is_named(const struct ops_trace *trace, const struct query_text *file)
{
	size_t count;
	const struct ops_function *functions = ops_trace_functions(trace, &count);
	struct ops_function_text function;

	for (size_t i = 0; i < count; i++)
		if (is_text(ops_trace_string(trace, functions[i].file), file))
			return true;
	for (uint32_t id = 0; id < ops_trace_string_count(trace); id++)
		if (ops_function_parse(ops_trace_string(trace, id), &function) && is_text(function.file, file))
			return true;
	return false;
}

/* Where it is: names may be relative to a folder that the trace does not tell. Tried are the trace's own, and that in which
 * the server was started. `real` has room for PATH_MAX; what links lead to must be Python's, too. */
static bool find_file(const struct served *served, const char *file, char *real)
{
	const char *slash = strrchr(served->path, '/');
	struct ops_buffer path = {0};
	bool found;

	if (*file != '/' && slash) {
		ops_buffer_append(&path, served->path, (size_t)(slash - served->path) + 1);
		ops_buffer_append(&path, file, strlen(file) + 1);
	}
	found = !path.failed && ((path.bytes && realpath(path.bytes, real)) || realpath(file, real));
	ops_buffer_release(&path);
	return found && is_python(real, strlen(real));
}

/* --- its text -------------------------------------------------------------------------------------------------------- */

static enum ops_code read_source(struct request *request, const char *path, struct ops_buffer *text, int64_t *ret_changed_ns,
                                 struct ops_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat about;
	ssize_t got = 0;
	char *room;

	if (fd < 0 || fstat(fd, &about) || !S_ISREG(about.st_mode) || about.st_size > SOURCE_MAX) {
		if (fd >= 0)
			close(fd);
		return request_fail(request, 404, error, "the file cannot be read here");
	}
	while ((room = ops_buffer_room(text, 65536)) && text->size <= SOURCE_MAX && (got = read(fd, room, 65536)) > 0)
		text->size += (size_t)got;
	close(fd);
	if (!room)
		return ops_fault_memory(error);
	*ret_changed_ns = (int64_t)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec;
	return got < 0 ? request_fail(request, 404, error, "the file cannot be read here") : OPS_OK;
}

static enum ops_code answer_source(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct query_text *file = request_need(request, "file", error);
	const struct served *served = request->traces[0];
	struct ops_buffer source = {0}, out = {0};
	struct ops_json_writer json = {.out = &out};
	int64_t changed_ns = 0;
	enum ops_code code;
	char real[PATH_MAX];

	if (!file)
		return OPS_INVALID;
	if (!is_python(file->bytes, file->size) || !is_named(served->trace, file) || !find_file(served, file->bytes, real))
		return request_fail(request, 404, error, "the file cannot be read here");
	code = read_source(request, real, &source, &changed_ns, error);
	ops_json_open(&json, '{');
	ops_json_key(&json, "file");
	ops_json_text(&json, file->bytes, file->size);
	ops_json_key(&json, "text");
	ops_json_text(&json, source.bytes, source.size);
	ops_json_key(&json, "changed");
	ops_json_bool(&json, changed_ns > ops_trace_events(served->trace)->start_ns[0]);
	ops_json_close(&json, '}');
	ops_buffer_release(&source);
	return ops_buffer_give(&out, code, ret_text, ret_size, error);
}

const struct route source_routes[] = {
	{.path = "traces/{id}/lines", .parameters = "", .answer = answer_lines, .slow = true, .by_steps = true},
	{.path = "traces/{id}/source", .parameters = "file", .answer = answer_source, .unstable = true},
	{0},
};
