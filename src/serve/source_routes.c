/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes for the program's source: the cost of its lines, and its text. Only Python files named by frames of the trace are read,
 * because a trace may come from anywhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <opstrobe/internal/trace.h>
#include <opstrobe/internal/lines.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_walk.h"
#include "base/text.h"
#include "derive/source.h"
#include "serve/api.h"

#define SOURCE_MAX (4 << 20)

/* --- lines ---------------------------------------------------------------------------------------------------------- */

static enum ops_code answer_lines(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return ops_lines(request_trace(request, 0), OPS_FORMAT_JSON, 0, 0, ret_text, ret_size, error);
}

/* --- finding the file ------------------------------------------------------------------------------------------------ */

static bool source_routes_is_python(const char *path, size_t size)
{
	static const char *const suffixes[] = {".py", ".pyi", ".pyx"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (size > strlen(suffixes[i]) && !memcmp(path + size - strlen(suffixes[i]), suffixes[i], strlen(suffixes[i])))
			return true;
	return false;
}

/* Returns whether the stack, frames that are each followed by ';', has a frame in that file. */
static bool stack_names(struct ops_string stack, const struct ops_string *file)
{
	const char *end = ops_string_end(stack);
	struct ops_function_text function;

	for (const char *at = stack.bytes, *next; at < end; at = next < end ? next + 1 : end) {
		next = memchr(at, ';', (size_t)(end - at));
		next = next ? next : end;
		if (ops_function_parse((struct ops_string){at, (size_t)(next - at)}, &function) && ops_string_equals(function.file, *file))
			return true;
	}
	return false;
}

/* Returns whether a Python call of the trace, or a frame of an event's stack, is in that file. Other strings of a trace may look
 * like a frame, but name no source. */
static enum ops_code source_routes_find_name(const struct ops_trace *trace, const struct ops_string *file, bool *ret_named,
                                             struct ops_error *error)
{
	const struct ops_events *e = ops_trace_events(trace);
	size_t count;
	const struct ops_function *functions = ops_trace_functions(trace, &count);
	uint8_t *seen = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, 1);
	struct ops_function_text function;
	bool named = false;

	if (!seen)
		return ops_fault_memory(error);
	for (size_t i = 0; i < count && !named; i++)
		named = ops_string_equals(ops_trace_string(trace, functions[i].file), *file);
	for (uint32_t row = 0; row < e->count && !named; row++) {
		uint32_t name = e->name[row], stack = e->call_stack ? e->call_stack[row] : OPS_NONE;

		if (e->kind[row] == OPS_EVENT_PYTHON_FUNCTION && !(seen[name] & 1)) {
			seen[name] |= 1;
			named = ops_function_parse(ops_trace_string(trace, name), &function) && ops_string_equals(function.file, *file);
		}
		if (!named && stack != OPS_NONE && !(seen[stack] & 2)) {
			seen[stack] |= 2;
			named = stack_names(ops_trace_string(trace, stack), file);
		}
	}
	ops_free(seen);
	*ret_named = named;
	return OPS_OK;
}

/* Returns whether the file exists below the directory, which ends in '/' or is empty. */
static bool source_find_in(struct ops_string directory, const struct ops_string *file, char *real)
{
	struct ops_buffer path = {0};
	bool found;

	ops_buffer_append(&path, directory.bytes, directory.size);
	ops_buffer_append(&path, file->bytes, file->size);
	ops_buffer_append(&path, "", 1);
	found = !path.failed && realpath(path.bytes, real);
	ops_buffer_release(&path);
	return found;
}

/* Finds the file. Names may be relative to a directory. If the recording does not say which, the trace's directory and that in which
 * the server was started are tried. `real` has space for PATH_MAX; the target of links must be a Python file, too. */
static bool find_file(const struct served *served, const struct ops_string *file, char *real)
{
	const char *slash = strrchr(served->path, '/');
	struct ops_string path;
	bool found = false;

	if (file->bytes[0] != '/') {
		found = ops_source_find_path(served->trace, *file, &path) && source_find_in((struct ops_string){"", 0}, &path, real);
		if (!found && slash)
			found = source_find_in((struct ops_string){served->path, (size_t)(slash - served->path) + 1}, file, real);
	}
	return (found || source_find_in((struct ops_string){"", 0}, file, real)) && source_routes_is_python(real, strlen(real));
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

static enum ops_code source_routes_read_source(struct request *request, const char *path, struct ops_buffer *text,
                                               int64_t *ret_changed_ns, struct ops_error *error)
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
	const struct ops_string *file = request_need(request, "file", error);
	const struct served *served = request->traces[0];
	const struct ops_events *events = ops_trace_events(served->trace);
	struct ops_buffer source = {0}, out = {0};
	struct ops_json_writer json = {.out = &out};
	int64_t changed_ns = 0;
	enum ops_code code = OPS_OK;
	bool named = false;
	char real[PATH_MAX];

	if (!file)
		return OPS_INVALID;
	if (source_routes_is_python(file->bytes, file->size))
		code = source_routes_find_name(served->trace, file, &named, error);
	if (code)
		return code;
	if (!named || !find_file(served, file, real))
		return request_fail(request, 404, error, "the file cannot be read here");
	code = source_routes_read_source(request, real, &source, &changed_ns, error);
	ops_json_open(&json, '{');
	ops_json_member_string(&json, "file", (struct ops_string){file->bytes, file->size});
	ops_json_member_string(&json, "text", (struct ops_string){source.bytes, source.size});
	ops_json_key(&json, "changed");
	ops_json_bool(&json, events->count && changed_ns > events->start_ns[0]);
	ops_json_close(&json, '}');
	ops_buffer_release(&source);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}

const struct route source_routes[] = {
	{.path = "traces/{id}/lines", .parameters = "", .answer = answer_lines, .slow = true, .by_steps = true},
	{.path = "traces/{id}/source", .parameters = "file", .answer = answer_source, .unstable = true},
	{0},
};
